"""Maintenance of connection points: a round deletes what is old, whatever else fails, and a run does not end
without one.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark.entry.points import PointInput, PointPosition
from penstock.model.types import Schema
from penstock.runtime import point_maintenance
from penstock.runtime.point_maintenance import PointMaintenance
from penstock.store.errors import LeaseLostError
from penstock.store.points.leases import live_leases
from penstock.store.points.point import PointReader, PointWriter
from penstock.store.points.retention import maintain
from runtime.streams import SCHEMA, put, rows_of
from store.points import put as put_entry

KEPT = Schema.parse("seg INT, name STRING")


def point(root, name="kept", entries=10):
    """One tuple a second, each promised to be the last of its time."""
    writer = PointWriter(root, name, KEPT)
    for n in range(entries):
        put_entry(writer, n, [(1, "x", n * 1_000_000, n)], horizon=n * 1_000_000)
    return writer


def left(root, name="kept"):
    return PointReader(root, name).read()["_seq"].to_pylist()


def runtime_of(root, *readers: PointInput, points=("kept",)):
    """As much of a runtime as maintenance looks at: one sub-network writes the points, the others read the
    first.
    """
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP"), timestamp="time")
    for name in points:
        cars.connection_point(name, keep="3 seconds")
    writer = SimpleNamespace(sub=SimpleNamespace(name="writer", points=points, network=net), inputs={})
    others = {
        str(n): SimpleNamespace(sub=SimpleNamespace(name=str(n), points=(), network=net), inputs={"kept": r})
        for n, r in enumerate(readers)
    }
    return SimpleNamespace(checkpoint=root, queries={"writer": writer, **others})


class Failing(PointInput):
    def __init__(self, *args, error, **more):
        super().__init__(*args, **more)
        self.error = error

    def renew(self, *, ended: bool = False) -> None:
        raise self.error


def test_a_round_deletes_what_is_older_than_the_persistence(tmp_path):
    point(tmp_path)
    PointMaintenance(runtime_of(tmp_path)).once()
    assert left(tmp_path) == [6, 7, 8, 9]


def test_a_run_that_ends_before_the_first_round_has_one(tmp_path):
    point(tmp_path)
    PointMaintenance(runtime_of(tmp_path)).start().stop()
    assert left(tmp_path) == [6, 7, 8, 9]


def test_what_a_reader_has_not_done_with_stays(tmp_path):
    point(tmp_path)
    reader = PointInput(tmp_path, "kept", "reader", seconds=60)
    reader.take(PointPosition(3), 1)
    PointMaintenance(runtime_of(tmp_path, reader)).once()
    assert left(tmp_path) == [4, 5, 6, 7, 8, 9]


def test_what_a_reader_has_just_done_with_goes_when_the_run_ends(tmp_path):
    point(tmp_path)
    reader = PointInput(tmp_path, "kept", "reader", seconds=60)
    taken = reader.take(PointPosition(3), 100)
    reader.committed(taken.position)  # too soon after the lease was taken to be written at once
    PointMaintenance(runtime_of(tmp_path, reader)).start().stop()
    assert left(tmp_path) == [6, 7, 8, 9]


def test_a_lost_lease_does_not_keep_history(tmp_path, caplog):
    point(tmp_path)
    lost = Failing(tmp_path, "kept", "lost", seconds=60, error=LeaseLostError("it has lost its lease"))
    alive = PointInput(tmp_path, "kept", "alive", seconds=60)
    alive.take(PointPosition(4), 1)
    before = live_leases(PointReader(tmp_path, "kept").manifest)
    alive._lease._written = 0.0  # so that a renewal shows
    PointMaintenance(runtime_of(tmp_path, lost, alive)).once()
    assert left(tmp_path) == [5, 6, 7, 8, 9]
    assert live_leases(PointReader(tmp_path, "kept").manifest)[0].expires > before[0].expires
    assert "sub-network '0': it has lost its lease" in caplog.text


def test_a_renewal_that_fails_otherwise_keeps_its_point_only(tmp_path, caplog):
    point(tmp_path)
    point(tmp_path, "other")
    broken = Failing(tmp_path, "kept", "broken", seconds=60, error=OSError("no space left"))
    PointMaintenance(runtime_of(tmp_path, broken, points=("kept", "other"))).once()
    assert (len(left(tmp_path)), left(tmp_path, "other")) == (10, [6, 7, 8, 9])
    assert "no space left" in caplog.text


def test_a_point_that_cannot_be_kept_up_does_not_stop_the_others(tmp_path, caplog):
    point(tmp_path)
    PointMaintenance(runtime_of(tmp_path, points=("absent", "kept"))).once()
    assert left(tmp_path) == [6, 7, 8, 9]
    assert "maintenance of connection point 'absent'" in caplog.text


def test_leases_are_renewed_before_each_point_and_between_its_steps(tmp_path, monkeypatch):
    """Compaction of a long history may take longer than the lease of an ad-hoc query lasts."""
    for name in ("kept", "other"):
        point(tmp_path, name)
    reader, done = PointInput(tmp_path, "kept", "reader", seconds=60), []
    monkeypatch.setattr(reader, "renew", lambda **_: done.append("renewed"))

    def slow(_root, name, _keep, *, between):
        done.append(name)
        between()

    monkeypatch.setattr(point_maintenance, "maintain", slow)
    PointMaintenance(runtime_of(tmp_path, reader, points=("kept", "other"))).once()
    assert done == ["renewed", "renewed", "kept", "renewed", "renewed", "other", "renewed"]


def test_a_pass_says_when_it_is_between_two_steps(tmp_path):
    point(tmp_path, entries=200)
    steps = []
    maintain(tmp_path, "kept", 50_000_000, between=lambda: steps.append(len(left(tmp_path))))
    assert len(steps) >= 2
    assert len(left(tmp_path)) <= min(steps)


@pytest.mark.parametrize("size", ["1 second", "3 tuples"])
def test_a_short_run_keeps_to_the_persistence(spark, tmp_path, size):
    net = ps.Network("short")
    cars = net.source("cars", ps.csv(str(tmp_path / "cars"), SCHEMA), timestamp="time")
    kept = cars.tumble(size, n="count(*)", name="windows").connection_point("kept", keep="10 seconds")
    sink = ps.memory()
    kept.output("out", to=sink)
    put(tmp_path / "cars", "0", rows_of(0, 90))
    with ps.Runtime(
        net, spark, tmp_path / "ck", once=True, close=True, policy=AsSoonAsPossible(9)
    ) as running:
        assert running.wait(timeout=120)
    stamps = PointReader(tmp_path / "ck", "kept").read()["_ts"].to_pylist()
    assert len(sink.rows) > len(stamps) > 0
    newest = max(rows_of(0, 90))[0] * 1_000_000
    # a train's entry goes as a whole, when its newest tuple is too old
    assert min(stamps) >= newest - 10_000_000 - 10_000_000
