"""The wall clock jumps while everything runs: nothing waits for it, nothing expires by it."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

import penstock as ps
from engine.spark.trains.test_express import deliver, network
from penstock.connectors.rate import RateInput, RatePosition
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_log import TrainLog
from penstock.model.types import Schema
from penstock.store.errors import OwnedError
from penstock.store.ownership import own
from penstock.store.points import leases
from penstock.store.points.leases import live_leases, reap, take_lease
from penstock.store.points.point import PointReader, PointWriter
from penstock.testing.dry_run import DryRun
from soak import count

JUMPS = 20
RUNS = count(1, soak=50)


class JumpingClock:
    """The wall clock as somebody sets it: up to ten years back or ahead."""

    def __init__(self, seed: int) -> None:
        self.dice, self.offset, self.jumps, self._real = random.Random(seed), 0.0, 0, time.time

    def time(self) -> float:
        return max(0.0, self._real() + self.offset)

    def jump(self) -> None:
        self.offset = self.dice.choice([-1, 1]) * 10 ** self.dice.uniform(0, 8.5)
        self.jumps += 1


@pytest.fixture
def clock(monkeypatch):
    jumping = JumpingClock(7)
    monkeypatch.setattr(time, "time", jumping.time)
    return jumping


def roads(folder):
    files = sorted((folder / "out" / "roads").glob("*.csv"))
    return sorted(line for file in files for line in file.read_text().splitlines())


@pytest.mark.parametrize("number", range(RUNS))
def test_trains_run_and_give_the_same_rows(tmp_path, clock, number, record_property):
    clock.dice.seed(number)
    for at in range(1, JUMPS + 1):
        deliver(tmp_path / "in", at, [f"1,{at % 3},30"], [f"2,{at % 2},40"])
    dry = DryRun(network(tmp_path), tmp_path / "checkpoint", length=1)
    dry.query.steering.policy = AsSoonAsPossible(length=1, interval=0.001)
    while True:
        clock.jump()
        if not dry.train():
            break
    assert clock.jumps >= JUMPS
    assert roads(tmp_path) == sorted(f"{road},{n}" for road in (1, 2) for n in range(1, JUMPS + 1))
    # Tickets carry the wall time as a stamp; their order does not follow it.
    assert TrainLog(tmp_path / "checkpoint" / "queries" / "roads_out").last() >= JUMPS - 1
    record_property("clock_jumps", clock.jumps)


def test_a_lease_neither_expires_nor_stays_by_the_wall_clock(tmp_path, clock):
    PointWriter(tmp_path, "p", Schema.of([("k", "INT")]), sync=False).commit(0, [], 0)
    reader = PointReader(tmp_path, "p")
    held = take_lease(reader, "q", seconds=3600)
    for _ in range(JUMPS):
        clock.jump()
        assert [lease.reader for lease in live_leases(reader.manifest)] == ["q"]
        held.renew(0)
    later = time.monotonic() + 3601
    clock.jump()
    assert reap(reader.manifest, lambda: later) == []


def test_a_lease_of_another_boot_is_watched(tmp_path, clock, monkeypatch):
    PointWriter(tmp_path, "p", Schema.of([("k", "INT")]), sync=False).commit(0, [], 0)
    reader = PointReader(tmp_path, "p")
    monkeypatch.setattr(leases, "boot_id", lambda: "theirs")
    take_lease(reader, "q", seconds=60, clock=lambda: 5.0)
    monkeypatch.setattr(leases, "boot_id", lambda: "ours")
    assert len(live_leases(reader.manifest, lambda: 1e6)) == 1
    assert len(live_leases(reader.manifest, lambda: 1e6 + 59)) == 1
    assert live_leases(reader.manifest, lambda: 1e6 + 61) == []


def test_an_owner_stays_the_owner(tmp_path, clock):
    held = own(tmp_path)
    for _ in range(JUMPS):
        clock.jump()
        with pytest.raises(OwnedError):
            own(tmp_path)
        held.look()
        held.check()
    held.release()


def test_a_rate_source_goes_on(tmp_path, clock, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    net = ps.Network("n")
    net.source("ticks", ps.rate(10), timestamp="timestamp")
    source = RateInput(net.nodes["ticks"], tmp_path)
    position, rows = None, 0
    for _ in range(JUMPS):
        clock.jump()
        taken = source.take(position, 1000)
        position, rows = taken.position, rows + taken.rows
        now[0] += 1.0
    assert rows == pytest.approx(10 * (JUMPS - 1), abs=1)
    # Started again with a clock that was set back by years, it goes on from its last row.
    clock.offset = -1e8
    again = RateInput(net.nodes["ticks"], tmp_path)
    assert isinstance(position, RatePosition)
    assert again.take(replace(position), 1000).rows == 0
    now[0] += 1.0
    assert again.take(position, 1000).rows == pytest.approx(10, abs=1)


def test_the_interval_of_trains_is_by_the_monotonic_clock(tmp_path, clock):
    deliver(tmp_path / "in", 1, ["1,1,30"])
    deliver(tmp_path / "in", 2, ["1,2,30"])
    dry, now = DryRun(network(tmp_path), tmp_path / "checkpoint", length=1), [50.0]
    dry.query.steering.clock = lambda: now[0]
    dry.query.steering.policy = AsSoonAsPossible(length=1, interval=10.0)
    assert dry.train()
    clock.jump()
    assert not dry.query.next_ticket()
    now[0] += 11
    assert dry.query.next_ticket()
