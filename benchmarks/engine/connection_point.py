"""What a durable connection point on a path costs.

The same path is measured three times: filter and map on the way to Parquet files. Once it has a connection
point in the middle. That makes two sub-networks of one, so every tuple is written and read once more. Once
the point is beside the path, and nobody reads it: a history that is kept for questions that may come.

Figure: processor seconds a million tuples, and latency from file to output, without a point and with each.
Time:   about 9 minutes; --quick about 3.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import Spent, spent
from benchmarks.common.results import Record, recording
from benchmarks.common.running_network import Feeder
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.jobs import FILES, REPORTS, write_input
from penstock.engine.contract.policy import AsSoonAsPossible

PATHS = {
    "without": "without",
    "unread": "with a point that nobody reads",
    "with": "with the point",
}


def network(source: Path, out: Path, path: str) -> ps.Network:
    net = ps.Network("path")
    reports = net.source("reports", ps.parquet(str(source), schema=REPORTS), timestamp="time")
    stream = reports.filter("lane < 4")
    if path != "without":
        kept = stream.connection_point("middle", keep="10 minutes", key="seg")
        stream = kept if path == "with" else stream
    net.output("out", stream.map(mile="pos DIV 5280").filter("dir = 0"), to=ps.parquet(str(out)))
    return net


def run_through(spark: Any, source: Path, work: Path, rows: int, path: str) -> Spent:
    """All files that are there, as fast as possible."""
    shutil.rmtree(work, ignore_errors=True)
    policy = AsSoonAsPossible(length=rows)
    with spent() as took:
        net = network(source, work / "out", path)
        with ps.Runtime(net, spark, work / "checkpoint", once=True, close=True, policy=policy) as running:
            running.wait(600)
    return took


def latency(spark: Any, prepared: list[Path], root: Path, period: float, path: str) -> list[float]:
    """Seconds from the arrival of a train's files until all their tuples are in the output.

    Both files of a train arrive at once, because their times overlap.
    """
    work = root / f"live-{path}"
    source = work / "in"
    copies = [Path(shutil.copy(file, root / "copy" / file.name)) for file in prepared]
    net = network(source, work / "out", path)
    feeder = Feeder(copies, source, period, FILES)
    seen: dict[str, tuple[float, int]] = {}
    with ps.Runtime(net, spark, work / "checkpoint") as running:
        feeder.start()
        quiet = time.time() + 120
        while time.time() < quiet and (feeder.is_alive() or not _all(prepared, seen)):
            for file in (work / "out").glob("part-*.parquet"):
                if file.name not in seen:
                    seen[file.name] = (time.time(), pq.ParquetFile(file).metadata.num_rows)
            time.sleep(0.005)
        running.check()
    passing = [_passing(file) for file in prepared]
    trains = [sum(passing[i : i + FILES]) for i in range(0, len(passing), FILES)]
    return _delays(feeder.given, trains, list(seen.values()))


def _all(prepared: list[Path], seen: dict[str, tuple[float, int]]) -> bool:
    return sum(rows for _, rows in seen.values()) >= sum(_passing(path) for path in prepared)


def _passing(path: Path) -> int:
    table = pq.ParquetFile(path).read(columns=["time", "lane", "dir"]).to_pandas()
    return int(((table["lane"] < 4) & (table["dir"] == 0) & table["time"].notna()).sum())


def _delays(given: list[float], expected: list[int], seen: list[tuple[float, int]]) -> list[float]:
    """When the tuples of each train were all there, less when its files were."""
    delays, wanted, have = [], 0, 0
    order = iter(sorted(seen))
    at = 0.0
    for begun, rows in zip(given, expected, strict=True):
        wanted += rows
        while have < wanted:
            at, more = next(order)
            have += more
        delays.append(at - begun)
    return delays


def run_in_turn(spark: Any, root: Path, rows: int, chosen: argparse.Namespace) -> dict[str, list[Spent]]:
    """All paths in turn; the first run of each warms up."""
    runs: dict[str, list[Spent]] = {path: [] for path in PATHS}
    for turn in range(chosen.repeat + 1):
        for path in PATHS if turn % 2 else reversed(PATHS):
            took = run_through(spark, root / "in" / "reports", root / "run", rows, path)
            print(f"  {path}: {took.wall:.1f} s, {took.cpu:.1f} CPU-s", flush=True)
            runs[path].append(took)
    return runs


def row_of(name: str, runs: list[Spent], delays: list[float], tuples: int) -> dict[str, Any]:
    return {
        "path": name,
        "wall_s": statistics.median(run.wall for run in runs[1:]),
        "cpu_s_per_M": statistics.median(run.cpu for run in runs[1:]) / tuples * 1e6,
        "latency_p50_s": quantile(delays, 0.5),
        "latency_p99_s": quantile(delays, 0.99),
    }


def compared(without: dict[str, Any], unread: dict[str, Any], read: dict[str, Any]) -> list[dict[str, Any]]:
    """What each point costs beyond the path without one, and how many times as much the path then costs."""
    names = [name for name in without if name != "path"]
    return [
        {"path": "the unread point costs", **{n: unread[n] - without[n] for n in names}},
        {"path": "the point costs", **{n: read[n] - without[n] for n in names}},
        {"path": "ratio", **{n: read[n] / without[n] for n in names}},
    ]


def measure(spark: Any, root: Path, chosen: argparse.Namespace, record: Record) -> list[dict[str, Any]]:
    write_input(root / "in", chosen.trains, chosen.rows, chosen.seed)
    write_input(root / "small", 8 if chosen.quick else 30, 20_000, chosen.seed)
    (root / "copy").mkdir()
    runs = run_in_turn(spark, root, chosen.rows, chosen)
    record.warm_up = {f"{path}_s": each[0].wall for path, each in runs.items()}
    prepared = sorted((root / "small" / "reports").glob("*.parquet"))[:-FILES]
    period = 2.0 if chosen.quick else 1.0
    delays = {path: latency(spark, prepared, root, period, path)[2:] for path in PATHS}
    tuples = chosen.trains * chosen.rows
    rows = [row_of(name, runs[path], delays[path], tuples) for path, name in PATHS.items()]
    table = rows + compared(*rows)
    record.figures = {"table": table, "delays_s": delays}
    return table


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, help="tuples of a train")
    parser.add_argument("--repeat", type=int, help="how often each path runs")
    chosen = parser.parse_args()
    chosen.rows = chosen.rows or (200_000 if chosen.quick else 500_000)
    chosen.repeat = chosen.repeat or (2 if chosen.quick else 5)
    chosen.trains = 4 if chosen.quick else 10
    return chosen


def main() -> int:
    chosen = parse()
    config = {"rows": chosen.rows, "trains": chosen.trains, "repeat": chosen.repeat}
    with recording("engine-connection-point", chosen, **config) as record, scratch() as root:
        spark = session()
        show("A durable connection point on a path", measure(spark, root, chosen, record))
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
