"""Runs without Spark that are killed, on a machine that may go down: how they start, and what they wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

from engine.spark.trains.test_express import deliver, network
from penstock.engine.spark.tasks import state
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader
from penstock.testing.dry_run import DryRun

EVERY_TRAIN, NEVER = 0.0, 1e9  # seconds of trains between two snapshots
SECONDS = 8


def with_view(folder):
    net = network(folder)
    net.stream("roads").view("kept", keep="1 hour")
    return net


def second(folder, at):
    deliver(folder / "in", at, [f"1,{at % 3},30", f"bad {at}"], [f"2,{at % 2},40"])


def start(folder, recovery, *, net=None, epoch=1, sync=False, **more) -> DryRun:
    """A new process: its workers hold nothing."""
    state._RESIDENT.clear()
    dry = DryRun(
        net or with_view(folder),
        folder / "checkpoint",
        length=1,
        recovery=recovery,
        epoch=epoch,
        sync=sync,
        **more,
    )
    dry.query.close = False
    return dry


def trains(dry, number):
    for _ in range(number):
        assert dry.train()


def written(folder):
    lines = {
        name: sorted(
            line for file in (folder / "out" / name).glob("*.csv") for line in file.read_text().splitlines()
        )
        for name in ("roads", "cars")
    }
    rows = PointReader(folder / "checkpoint", "kept").read().select(["road", "n"]).to_pylist()
    return lines, sorted(map(str, rows)), sorted(DeadLetters(folder / "checkpoint").read()["raw"].to_pylist())


def reboot(memory: Path) -> None:
    """The machine goes down: what was in memory is gone."""
    for folder in memory.iterdir():
        shutil.rmtree(folder)


def query_directory(folder: Path) -> Path:
    (directory,) = (folder / "checkpoint" / "queries").iterdir()
    return directory


def records(folder):
    return sorted(int(p.name[:12]) for p in (query_directory(folder) / "snapshots" / "records").iterdir())
