"""What a durable connection point on a path costs: processor seconds a million tuples, and latency.

The same path twice, filter and map on the way to Parquet files, once with a connection point in the middle: that
makes two sub-networks of one, and every tuple is written and read once more.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as ps
from common import Feeder, Spent, options, quantile, scratch, session, show, spent, write_result
from overhead_jobs import FILES, REPORTS, write_input
from penstock.engine.contract.policy import AsSoonAsPossible


def network(source: Path, out: Path, *, point: bool) -> ps.Network:
    net = ps.Network("path")
    reports = net.source("reports", ps.parquet(str(source), schema=REPORTS), timestamp="time")
    stream = reports.filter("lane < 4")
    if point:
        stream = stream.connection_point("middle", keep="10 minutes", key="seg")
    net.output("out", stream.map(mile="pos DIV 5280").filter("dir = 0"), to=ps.parquet(str(out)))
    return net


def through(spark: Any, source: Path, place: Path, rows: int, *, point: bool) -> Spent:
    """All that is there, as fast as possible."""
    shutil.rmtree(place, ignore_errors=True)
    with spent() as took:
        net = network(source, place / "out", point=point)
        with ps.Runtime(
            net, spark, place / "checkpoint", once=True, policy=AsSoonAsPossible(length=rows)
        ) as running:
            running.wait(600)
    return took


def latency(spark: Any, prepared: list[Path], root: Path, period: float, *, point: bool) -> list[float]:
    """Both files of a train at once, as their times overlap: seconds from their being there to their tuples being in the output."""
    place = root / ("live-with" if point else "live-without")
    source = place / "in"
    copies = [Path(shutil.copy(path, root / "copy" / path.name)) for path in prepared]
    net = network(source, place / "out", point=point)
    feeder = Feeder(copies, source, period, FILES)
    seen: dict[str, tuple[float, int]] = {}
    with ps.Runtime(net, spark, place / "checkpoint") as running:
        feeder.start()
        quiet = time.time() + 120
        while time.time() < quiet and (feeder.is_alive() or not _all(prepared, seen)):
            for path in (place / "out").glob("part-*.parquet"):
                if path.name not in seen:
                    seen[path.name] = (time.time(), pq.ParquetFile(path).metadata.num_rows)
            time.sleep(0.005)
        running.check()
    passing = [_passing(path) for path in prepared]
    trains = [sum(passing[i : i + FILES]) for i in range(0, len(passing), FILES)]
    return _delays(feeder.given, trains, list(seen.values()))


def _all(prepared: list[Path], seen: dict[str, tuple[float, int]]) -> bool:
    return sum(rows for _, rows in seen.values()) >= sum(_passing(path) for path in prepared)


def _passing(path: Path) -> int:
    table = pq.ParquetFile(path).read(columns=["time", "lane", "dir"]).to_pandas()
    return int(((table["lane"] < 4) & (table["dir"] == 0) & table["time"].notna()).sum())


def _delays(given: list[float], expected: list[int], seen: list[tuple[float, int]]) -> list[float]:
    """When the tuples of each train were all there, less when its files were."""
    found, wanted, have = [], 0, 0
    order = iter(sorted(seen))
    at = 0.0
    for begun, rows in zip(given, expected, strict=True):
        wanted += rows
        while have < wanted:
            at, more = next(order)
            have += more
        found.append(at - begun)
    return found


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, help="tuples a train")
    parser.add_argument("--repeat", type=int)
    chosen = parser.parse_args()
    rows, trains = chosen.rows or (200_000 if chosen.quick else 500_000), 4 if chosen.quick else 10
    repeat = chosen.repeat or (2 if chosen.quick else 5)
    spark = session()
    with scratch() as root:
        write_input(root / "in", trains, rows, chosen.seed)
        write_input(root / "small", 8 if chosen.quick else 30, 20_000, chosen.seed)
        (root / "copy").mkdir()
        runs: dict[bool, list[Spent]] = {False: [], True: []}
        for turn in range(repeat + 1):
            for point in (False, True) if turn % 2 else (True, False):
                runs[point].append(through(spark, root / "in" / "reports", root / "run", rows, point=point))
                print(
                    f"  {'with' if point else 'without'}: {runs[point][-1].wall:.1f} s, {runs[point][-1].cpu:.1f} CPU-s",
                    flush=True,
                )
        prepared = sorted((root / "small" / "reports").glob("*.parquet"))[:-FILES]
        period = 2.0 if chosen.quick else 1.0
        delays = {point: latency(spark, prepared, root, period, point=point)[2:] for point in (False, True)}
    total = trains * rows
    table = []
    for point, found in runs.items():
        cpu = statistics.median(r.cpu for r in found[1:]) / total * 1e6
        row = {
            "path": "with the point" if point else "without",
            "wall_s": statistics.median(r.wall for r in found[1:]),
            "cpu_s_per_M": cpu,
        }
        row |= {
            "latency_p50_s": quantile(delays[point], 0.5),
            "latency_p99_s": quantile(delays[point], 0.99),
            "warm_up_s": found[0].wall,
        }
        table.append(row)
    cost = {"path": "the point costs", **{k: table[1][k] - table[0][k] for k in table[0] if k != "path"}}
    ratio = {"path": "ratio", **{k: table[1][k] / table[0][k] for k in table[0] if k != "path"}}
    show("A durable connection point on a path", [*table, cost, ratio])
    config = {"rows": rows, "trains": trains, "repeat": repeat}
    write_result(
        "connection-point",
        chosen,
        config,
        {"table": [*table, cost, ratio], "delays": {str(k): v for k, v in delays.items()}},
    )
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
