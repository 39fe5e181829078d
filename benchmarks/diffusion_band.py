"""A band join, |a - b| <= c and no equality: Spark refuses it as a stream, we run it diffused; and theorem 2 beside the formula.

The pairs are counted by DuckDB and by numpy's nested loops on the same rows and windows. Memory and bandwidth of each
server (Gu and Yu, theorem 2; S10) are read from the reports that servers leave in the commit records.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from common import options, scratch, session, show, spent, write_result
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import TrainLog

SCHEMA = "time TIMESTAMP, v INT"
BAND = 2
SPAN = 100_000
RATES = (4, 1)  # left has so many times the tuples of right


def write_input(folder: Path, chosen: Any) -> dict[str, Any]:
    dice, made = np.random.default_rng(chosen.seed), {}
    for side, share in zip(("left", "right"), RATES, strict=True):
        count = chosen.tuples * share
        table = pa.table({
            "time": pa.array(np.sort(dice.integers(0, chosen.seconds * 1_000_000, count))).cast(pa.timestamp("us", tz="UTC")),
            "v": dice.integers(0, SPAN, count).astype(np.int32),
        })  # fmt: skip
        (folder / side).mkdir(parents=True)
        # cut by time, so that both streams are equally far in every train
        stamps, edges = (
            table["time"].cast(pa.int64()).to_numpy(),
            np.arange(chosen.trains + 1) * chosen.seconds * 1_000_000 // chosen.trains,
        )
        cuts = np.searchsorted(stamps, edges)
        for n in range(chosen.trains):
            pq.write_table(table.slice(cuts[n], cuts[n + 1] - cuts[n]), folder / side / f"{n:03d}.parquet")
            time.sleep(0.02)
        made[side] = table
    return made


def refused(spark: Any, folder: Path, place: Path, chosen: Any) -> str:
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
        writer = left.join(right, near).writeStream.format("noop").option("checkpointLocation", str(place))
        writer.trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        return str(error).splitlines()[0][:200]
    return "accepted"


def ours(spark: Any, folder: Path, place: Path, chosen: Any, servers: int, left: int) -> dict[str, Any]:
    """The join diffused over so many servers."""
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
    joined.select("v", "v_right").output("out", to=ps.parquet(str(place / "out")))
    policy = AsSoonAsPossible(length=2 * left // chosen.trains)
    with (
        spent() as took,
        ps.Runtime(net, spark, place / "checkpoint", once=True, policy=policy, partitions=2) as run,
    ):
        run.wait(600)
        query = next(iter(run.queries.values()))
    log = TrainLog(query.trains.place)
    commits = [c for c in (log.commit(n) for n in range(log.last() + 1)) if c is not None and c.joins]
    full = [c.joins["pairs"] for c in commits[:-1]]
    files = [p for p in (place / "out").rglob("*.parquet") if not p.name.startswith((".", "_"))]
    rate = [chosen.tuples * share / chosen.seconds for share in RATES]
    # over all trains: one may bring more of one stream than of the other
    received = sum(sum(r["received"]) for c in commits for r in c.joins["pairs"])
    return {
        "servers": servers,
        "seconds": took.wall,
        "cpu_s": took.cpu,
        "pairs": sum(pq.ParquetFile(f).metadata.num_rows for f in files),
        "operations": sum(r["operations"] for reports in full for r in reports),
        "held_mean": float(np.mean([sum(r["held"]) for r in full[-1]])),
        "held_formula": (rate[0] / servers + rate[1]) * chosen.window,
        "received_per_s": received / servers / chosen.seconds,
        "received_formula": rate[0] / servers + rate[1],
        "most_operations_over_mean": max(r["operations"] for r in full[-1])
        / np.mean([r["operations"] for r in full[-1]]),
    }


def by_duckdb(made: dict[str, Any], chosen: Any) -> tuple[int, float]:
    left, right = made["left"], made["right"]
    begin = time.perf_counter()
    window = f"INTERVAL {chosen.window} SECONDS"
    db = duckdb.connect()
    db.register("l", left)
    db.register("r", right)
    sql = f"SELECT count(*) FROM l JOIN r ON r.time BETWEEN l.time - {window} AND l.time + {window} AND abs(l.v - r.v) <= {BAND}"
    row = db.execute(sql).fetchone()
    assert row is not None
    return row[0], time.perf_counter() - begin


def by_numpy(made: dict[str, Any], chosen: Any) -> tuple[int, float]:
    """For each left tuple all of the right ones in its window: the obvious loop."""
    times, values = (
        [made[s][c].cast(pa.int64()).to_numpy() for s in ("left", "right")] for c in ("time", "v")
    )
    begin = time.perf_counter()
    first, last = (
        np.searchsorted(times[1], times[0] + sign * chosen.window * 1_000_000, which)
        for sign, which in ((-1, "left"), (1, "right"))
    )
    pairs = sum(
        int((np.abs(values[1][a:b] - v) <= BAND).sum())
        for a, b, v in zip(first, last, values[0], strict=True)
    )
    return pairs, time.perf_counter() - begin


def main() -> int:
    parser = options(__doc__)
    parser.add_argument(
        "--tuples", type=int, default=30_000, help="of the slower stream; the other has 4 times as many"
    )
    parser.add_argument("--seconds", type=int, default=200)
    parser.add_argument("--window", type=int, default=10)
    parser.add_argument("--trains", type=int, default=8)
    parser.add_argument("--servers", default="1,2,4")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.tuples, chosen.trains = 6000, 4
    with scratch() as root:
        made = write_input(root / "in", chosen)
        spark = session(**{"spark.sql.shuffle.partitions": "2"})
        said = refused(spark, root / "in", root / "refused", chosen)
        print(f"Spark's own stream-stream join: {said}")
        ours(spark, root / "in", root / "warm", chosen, 2, made["left"].num_rows)
        rows = [
            ours(spark, root / "in", root / f"k{k}", chosen, k, made["left"].num_rows)
            for k in map(int, chosen.servers.split(","))
        ]
        spark.stop()
    others = {"duckdb": by_duckdb(made, chosen), "numpy": by_numpy(made, chosen)}
    show("Band join, diffused; theorem 2", rows)
    show(
        "The same pairs elsewhere, all rows at once",
        [{"by": n, "pairs": p, "seconds": s} for n, (p, s) in others.items()],
    )
    write_result("diffusion-band", chosen, vars(chosen), {"spark_says": said, "ours": rows, "others": others})
    right = {pairs for pairs, _ in others.values()} | {row["pairs"] for row in rows}
    if len(right) > 1:
        print(f"the pairs differ: {right}")
    return len(right) != 1


if __name__ == "__main__":
    sys.exit(main())
