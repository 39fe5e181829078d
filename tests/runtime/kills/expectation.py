"""What a run of `kill_worker` must have given, worked out by the reference engine from the tickets it has
recorded.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.local.boxes.stateless import drop_hash
from penstock.engine.local.engine import LocalEngine
from penstock.engine.spark.entry.stamping import stamped
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader
from penstock.testing import assert_same_rows, rows_source
from runtime.kills.kill_worker import CARS, DOORS, network
from runtime.streams import csv_rows, parquet_rows, put


def write_input(folder: Path, rows: int, files: int = 4) -> None:
    """Cars somewhat out of order, some with v = 0 (the filter fails), some malformed; doors now and then."""
    dice = random.Random(11)
    step = 300.0 / rows
    for number in range(files):
        cars, doors = [], []
        for i in range(rows // files):
            at = round((number * (rows // files) + i) * step + dice.random() * 1.5, 3)
            cars.append((at, dice.randrange(6), dice.choice([0, *range(1, 60)])))
            if dice.random() < 0.03:
                cars.append((at, "rubbish", "here"))
            if dice.random() < 0.1:
                doors.append((at, dice.randrange(6), len(doors) + number * 1000))
        put(folder / "cars", f"{number}", cars)
        put(folder / "doors", f"{number}", doors)


def recorded(folder: Path) -> list[Ticket]:
    """All tickets of the sub-network that reads the files."""
    name = next(sub.name for sub in split(network(folder)) if "cars" in sub.inputs)
    log = TrainLog(folder / "checkpoint" / "queries" / name)
    found = [log.ticket(n) for n in range(log.last() + 1)]
    assert all(t is not None for t in found), "tickets are gone: the run was too long for this test"
    return [t for t in found if t is not None]


def expected(folder: Path) -> tuple[Any, int]:
    """The reference engine's result on what the tickets say was read and dropped.

    And how many tuples were dropped.
    """
    net = network(folder)
    lot = net.nodes["shed"].lot  # type: ignore[attr-defined]
    trains, dropped = [], 0
    for ticket in recorded(folder):
        train: dict[str, list[Any]] = {}
        for name in ("cars", "doors"):
            tuples = [
                row
                for piece in ticket.slices.get(name, [])
                for row in stamped(net.nodes[name], piece.tuples(net.nodes[name])).tuples.to_pylist()
            ]
            if name == "cars":
                rate = ticket.drop_rates.get("shed", 0.0)
                kept = [
                    row
                    for row in tuples
                    if drop_hash(lot, row["_seq"]) % 1_000_000 >= round(rate * 1_000_000)
                ]
                tuples, dropped = kept, dropped + len(tuples) - len(kept)
            train[name] = [{k: v for k, v in row.items() if not k.startswith("_")} for row in tuples]
        trains.append(train)
    reference = network(folder, shed=False, sources={"cars": rows_source(CARS), "doors": rows_source(DOORS)})
    return LocalEngine(reference).run(trains), dropped


def check(folder: Path, least: int = 1) -> dict[str, int]:
    """Outputs, connection point and dead letters are exactly those expected; returns counts to show."""
    wanted, dropped = expected(folder)
    for name in ("counted", "busy", "numbered"):
        assert_same_rows(parquet_rows(folder / "out" / name), wanted.outputs[name], name)
    pairs = [{k: str(v) for k, v in row.items()} for row in wanted.outputs["pairs"]]
    assert_same_rows(csv_rows(folder / "out" / "pairs", "k INT, v INT, door INT"), pairs, "pairs")
    point = (
        PointReader(folder / "checkpoint", "minutes").read().select(["k", "time", "n", "total"]).to_pylist()
    )
    assert_same_rows(point, wanted.points["minutes"], "minutes")
    letters = DeadLetters(folder / "checkpoint").read().to_pylist()
    lines = [
        line
        for path in (folder / "cars").glob("*.csv")
        for line in path.read_text().splitlines()
        if "rubbish" in line
    ]
    assert sorted(d["raw"] for d in letters if d["box"] == "cars") == sorted(lines)
    assert len([d for d in letters if d["box"] == "valid"]) == len(wanted.dead_letters)
    assert len(letters) == len(lines) + len(wanted.dead_letters)
    sizes = {name: len(rows) for name, rows in wanted.outputs.items()}
    assert min(sizes.values()) >= least, f"too little to see anything: {sizes}"
    rates = {t.drop_rates.get("shed", 0.0) for t in recorded(folder)}
    assert len(rates) > 1, "the drop rate was never changed"
    assert dropped > 0
    return {**sizes, "dropped": dropped, "dead": len(letters), "trains": len(recorded(folder))}


def start(folder: Path, *more: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """The process in a session of its own, so that all that belongs to it can be found."""
    here = Path(__file__).parent
    variables = {**(environment or os.environ), "PYTHONPATH": str(here.parents[1])}
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(here / "kill_worker.py"), str(folder), *more],
            env=variables,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def family(leader: int) -> list[int]:
    """The processes of the session that `leader` leads: driver, JVM, Python workers (which have a group of
    their own).
    """
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    found.append(int(place.name))
    return found


def kill_family(leader: int) -> None:
    """kill -9 of all of them; orphans too."""
    for pid in family(leader):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
