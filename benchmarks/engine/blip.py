"""Replacing a sub-network while others run: how long the replaced one pauses, and whether the others notice.

Three sub-networks: one fills a connection point, and two read it. One of the readers is replaced again and
again (hold, drain, change, release), first with a stateless box in it, then with a stateful one that starts
with fresh state. The other reader has two outputs, one without and one with state. Its latency is taken from
the moment when a tuple's file arrives to the commit of the train that carries the tuple, before, during and
after the changes.

Figure: seconds of each pause, and the latency of the outputs that were not touched.
Time:   about 7 minutes; --quick about 2.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.running_network import CommittedTrain, Feeder, TrainWatch
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.jobs import REPORTS, write_input

ROWS = 20_000
SETTLE = 4  # periods between two changes
PHASES = ("before", "during", "after")


@dataclass(frozen=True)
class Box:
    """A kind of box to replace; `build` gives its variant with this number."""

    name: str
    stateful: bool
    build: Callable[[ps.Stream, int], ps.Stream]


def filter_variant(kept: ps.Stream, number: int) -> ps.Stream:
    return kept.filter(f"spd > {number}")


def window_variant(kept: ps.Stream, number: int) -> ps.Stream:
    return kept.group_by("vid").tumble(f"{20 + number} seconds", n="count(*)")


BOXES = (
    Box("stateless", stateful=False, build=filter_variant),
    Box("stateful", stateful=True, build=window_variant),
)


def network(root: Path, box: Box, number: int) -> ps.Network:
    """The network with one variant of the box that is replaced."""
    net, out = ps.Network("blip"), root / "out"
    reports = net.source("reports", ps.parquet(str(root / "in"), schema=REPORTS), timestamp="time")
    kept = reports.filter("lane < 4").connection_point("kept", keep="10 minutes")
    net.output("changed", box.build(kept, number), to=ps.parquet(str(out / "changed")))
    rest = kept.filter("spd >= 0")
    net.output("other_rows", rest, to=ps.parquet(str(out / "other_rows")))
    windows = rest.group_by("seg").tumble("1 minute", n="count(*)")
    net.output("other_windows", windows, to=ps.parquet(str(out / "other_windows")))
    return net


def passing(file: Path) -> int:
    """How many tuples of a file reach the connection point."""
    table = pq.ParquetFile(file).read(columns=["time", "lane"]).to_pandas()
    return int(((table["lane"] < 4) & table["time"].notna()).sum())


@dataclass(frozen=True)
class FileLatency:
    """One file of tuples: when it arrived, and when its last tuple was through the other sub-network."""

    arrived: float
    done: float

    @property
    def seconds(self) -> float:
        return self.done - self.arrived


def latencies(given: list[float], counts: list[int], trains: list[CommittedTrain]) -> list[FileLatency]:
    """Match files with trains by counting tuples: both are in order.

    >>> trains = [CommittedTrain(0, 5, 0, 0, 3.0, 0, 0), CommittedTrain(1, 5, 0, 0, 4.0, 0, 0)]
    >>> [file.seconds for file in latencies([1.0, 2.0, 2.5], [3, 4, 3], trains)]
    [2.0, 2.0, 1.5]
    """
    through = list(itertools.accumulate(train.rows for train in trains))
    files = []
    for arrived, due in zip(given, itertools.accumulate(counts), strict=True):
        train = next((t for t, rows in zip(trains, through, strict=True) if rows >= due), None)
        if train is not None:
            files.append(FileLatency(arrived, train.done))
    return files


def phase_of(file: FileLatency, changes: list[tuple[float, float]]) -> str | None:
    """Before the first change, while one goes on, or after the last; None between two changes."""
    if file.done < changes[0][0]:
        return "before"
    if any(begun <= file.done and file.arrived <= ended for begun, ended in changes):
        return "during"
    return "after" if file.arrived > changes[-1][1] else None


@dataclass
class Changes:
    """The changes of one run: when each went on, and how long the replaced sub-network paused."""

    spans: list[tuple[float, float]]
    blips: list[float]
    calm_since: float = 0.0


def change_again_and_again(running: Any, root: Path, box: Box, chosen: argparse.Namespace) -> Changes:
    """A first change warms up and is not counted; then a calm stretch, the changes, and a calm stretch."""
    changes = Changes([], [])
    running.replace(network(root, box, 51), fresh_state=box.stateful)
    time.sleep(SETTLE * chosen.period)
    changes.calm_since = time.time()
    time.sleep(chosen.calm * chosen.period)
    for number in range(chosen.changes):
        begun = time.time()
        pauses = running.replace(network(root, box, 1 + number % 50), fresh_state=box.stateful)
        changes.spans.append((begun, time.time()))
        changes.blips += pauses.values()
        time.sleep(SETTLE * chosen.period)
    time.sleep(chosen.calm * chosen.period)
    return changes


def measure(spark: Any, root: Path, box: Box, chosen: argparse.Namespace, record: Record) -> dict[str, Any]:
    """Replace one kind of box in a network that runs."""
    needed = chosen.warm_trains + 2 * chosen.calm + (SETTLE + 4) * (chosen.changes + 1) + 120
    write_input(root / "prepared", needed, ROWS, chosen.seed, files=1)
    prepared = sorted((root / "prepared" / "reports").glob("*.parquet"))[:-1]
    feeder = Feeder(prepared, root / "in", chosen.period)
    with ps.Runtime(network(root, box, 0), spark, root / "checkpoint") as running:
        watch = TrainWatch(next(q for q in running.queries.values() if "other_rows" in q.sub.outputs))
        feeder.start()
        # Trains and changes are far slower while the JVM is cold.
        wait_for_trains(running, watch, chosen.warm_trains)
        changes = change_again_and_again(running, root, box, chosen)
        feeder.stop()
        running.wait_idle(120)
    counts = [passing(root / "in" / file.name) for file, _ in zip(prepared, feeder.given, strict=False)]
    files = latencies(feeder.given, counts, watch.seen)
    came, due = sum(train.rows for train in watch.seen), sum(counts)
    if came != due:
        record.found_wrong(f"{box.name}: {came} of {due} tuples came through the untouched sub-network")
    return figures_of(files, changes)


def figures_of(files: list[FileLatency], changes: Changes) -> dict[str, Any]:
    by_phase: dict[str, list[float]] = {name: [] for name in PHASES}
    for file in files:
        phase = phase_of(file, changes.spans) if file.arrived >= changes.calm_since else None
        if phase is not None:
            by_phase[phase].append(file.seconds)
    rows = [
        {
            "other": name,
            "files": len(seconds),
            "latency_p50_s": quantile(seconds, 0.5),
            "latency_p90_s": quantile(seconds, 0.9),
            "latency_max_s": max(seconds, default=float("nan")),
        }
        for name, seconds in by_phase.items()
    ]
    pause = {
        "changes": len(changes.blips),
        "p50_s": quantile(changes.blips, 0.5),
        "max_s": max(changes.blips),
    }
    return {"blip": pause, "other": rows, "blips_s": changes.blips, "latencies_s": by_phase}


def wait_for_trains(running: Any, watch: TrainWatch, count: int) -> None:
    until = time.time() + 120
    while len(watch.seen) < count and time.time() < until:
        running.check()
        time.sleep(0.05)


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--changes", type=int, help="how often each kind of box is replaced (default: 12)")
    parser.add_argument("--only", choices=[box.name for box in BOXES], help="one kind of box (default: both)")
    parser.add_argument("--period", type=float, default=1.0, help="seconds between files of 20,000 tuples")
    chosen = parser.parse_args()
    chosen.changes = chosen.changes or (3 if chosen.quick else 12)
    chosen.calm, chosen.warm_trains = (8, 8) if chosen.quick else (40, 40)
    return chosen


def main() -> int:
    chosen = parse()
    with recording("engine-blip", chosen, changes=chosen.changes, period_s=chosen.period) as record:
        record.figures = {}
        spark = session()
        for box in (box for box in BOXES if chosen.only in (None, box.name)):
            with scratch() as root:
                figures = measure(spark, root, box, chosen, record)
            record.figures[box.name] = figures
            show(f"The outputs that are not touched, while a {box.name} box is replaced", figures["other"])
            show(f"The {box.name} box that is replaced", [figures["blip"]])
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
