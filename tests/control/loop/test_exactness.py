"""From when on answers are exact."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from tests.control.loop.networks import COSTLY
from tests.control.loop.test_control import FakeRun, begun

import penstock as ps
from penstock.control.loop.exactness import Exactness, seen_by
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.control.report import MEMORY
from penstock.engine.contract.valve import Valve
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.decisions import Decisions

SECOND = 1_000_000


def done(sub, valves=(), newest=None, arrival=0.0, kept=None):
    """A train that has ended, as far as exactness looks at it."""
    return SimpleNamespace(
        subnetwork=sub.name,
        ticket=SimpleNamespace(valves=tuple(valves), arrival=arrival),
        commit=SimpleNamespace(newest=newest or {}),
        kept=kept or {},
    )


def exact_since(control):
    return {each.name: each.exact_since for each in control.qos().outputs}


def test_a_train_without_tuples_takes_no_time_back():
    shed = Exactness().after_train(shed=True, newest=60 * SECOND, memory=0)
    empty = shed.after_train(shed=True, newest=None, memory=0)
    assert empty.after_train(shed=False, newest=None, memory=0).since == "1970-01-01T00:01:00.000001Z"


def test_where_no_time_was_known_that_of_the_first_whole_train_counts():
    shed = Exactness().after_train(shed=True, newest=None, memory=0)
    assert shed.after_train(shed=False, newest=None, memory=0).since is None
    exact = shed.after_train(shed=False, newest=60 * SECOND, memory=0)
    assert exact.since == "1970-01-01T00:01:00.000001Z"


def test_a_time_that_no_calendar_has_ends_at_the_last_one():
    for never in (253_402_300_799 * SECOND, 9_000_000_000_000 * SECOND):
        shed = Exactness().after_train(shed=True, newest=never, memory=0)
        last = shed.after_train(shed=False, newest=never, memory=3600 * SECOND)
        assert last.since == "9999-12-31T23:59:59.999999Z"
        assert Exactness().behind(last, 3600 * SECOND).since == last.since


def test_a_source_without_timestamps_becomes_exact_again(tmp_path):
    """Its tuples have no times: then that of the train counts with which the last of them were shed."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "spd INT"))
    net.output("fast", cars.filter("spd > 95", name="above"), to=ps.console(), qos=COSTLY)
    run = FakeRun(tmp_path, net, trains=0)
    run.train = lambda *_: None
    control = begun(run)
    control.look()
    (sub,) = run.subs
    control._note_exactness(sub, done(sub, [Valve("cars", 0.5)], arrival=30.0))
    assert exact_since(control) == {"fast": None}
    control._note_exactness(sub, done(sub, arrival=90.0))
    assert exact_since(control) == {"fast": "1970-01-01T00:00:30.000001Z"}


def test_only_what_leads_to_an_output_tells_its_time():
    net = ps.Network("n")
    timed = net.source("timed", ps.csv("a/", "time TIMESTAMP, k INT"), timestamp="time")
    point = timed.connection_point("kept")
    other = net.source("other", ps.csv("b/", "time TIMESTAMP, k INT"), timestamp="time")
    net.output("pairs", point.join(other, on="k", within="1 second"), to=ps.console())
    net.output("alone", other.filter("k > 1"), to=ps.console())
    sub = next(each for each in split(net) if "alone" in each.outputs)
    train = done(sub, newest={"kept": 9, "other": 5})
    assert (seen_by(train, sub, "pairs"), seen_by(train, sub, "alone")) == (9, 5)
    assert seen_by(done(sub, newest={"kept": 9}), sub, "alone") is None


@pytest.mark.parametrize(
    ("valve", "newest"),
    [
        (Valve("cars", 0.5, "blocks"), 65),
        (Valve("cars", 0.5, "tuples"), 60),
        (Valve("cars", 0.5, "slices"), 60),
        (Valve("cars->above", 0.5, "blocks"), 60),
    ],
    ids=["blocks", "tuples", "slices", "behind a split"],
)
def test_of_a_block_only_the_last_line_was_looked_at(valve, newest):
    """A line before it may be newer, by as much as tuples of the source may be late."""
    net = ps.Network("n")
    source = ps.csv("in/", "time TIMESTAMP, spd INT")
    cars = net.source("cars", source, timestamp="time", lateness="5 seconds")
    net.output("fast", cars.filter("spd > 95", name="above"), to=ps.console(), qos=COSTLY)
    (sub,) = split(net)
    assert seen_by(done(sub, [valve], {"cars": 60 * SECOND}), sub, "fast") == newest * SECOND


def test_a_train_before_the_first_look_knows_what_boxes_remember(tmp_path):
    """A run that goes on after one that shed: its first train may be over before the loop has looked."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    net.output("tens", cars.tumble("10 seconds", n="count(*)", name="t"), to=ps.console(), qos=COSTLY)
    run = FakeRun(tmp_path, net, trains=0)
    run.train, running = lambda *_: None, dict(run.queries)
    exact = {"tens": [None, 60 * SECOND]}
    Decisions(run.catalog).keep_state(MEMORY, time.time(), {"kept": 1.0, "shares": {}, "exact": exact})
    run.queries.clear()  # no query has begun yet
    control = begun(run)
    run.queries.update(running)
    (sub,) = run.subs
    control._note_loss(done(sub, newest={"cars": 61 * SECOND}))
    assert control._exact["tens"].since == "1970-01-01T00:01:10.000001Z"


def test_memory_counts_where_a_graph_allows_no_place_any_more():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    net.output("tens", cars.tumble("10 seconds", n="count(*)", name="t"), to=ps.console(), qos=COSTLY)
    net.output("fast", cars.filter("spd > 95", name="above"), to=ps.console(), qos=COSTLY)
    net.set_qos("tens", ps.QoS(delay=COSTLY.delay))
    (sub,) = split(net)
    places = Places.of(net, Structure((sub,)))
    assert places.sheddable(Structure((sub,)).qos).keys() == {"fast"}
    assert (places.memory(sub, "tens"), places.memory(sub, "fast")) == (10 * SECOND, 0)


def kept_network():
    """A source, a point that may lose tuples, and behind it an output of tuples and one of windows."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    kept = cars.filter("spd > 0", name="moving").connection_point("kept", shed=True)
    net.output("fast", kept.filter("spd > 95", name="above"), to=ps.console(), qos=COSTLY)
    tens = kept.tumble("10 seconds", n="count(*)", name="tens").connection_point("counts", shed=True)
    net.output("busy", tens.filter("n > 9", name="many"), to=ps.console(), qos=COSTLY)
    return net


def test_outputs_behind_a_point_miss_what_it_has_lost(tmp_path):
    run = FakeRun(tmp_path, kept_network(), trains=0)
    run.train = lambda *_: None
    control = begun(run)
    control.look()
    subs = {point: sub for sub in run.subs for point in sub.points}
    writer, middle = subs["kept"], subs["counts"]
    begin, minute = "1970-01-01T00:00:00Z", "1970-01-01T00:01:00.000001Z"
    assert exact_since(control) == {"fast": begin, "busy": begin}
    # Nothing was dropped in this train, but the valve is closed.
    control._note_exactness(writer, done(writer, [Valve("cars", 0.5)], {"cars": 60 * SECOND}))
    for sub in run.subs:
        if sub is not writer:
            control._note_exactness(sub, done(sub, newest=dict.fromkeys(sub.inputs, 50 * SECOND)))
    assert exact_since(control) == {"fast": None, "busy": None}
    control._note_exactness(writer, done(writer, newest={"cars": 90 * SECOND}))
    assert exact_since(control) == {"fast": minute, "busy": "1970-01-01T00:01:10.000001Z"}
    # A valve of its own, further down and later.
    control._note_exactness(middle, done(middle, [Valve("kept->tens", 0.5)], {"kept": 80 * SECOND}))
    assert exact_since(control)["busy"] is None
    control._note_exactness(middle, done(middle, newest={"kept": 90 * SECOND}))
    assert exact_since(control) == {"fast": minute, "busy": "1970-01-01T00:01:30.000001Z"}
