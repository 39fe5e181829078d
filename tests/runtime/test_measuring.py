"""What a runtime measures every second: loads of inputs, ages through points, delays of outputs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.engine.contract.situation import InputSituation
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.jobs.forms import Form
from penstock.runtime.measuring import ages_of, loads_of
from penstock.runtime.records.output_delays import OutputDelays
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import InputLoad, OutputSecond
from penstock.testing import rows_source
from penstock.testing.spark_run import InForm, run_on_spark


def query(name, inputs, points=(), running_since=None):
    sub = SimpleNamespace(name=name, inputs=tuple(inputs), points=points, outputs=())
    known = {i: InputSituation(10, 5, 50, age, 2.0) for i, age in inputs.items()}
    return SimpleNamespace(
        sub=sub, situation=lambda: SimpleNamespace(inputs=known), running_since=running_since
    )


def test_an_output_waits_for_what_waits_above_its_point():
    upper = query("upper", {"cars": 7.0}, points=("kept",))
    lower = query("lower", {"kept": 1.0})
    other = query("other", {"calls": None})
    assert ages_of([upper, lower, other], 100.0) == {"upper": 7.0, "lower": 7.0, "other": None}


def test_a_train_that_runs_is_waited_for_too():
    assert ages_of([query("a", {"cars": None}, running_since=91.0)], 100.0) == {"a": 9.0}


def test_loads_say_what_is_known():
    assert loads_of(query("a", {"cars": 7.0}), 100.0) == [InputLoad("cars", "a", 100.0, 10, 2.0, 5, 50, 7.0)]


def done(delivered, *, arrivals=(), since=90.0, direct=()):
    ticket = Ticket(0, 100.0, rows=10, since=since, arrivals=arrivals)
    return TrainDone("main", ticket, None, 99.0, delivered=delivered, direct=frozenset(direct))


def test_each_delivery_has_its_own_delay_unless_a_window_lies_between():
    delays = OutputDelays()
    arrivals = ((90.0, 10), (98.0, 30))
    delays.take(done({"alarms": 8, "means": 2}, arrivals=arrivals, direct=["alarms"]), 100.0)
    alarms, means = delays.end_second(100, {})
    assert alarms == OutputSecond("alarms", 100, ((2.0, 6), (10.0, 2)))
    assert means == OutputSecond("means", 100, ((10.0, 2),))
    assert delays.end_second(101, {"alarms": None}) == []


def test_the_share_is_of_the_value_where_tuples_go_by_value():
    delays = OutputDelays()
    shed = replace(done({"alarms": 8}), kept={"alarms": 0.5, "means": 0.5}, worth={"alarms": 0.9})
    delays.take(shed, 100.0)
    alarms, means = delays.end_second(100, {})
    assert (alarms.share, means.share) == (0.9, 0.5)


def test_an_output_that_waits_for_a_long_train_has_not_got_back_what_valves_drop():
    delays = OutputDelays()
    delays.take(replace(done({"alarms": 8}), kept={"alarms": 0.3}), 100.0)
    delays.end_second(100, {})
    (starved,) = delays.end_second(101, {"alarms": 5.0})
    assert starved.share == 0.3
    assert delays.end_second(102, {"alarms": None}) == [], "nothing is due"
    delays.take(done({"alarms": 8}), 103.0)
    (whole,) = delays.end_second(103, {"alarms": 5.0})
    assert whole.share == 1


def test_the_delay_of_a_view_ends_when_its_tuples_are_committed_to_its_point():
    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")
    rated = ps.QoS(delay=[(0, 1), (2, 1), (4, 0)])
    cars.filter("v > 2", name="some").view("seen", qos=rated)
    cars.filter("v > 5", name="few").view("unrated")
    trains = []
    rows = [{"time": v, "v": v} for v in range(10)]
    run_on_spark(net, [{"cars": rows}], InForm(Form.ONE_TASK), listen=trains.append)
    first = next(each for each in trains if each.commit.points["seen"].files)
    assert dict(first.delivered) == {"seen": 7}
    delays = OutputDelays()
    delays.take(first, first.ticket.since + 3.0)
    assert [(each.output, each.tuples) for each in delays.end_second(100, {})] == [("seen", 7)]


def test_an_output_that_starves_has_a_record_without_tuples():
    delays = OutputDelays()
    assert delays.end_second(100, {"alarms": 6.5}) == [OutputSecond("alarms", 100, (), 6.5)]
    assert delays.latest(101.0)["alarms"][0].due


def test_the_last_minute_is_that_of_the_clock():
    delays = OutputDelays()
    for second in (100, 130):
        delays.end_second(second, {"alarms": 6.5})
    assert [each.second for each in delays.latest(131.0)["alarms"]] == [100, 130]
    assert [each.second for each in delays.latest(160.0)["alarms"]] == [130]
    assert delays.latest(3_700.0) == {}


def test_many_delays_are_put_together_and_none_looks_shorter():
    delays = OutputDelays()
    for k in range(100):
        delays.take(done({"alarms": 1}, since=100.0 - k), 100.0)
    (record,) = delays.end_second(100, {})
    assert (record.tuples, len(record.delays) <= 16) == (100, True)
    assert max(delay for delay, _ in record.delays) == 99.0
    assert sum(delay * tuples for delay, tuples in record.delays) >= sum(range(100))


def test_the_catalog_keeps_seconds_and_forgets_old_ones(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db", keep=100)
    for second in range(0, 1000, 10):
        load = InputLoad("cars", "main", float(second), second, 3.5, 7, None, 0.25)
        catalog.record_second(second, [load], [OutputSecond("out", second, ((0.5, 3),), None, 0.5)])
    catalog.close()
    again = Catalog(tmp_path / "catalog.db")
    assert again.loads() == [InputLoad("cars", "main", 990.0, 990, 3.5, 7, None, 0.25)]
    assert [load.time for load in again.loads(25)] == [970.0, 980.0, 990.0]
    assert again.output_seconds(15)["out"] == [
        OutputSecond("out", second, ((0.5, 3),), None, 0.5) for second in (980, 990)
    ]
    assert len(again.loads(10_000)) < 60
    again.close()


def test_a_second_is_recorded_once(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    catalog.record_second(5, [], [OutputSecond("out", 5, ((0.5, 3),))])
    catalog.record_second(5, [], [OutputSecond("out", 5, ((0.7, 1),))])
    assert [second.delays for second in catalog.output_seconds(9)["out"]] == [((0.7, 1),)]
    catalog.close()


@pytest.mark.parametrize("version", [1, 5, 99])
def test_a_catalog_of_another_version_is_refused_in_one_sentence(tmp_path, version):
    import sqlite3

    from penstock.store.errors import StoreError

    db = sqlite3.connect(tmp_path / "catalog.db")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(StoreError, match=f"another version\n  found:    format {version}"):
        Catalog(tmp_path / "catalog.db")
