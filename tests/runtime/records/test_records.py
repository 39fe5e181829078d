"""What is recorded of trains: latencies from the arrival of the oldest tuple, counts, rates."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.engine.contract.account import Account
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.entry.points import PointInput
from penstock.rewrite.subnetworks import split
from penstock.runtime.records.train_records import TrainRecords
from penstock.store.points.point import PointReader, PointWriter
from runtime.streams import SCHEMA, put, rows_of
from store.points import SCHEMA as KEPT
from store.points import put as put_entry


@pytest.fixture
def records(tmp_path):
    net = ps.Network("n")
    net.source("cars", ps.rows([], SCHEMA), timestamp="time").output("out", to=ps.memory())
    listeners = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
    made = TrainRecords(tmp_path, net, split(net), SimpleNamespace(streams=listeners))
    yield made
    made.close()


def done(train, *, since, left=(), rows=10, out=5, estimated=False):
    ticket = Ticket(train, time.time(), slices={"cars": [{}] if rows else []}, rows=rows, since=since)
    count = {"in": rows, "out": out} | ({"estimated": 1} if estimated else {})
    return TrainDone(
        "out",
        ticket,
        Commit(train, counts={"slow": count}),
        time.time(),
        ("out", "other"),
        dict.fromkeys(left, out),
    )


@pytest.mark.parametrize(
    ("valve", "decoded"),
    [
        (Valve("cars", 0.5, "blocks"), 0),
        (Valve("cars", 0.5, "slices"), 0),
        (Valve("cars", 0.5, "keys"), 0),  # groups of a feed, unread
        (Valve("cars", 0.5, "keys", keys=("k",)), 6),
        (Valve("cars", 0.5, "tuples"), 6),
        (Valve("cars", 0.5, "windows", size=10, every=10), 6),
        (Valve("cars", 0.5, "values", predicate="v > 1"), 6),
        (Valve("cars->slow", 0.5, "windows", size=10, every=10), 0),
    ],
    ids=lambda value: value.grain if isinstance(value, Valve) else "",
)
def test_what_a_valve_drops_behind_decoding_was_decoded(records, valve, decoded):
    ticket = Ticket(0, time.time(), rows=10, valves=(valve,))
    commit = Commit(0, accounts={"cars": Account(offered=10, let_in=4, shed=6)})
    records.train_done(TrainDone("out", ticket, commit, time.time(), ("out",)))
    assert records.newest["out"].decoded == decoded


def test_only_outputs_that_tuples_left_by_have_a_latency(records):
    now = time.time()
    records.train_done(done(0, since=now - 5))
    assert records.status({}).latency == {}
    records.train_done(done(1, since=now - 5, left={"out"}))
    records.train_done(done(2, since=now - 9, left={"out"}, rows=0))  # a train that only closes windows
    records.train_done(done(3, since=None, left={"out"}))  # a ticket of an older version
    (latency,) = records.status({}).latency.values()
    assert (latency.output, latency.samples) == ("out", 2)
    assert latency.p50 == pytest.approx(5, abs=0.5)
    assert latency.max == pytest.approx(9, abs=0.5)


def test_rates_and_train_sizes_of_boxes(records, monkeypatch):
    clock = iter([0.0, 1.0, 1.0, 2.0, 4.0])
    times = SimpleNamespace(monotonic=lambda: next(clock), time=time.time)
    monkeypatch.setattr("penstock.runtime.records.train_records.time", times)
    records.train_done(done(0, since=None, rows=100, out=50))
    records.train_done(done(1, since=None, rows=40, out=10, estimated=True))
    records.train_done(done(2, since=None, rows=0, out=0))
    status = records.status({})
    flow = status.flows["slow"]
    assert (flow.train_in, flow.train_out) == (40, 10)
    assert 0 < flow.rate_out < flow.rate_in <= 200
    assert flow.rate_in == pytest.approx(4 * flow.rate_out)
    assert (status.boxes["slow"].rows_in, status.boxes["slow"].estimated) == (140, True)
    assert records.status({}).flows["slow"].rate_in < flow.rate_in  # nothing came since


def test_entries_tell_when_their_oldest_tuple_arrived(tmp_path):
    writer = PointWriter(tmp_path, "p", KEPT)
    put_entry(writer, 0, [(1, "x", 1, 1)], since=100.0)
    before = time.time()
    live = PointInput(tmp_path, "p", "live", seconds=60)
    one = live.take(None, 1)
    assert before <= one.arrived <= time.time()  # retained before anybody asked
    now = time.time()
    for entry, rows, since in ((1, [(1, "x", 2, 2)], now + 2), (2, [(1, "x", 3, 3)], now + 1), (3, [], now)):
        put_entry(writer, entry, rows, since=since)
    two = live.take(one.position, 9)
    assert two.arrived == now + 1
    again = PointInput(tmp_path, "p", "live", seconds=60)  # started again
    assert again.take(one.position, 9).arrived == now + 1
    put_entry(writer, 4, [], since=now + 7)  # only a horizon: what moved it counts
    assert again.take(two.position, 9).arrived == now + 7


def test_latency_counts_the_backlog_and_the_way_above_a_point(spark, tmp_path):
    net = ps.Network("backlog")
    cars = net.source("cars", ps.csv(str(tmp_path / "cars"), SCHEMA), timestamp="time")
    point = cars.connection_point("kept")
    point.output("out", to=ps.memory())
    point.filter("v < 0", name="none").output("never", to=ps.parquet(str(tmp_path / "never")))
    point.tumble("10 seconds", n="count(*)", name="tens").output("windows", to=ps.memory())
    put(tmp_path / "cars", "0", rows_of(0, 50))
    policy = AsSoonAsPossible(5, 0.4)  # ten trains, so the last tuples wait four seconds
    with ps.Runtime(net, spark, tmp_path / "ck", once=True, close=True, policy=policy) as running:
        assert running.wait(timeout=180)
        status = running.status()
    assert set(status.latency) == {"out", "windows"}
    assert status.latency["out"].max > 3.6
    assert status.latency["windows"].max > 3.6
    entries = PointReader(tmp_path / "ck", "kept").entries()
    assert len({entry.since for entry in entries}) == 1  # one file
    assert {entry.rows for entry in entries} >= {5}
