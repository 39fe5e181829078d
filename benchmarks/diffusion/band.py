"""A band join: |a - b| <= 2 and no equality. Spark refuses it as a stream; we run it diffused.

DuckDB and nested loops in numpy count the pairs on the same rows and windows. Memory and bandwidth of each
server (Gu and Yu, theorem 2) come from the reports that servers leave in the commit records.

Figure: seconds, processor seconds and pairs for 1, 2 and 4 servers; what a server holds and receives,
        measured and by the formula of the paper.
Time:   about 2 minutes; --quick about 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import given, options
from benchmarks.common.process_tree import spent
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_log import TrainLog

SCHEMA = "time TIMESTAMP, v INT"
BAND = 2
SPAN = 100_000
RATES = (4, 1)  # left has so many times the tuples of right


def write_input(folder: Path, chosen: argparse.Namespace) -> dict[str, pa.Table]:
    """Both streams as files, and as tables for the other ways of counting."""
    dice, tables = np.random.default_rng(chosen.seed), {}
    end = chosen.seconds * 1_000_000
    edges = np.arange(chosen.trains + 1) * end // chosen.trains
    for side, share in zip(("left", "right"), RATES, strict=True):
        count = chosen.tuples * share
        stamps = np.sort(dice.integers(0, end, count))
        values = dice.integers(0, SPAN, count).astype(np.int32)
        table = pa.table({"time": pa.array(stamps).cast(pa.timestamp("us", tz="UTC")), "v": values})
        (folder / side).mkdir(parents=True)
        # Cut by time, so that both streams are equally far in every train.
        cuts = np.searchsorted(stamps, edges)
        for n in range(chosen.trains):
            pq.write_table(table.slice(cuts[n], cuts[n + 1] - cuts[n]), folder / side / f"{n:03d}.parquet")
            time.sleep(0.02)
        tables[side] = table
    return tables


def refused(spark: Any, folder: Path, work: Path, chosen: argparse.Namespace) -> str:
    """What Spark says to the same join as a stream."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    left, right = (
        spark.readStream.schema(SCHEMA)
        .parquet(str(folder / n))
        .withWatermark("time", "0 seconds")
        .toDF(f"t{n}", f"v{n}")
        for n in ("left", "right")
    )
    window = f"INTERVAL {chosen.window} SECONDS"
    near = F.expr(f"tright BETWEEN tleft - {window} AND tleft + {window} AND abs(vleft - vright) <= {BAND}")
    try:
        writer = left.join(right, near).writeStream.format("noop").option("checkpointLocation", str(work))
        writer.trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        return str(error).splitlines()[0][:200]
    return "accepted"


def network(folder: Path, out: Path, servers: int, chosen: argparse.Namespace) -> ps.Network:
    net = ps.Network("band")
    a, b = (net.source(n, ps.parquet(str(folder / n), SCHEMA), timestamp="time") for n in ("left", "right"))
    joined = a.join(
        b,
        within=f"{chosen.window} seconds",
        where=f"abs(v - v_right) <= {BAND}",
        distribution="diffused",
        servers=servers,
        name="pairs",
    )
    joined.select("v", "v_right").output("out", to=ps.parquet(str(out)))
    return net


def run_diffused(
    spark: Any, folder: Path, work: Path, chosen: argparse.Namespace, servers: int
) -> dict[str, Any]:
    """The join diffused over so many servers."""
    policy = AsSoonAsPossible(length=2 * chosen.tuples * RATES[0] // chosen.trains)
    net = network(folder, work / "out", servers, chosen)
    with (
        spent() as took,
        ps.Runtime(
            net, spark, work / "checkpoint", once=True, close=True, policy=policy, partitions=2
        ) as run,
    ):
        run.wait(600)
        query = next(iter(run.queries.values()))
    log = TrainLog(query.trains.directory)
    commits = [c for c in (log.commit(n) for n in range(log.last() + 1)) if c is not None and c.joins]
    full = [c.joins["pairs"] for c in commits[:-1]]
    work_of_last = [r.operations for r in full[-1]]
    files = [p for p in (work / "out").rglob("*.parquet") if not p.name.startswith((".", "_"))]
    rate = [chosen.tuples * share / chosen.seconds for share in RATES]
    # Over all trains: one may bring more of one stream than of the other.
    received = sum(sum(r.received) for c in commits for r in c.joins["pairs"])
    return {
        "servers": servers,
        "seconds": took.wall,
        "cpu_s": took.cpu,
        "pairs": sum(pq.ParquetFile(f).metadata.num_rows for f in files),
        "operations": sum(r.operations for reports in full for r in reports),
        "held_mean": float(np.mean([sum(r.held) for r in full[-1]])),
        "held_formula": (rate[0] / servers + rate[1]) * chosen.window,
        "received_per_s": received / servers / chosen.seconds,
        "received_formula": rate[0] / servers + rate[1],
        "most_operations_over_mean": max(work_of_last) / np.mean(work_of_last),
    }


def by_duckdb(tables: dict[str, pa.Table], chosen: argparse.Namespace) -> tuple[int, float]:
    begin = time.perf_counter()
    window = f"INTERVAL {chosen.window} SECONDS"
    db = duckdb.connect()
    db.register("l", tables["left"])
    db.register("r", tables["right"])
    near = f"r.time BETWEEN l.time - {window} AND l.time + {window} AND abs(l.v - r.v) <= {BAND}"
    row = db.execute(f"SELECT count(*) FROM l JOIN r ON {near}").fetchone()
    assert row is not None
    return row[0], time.perf_counter() - begin


def by_numpy(tables: dict[str, pa.Table], chosen: argparse.Namespace) -> tuple[int, float]:
    """For each left tuple all right ones in its window: the obvious loop."""
    times, values = (
        [tables[s][c].cast(pa.int64()).to_numpy() for s in ("left", "right")] for c in ("time", "v")
    )
    begin = time.perf_counter()
    window = chosen.window * 1_000_000
    first = np.searchsorted(times[1], times[0] - window, "left")
    last = np.searchsorted(times[1], times[0] + window, "right")
    pairs = sum(
        int((np.abs(values[1][a:b] - v) <= BAND).sum())
        for a, b, v in zip(first, last, values[0], strict=True)
    )
    return pairs, time.perf_counter() - begin


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument(
        "--tuples", type=int, default=30_000, help="of the slower stream; the other has 4 times as many"
    )
    parser.add_argument("--seconds", type=int, default=200, help="of stream time")
    parser.add_argument("--window", type=int, default=10, help="seconds, both ways")
    parser.add_argument("--trains", type=int, default=8)
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 2, 4])
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.tuples, chosen.trains = 6000, 4
    return chosen


def main() -> int:
    chosen = parse()
    with recording("diffusion-band", chosen, **given(chosen)) as record, scratch() as root:
        tables = write_input(root / "in", chosen)
        spark = session({"spark.sql.shuffle.partitions": "2"})
        answer = refused(spark, root / "in", root / "refused", chosen)
        print(f"Spark's own stream-stream join: {answer}")
        warm = run_diffused(spark, root / "in", root / "warm", chosen, 2)
        record.warm_up = {"seconds": warm["seconds"]}
        rows = [run_diffused(spark, root / "in", root / f"k{k}", chosen, k) for k in chosen.servers]
        spark.stop()
        others = {"duckdb": by_duckdb(tables, chosen), "numpy": by_numpy(tables, chosen)}
        record.figures = {"spark_says": answer, "ours": rows, "others": others}
        show("Band join, diffused; theorem 2", rows)
        by_others = [{"by": name, "pairs": pairs, "seconds": s} for name, (pairs, s) in others.items()]
        show("The same pairs elsewhere, all rows at once", by_others)
        counts = {pairs for pairs, _ in others.values()} | {row["pairs"] for row in rows}
        if len(counts) > 1:
            record.found_wrong(f"the number of pairs differs: {sorted(counts)}")
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
