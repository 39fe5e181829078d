"""Three curves of the papers on scheduling and shedding: queries by box, train length, and what is dropped.

*Boxes*: a chain of filters, as one sub-network, and with a connection point behind each box, so that every
box is a query of its own. 1,000 tuples a second come in small files. *Lengths*: one filter, 2,000 tuples a
second, and trains of a given length: one leaves when so many tuples should be there. *Drops*: counts and
means of ten-second windows. Whole windows or single tuples are shed in front of them, by the engine's own
valves; trains run in one process without Spark.

The delay of a tuple is from the moment its file is there to the commit of its last train. Files that are not
through at the end count with their age.

Figure: mean delay by number of boxes, for both ways; CPU a tuple and mean delay by train length; the share of
        windows that was delivered, and of those the share that is wrong, by the share kept, for both ways.
Time:   about 7 minutes; --quick about 2.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import cpu_seconds
from benchmarks.common.results import recording
from benchmarks.common.running_network import CommittedTrain, Feeder, TrainWatch
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from benchmarks.engine.floor import SCHEMA, prepare
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.valve import Valve, lot_of
from penstock.testing.dry_run import DryRun

PARTS = ("boxes", "lengths", "drops")
BOXES, BOX_RATE = (1, 2, 4, 8, 12), 1_000
LENGTHS, LENGTH_RATE = (20, 40, 100, 200, 400, 1_000, 2_000, 4_000, 10_000), 2_000
KEEP = (0.9, 0.7, 0.5, 0.3, 0.1)
WINDOW = 10_000_000  # microseconds
WINDOWS, KEYS = 60, 20


def chain(source: Path, out: Path, boxes: int, *, apart: bool) -> ps.Network:
    """Filters that let everything through, one behind the other."""
    net = ps.Network("chain")
    files = ps.parquet(str(source), schema=SCHEMA, settle="0")
    stream = net.source("ticks", files, timestamp="time")
    for number in range(boxes):
        stream = stream.filter(f"k < {100 + number}", name=f"box{number}")
        if apart and number + 1 < boxes:
            stream = stream.connection_point(f"point{number}", keep="1 minute")
    net.output("out", stream, to=ps.parquet(str(out)))
    return net


def delays(given: Sequence[float], trains: Sequence[CommittedTrain], size: int, end: float) -> list[float]:
    """Seconds of each file until its last tuple was through, the first third left out.

    >>> train = CommittedTrain(0, 20, 0.0, 0.0, 3.0, 0.0, 0)
    >>> delays([1.0, 2.0, 2.5], [train], 10, 5.0)
    [1.0, 2.5]
    """
    through = list(accumulate(train.rows for train in trains))
    carried = (bisect_left(through, size * (number + 1)) for number in range(len(given)))
    ended = [trains[train].done if train < len(trains) else end for train in carried]
    return [done - at for done, at in zip(ended, given, strict=True)][len(given) // 3 :]


def driven(
    spark: Any,
    root: Path,
    net: ps.Network,
    policy: AsSoonAsPossible,
    *,
    rate: int,
    seconds: float,
    period: float,
) -> dict[str, float]:
    """Feed a network, and tell delays and CPU while it was fed."""
    size = round(rate * period)
    paths = prepare(root / "prepared", round(seconds / period), size, round(period * 1e6))
    with ps.Runtime(net, spark, root / "checkpoint", partitions=2, policy=policy) as running:
        watch = TrainWatch(running.queries[running.subs[-1].name])
        feeder = Feeder(paths, root / "in", period)
        feeder.start()
        time.sleep(seconds / 3)
        cpu, since = cpu_seconds(), time.time()
        feeder.join()
        used, end = cpu_seconds() - cpu, time.time()
        running.check()
        _wait_until_through(watch, len(paths) * size, end + 5)
    through = sum(train.rows for train in watch.seen if since <= train.done <= end)
    late = delays(feeder.given, watch.seen, size, time.time())
    return {
        "mean_delay_s": fmean(late),
        "longest_delay_s": max(late),
        "cpu_us_a_tuple": used / max(1, through) * 1e6,
        "through_per_s": through / (end - since),
    }


def _wait_until_through(watch: TrainWatch, tuples: int, until: float) -> None:
    while sum(train.rows for train in watch.seen) < tuples and time.time() < until:
        time.sleep(0.02)


def by_boxes(spark: Any, root: Path, seconds: float, boxes: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for count in boxes:
        for apart in (False, True):
            here = root / f"boxes-{count}-{apart}"
            (here / "in").mkdir(parents=True)
            net = chain(here / "in", here / "out", count, apart=apart)
            figures = driven(spark, here, net, AsSoonAsPossible(), rate=BOX_RATE, seconds=seconds, period=0.1)
            way = "one query a box" if apart else "one query a sub-network"
            rows.append({"boxes": count, "way": way, **figures})
            print(f"  {count} boxes, {way}: {figures['mean_delay_s']:.2f} s", flush=True)
    return rows


def by_length(spark: Any, root: Path, seconds: float, lengths: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for length in lengths:
        here = root / f"length-{length}"
        (here / "in").mkdir(parents=True)
        net = chain(here / "in", here / "out", 1, apart=False)
        policy = AsSoonAsPossible(length=length, interval=length / LENGTH_RATE)
        most = max(seconds, 3 * length / LENGTH_RATE)
        figures = driven(spark, here, net, policy, rate=LENGTH_RATE, seconds=most, period=0.01)
        rows.append({"length": length, **figures})
        print(f"  trains of {length}: {figures['mean_delay_s']:.2f} s", flush=True)
    return rows


def windows_of(folder: Path, valves: tuple[Valve, ...]) -> dict[tuple[int, Any], tuple[int, float]]:
    """(count, mean) of each window that is delivered, by key and start."""
    net = ps.Network("windows")
    files = ps.csv(str(folder.parent / "in"), schema="time TIMESTAMP, k INT, v DOUBLE")
    counted = net.source("ticks", files, timestamp="time").group_by("k")
    means = counted.tumble("10 seconds", since="window_start()", n="count(*)", mean="avg(v)")
    net.output("means", means, to=ps.parquet(str(folder / "out")))
    run = DryRun(net, folder / "checkpoint")
    run.query.steering.valves = valves
    run.run_all()
    rows = pq.read_table(folder / "out").to_pylist()
    return {(row["k"], row["since"]): (row["n"], row["mean"]) for row in rows}


def by_drop(root: Path, seed: int, tuples: int) -> list[dict[str, Any]]:
    """Whole windows against single tuples, at several shares."""
    root.mkdir()
    write_ticks(root / "in", seed, tuples)
    exact, lot = windows_of(root / "exact", ()), lot_of("ticks")
    rows = []
    for share in KEEP:
        ways = {
            "windows": Valve("ticks", share, "windows", lot, size=WINDOW, every=WINDOW),
            "tuples": Valve("ticks", share, "tuples", lot),
        }
        for way, valve in ways.items():
            seen = windows_of(root / f"{way}-{share}", (valve,))
            wrong = sum(exact.get(window) != answer for window, answer in seen.items())
            delivered = len(seen) / len(exact)
            rows.append({"dropped": way, "kept": share, "delivered": delivered, "wrong": wrong / len(seen)})
    return rows


def write_ticks(folder: Path, seed: int, tuples: int) -> None:
    """Ten minutes of tuples, evenly in time."""
    folder.mkdir()
    dice = np.random.default_rng(seed)
    keys, values = dice.integers(0, KEYS, tuples), dice.integers(0, 1000, tuples)
    seconds = np.arange(tuples) * (WINDOWS * 10) // tuples
    lines = [
        f"2026-01-01 00:{second // 60:02d}:{second % 60:02d},{key},{value}.0\n"
        for second, key, value in zip(seconds.tolist(), keys.tolist(), values.tolist(), strict=True)
    ]
    (folder / "ticks.csv").write_text("".join(lines))


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="which curves")
    chosen = parser.parse_args()
    seconds = 8.0 if chosen.quick else 20.0
    with recording("qos-curves", chosen, parts=chosen.parts, seconds=seconds) as record, scratch() as root:
        figures: dict[str, Any] = {}
        record.figures = figures
        if "drops" in chosen.parts:
            figures["drops"] = by_drop(root / "drops", chosen.seed, 6_000 if chosen.quick else 60_000)
            show("Windows delivered, and wrong", figures["drops"])
            if any(row["wrong"] for row in figures["drops"] if row["dropped"] == "windows"):
                record.found_wrong("an answer of a window that was delivered is not an exact one")
        if {"boxes", "lengths"} & set(chosen.parts):
            spark = session()
            driven_once(spark, root)
            if "boxes" in chosen.parts:
                figures["boxes"] = by_boxes(spark, root, seconds, BOXES[:2] if chosen.quick else BOXES)
                show("Delay by boxes", figures["boxes"])
            if "lengths" in chosen.parts:
                lengths = LENGTHS[::4] if chosen.quick else LENGTHS
                figures["lengths"] = by_length(spark, root, seconds, lengths)
                show("CPU and delay by train length", figures["lengths"])
            spark.stop()
    return record.exit_code


def driven_once(spark: Any, root: Path) -> None:
    """Warm up: code is compiled, workers are started."""
    (root / "warm" / "in").mkdir(parents=True)
    net = chain(root / "warm" / "in", root / "warm" / "out", 1, apart=False)
    driven(spark, root / "warm", net, AsSoonAsPossible(), rate=BOX_RATE, seconds=6.0, period=0.1)


if __name__ == "__main__":
    sys.exit(main())
