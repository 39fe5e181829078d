"""Standing queries against what one would do without them, in one run.

(a) One Spark streaming query for each standing query: at which number does it no longer keep up? (b) DuckDB
runs the query again at each invocation, over the same million tuples. (c) A cross join of queries and data in
Spark, written as a join with a range condition. PointsOnlyRuntime them our probe of the same train with the
same queries, as a Spark job, and our invocation. The results of (b) and (c) are compared with ours.

Figure: seconds of a train, tuples a second, milliseconds of an invocation, for each way.
Time:   about 5 minutes; --quick about 2.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from penstock.model.types import Schema
from penstock.standing import Limits, QueryEngine
from penstock.standing.language.query import StreamInfo
from penstock.standing.serving.point_feed import ProbeTask, unpacked
from penstock.store.points.point import PointReader, PointWriter

SCHEMA = Schema.parse("a INT, b INT, v INT")
DOMAIN = 1_000_000
WINDOW = 1_000_000


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--train", type=int, default=100_000, help="tuples that arrive each second")
    parser.add_argument("--most", type=int, default=64, help="(a) tries at most so many streaming queries")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.queries, chosen.train, chosen.most = 500, 20_000, 4
    config = {"queries": chosen.queries, "train": chosen.train}
    with recording("standing-alternatives", chosen, **config) as record, scratch() as folder:
        rng = np.random.default_rng(chosen.seed)
        bounds, spark = ranges(chosen.queries, rng), session()
        record.figures = figures = {}
        figures["ours"], engine, handles, matches = probe(chosen, spark, bounds, folder, rng)
        print(f"ours: {figures['ours']}", flush=True)
        ways: dict[str, Callable[[], dict[str, Any]]] = {
            "duckdb": lambda: by_duckdb(engine, handles, bounds, chosen),
            "cross_join": lambda: cross_join(chosen, spark, bounds, folder, matches),
            "query_each": lambda: query_each(chosen, spark, bounds, folder),
        }
        for name, measure in ways.items():
            # One that fails is a result too, and does not keep the others from being measured.
            try:
                figures[name] = measure()
            except Exception as error:
                figures[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
                record.found_wrong(f"{name}: {figures[name]['failed']}")
            print(f"{name}: {figures[name]}", flush=True)
        spark.stop()
        report(figures)
    return record.exit_code


def ranges(count: int, rng: Any) -> np.ndarray:
    """Two ranges for each query: low and high of a, low and high of b; 0.1 % in the median, 1 % at most."""
    share = np.sqrt(np.clip(np.exp(rng.normal(np.log(0.001), 0.8, count)), 1e-5, 0.01))
    width = (DOMAIN * share).astype(np.int64)
    low = [(rng.random(count) * (DOMAIN - width)).astype(np.int64) for _ in range(2)]
    return np.stack([low[0], low[0] + width, low[1], low[1] + width], axis=1)


def text(row: np.ndarray, window: str = "") -> str:
    return (
        f"SELECT v FROM r WHERE a BETWEEN {row[0]} AND {row[1]} AND b BETWEEN {row[2]} AND {row[3]} {window}"
    )


def tuples(first: int, count: int, rng: Any) -> pa.Table:
    at = np.arange(first, first + count)
    columns = {name: rng.integers(0, DOMAIN, count).astype(np.int32) for name in SCHEMA.names}
    return pa.table({**columns, "_ts": at, "_seq": at})


# -- ours


def probe(chosen: argparse.Namespace, spark: Any, bounds: np.ndarray, folder: Path, rng: Any) -> Any:
    """A train of a connection point through the feed's own task; then invocations over a million tuples."""
    engine = QueryEngine([StreamInfo("r", SCHEMA)], limits=Limits(1 << 30))
    handles = [engine.register(text(row, f"BEGIN last {WINDOW} tuples")).handle for row in bounds]
    for first in range(0, WINDOW - chosen.train, chosen.train):
        engine.insert("r", tuples(first, chosen.train, rng))
    table = tuples(WINDOW, chosen.train, rng)
    pq.write_table(table.select(list(SCHEMA.names)), folder / "train.parquet")
    took, blocks = _probe_train(spark, engine.index("r"), _point_with(table, folder))
    matches = sum(len(b.matches.positions) for b in blocks if b.matches is not None)
    engine.insert_blocks("r", blocks)
    invoked = [_invocation_ms(engine, handle) for handle in handles[:500]]
    best = min(took[1:])
    figures = {
        "train_s": best,
        "train_s_first": took[0],
        "tuples_per_second": chosen.train / best,
        "matches": matches,
        "invocation_ms_p50": quantile(invoked, 0.5),
        "invocation_ms_p99": quantile(invoked, 0.99),
    }
    return figures, engine, handles, matches


def _point_with(table: pa.Table, folder: Path) -> Any:
    """The plan to read a connection point that holds one train in two partitions."""
    writer, half = PointWriter(folder, "r", SCHEMA), table.num_rows // 2
    files = [f for p in (0, 1) for f in writer.stage(0, [table.slice(p * half, half)], partition=p)]
    writer.commit(0, files, horizon=0)
    return PointReader(folder, "r").plan(0, 0)


def _probe_train(spark: Any, index: Any, plan: Any) -> tuple[list[float], list[Any]]:
    """Seconds of each of five probes, and the blocks of the last."""
    context, shares = spark.sparkContext, [(plan, [file]) for file in plan.files]
    sent, took, blocks = context.broadcast(index), [], []
    for _ in range(5):
        begun = time.perf_counter()
        bodies = context.parallelize(shares, len(shares)).flatMap(ProbeTask(SCHEMA, sent, 0)).collect()
        blocks = [unpacked(body, SCHEMA, index) for body in bodies]
        took.append(time.perf_counter() - begun)
    return took, blocks


def _invocation_ms(engine: QueryEngine, handle: str) -> float:
    begun = time.perf_counter()
    engine.invoke(handle)
    return (time.perf_counter() - begun) * 1e3


# -- (c) cross join


def cross_join(
    chosen: argparse.Namespace, spark: Any, bounds: np.ndarray, folder: Path, matches: int
) -> dict[str, Any]:
    columns = dict(zip(("a0", "a1", "b0", "b1"), bounds.T, strict=True))
    queries = spark.createDataFrame(pa.table({"q": np.arange(len(bounds)), **columns}).to_pandas())
    data = spark.read.parquet(str(folder / "train.parquet")).repartition(2)
    from pyspark.sql import functions as F

    joined = data.crossJoin(F.broadcast(queries)).where("a BETWEEN a0 AND a1 AND b BETWEEN b0 AND b1")
    took, joined_rows = [], 0
    for _ in range(2):
        begun = time.perf_counter()
        joined_rows = joined.select("q", "v").count()
        took.append(time.perf_counter() - begun)
    assert joined_rows == matches, (joined_rows, matches)
    return {"train_s": min(took), "tuples_per_second": chosen.train / min(took), "matches": joined_rows}


# -- (b) DuckDB at each invocation


def by_duckdb(
    engine: QueryEngine, handles: list[str], bounds: np.ndarray, chosen: argparse.Namespace
) -> dict[str, Any]:
    con = duckdb.connect()
    con.execute("SET threads = 2")
    window = pa.concat_tables([b.table for b in engine.view.prefixes["r"].blocks])
    window = window.slice(window.num_rows - WINDOW) if window.num_rows > WINDOW else window
    con.register("given", window)
    con.execute("CREATE TABLE r AS SELECT * FROM given")
    took = []
    for number in range(40 if chosen.quick else 200):
        begun = time.perf_counter()
        answer = con.sql(text(bounds[number])).to_arrow_table()
        took.append((time.perf_counter() - begun) * 1e3)
        assert sorted(answer["v"].to_pylist()) == sorted(engine.invoke(handles[number])["v"].to_pylist())
    return {
        "invocation_ms_p50": quantile(took, 0.5),
        "invocation_ms_p99": quantile(took, 0.99),
        "compared": len(took),
    }


# -- (a) one streaming query each


def query_each(chosen: argparse.Namespace, spark: Any, bounds: np.ndarray, folder: Path) -> dict[str, Any]:
    """Double the number of streaming queries until they need more than two seconds for a second's tuples."""
    rows, count, budget = [], 1, time.monotonic() + (40 if chosen.quick else 150)
    while count <= chosen.most and time.monotonic() < budget:
        lag = _lag(spark, bounds[:count], folder / f"each{count}")
        rows.append({"queries": count, "lag_s": lag})
        print(f"(a) {count} streaming queries: {lag:.2f} s behind", flush=True)
        if lag > 2.0:
            break
        count *= 2
    fits = [row["queries"] for row in rows if row["lag_s"] <= 2.0]
    return {
        "rows": rows,
        "keeps_up_with": max(fits, default=0),
        "chokes_at": next((r["queries"] for r in rows if r["lag_s"] > 2.0), None),
    }


def _lag(spark: Any, bounds: np.ndarray, folder: Path) -> float:
    """Median seconds from a file's arrival until all queries are through; four files, one a second."""
    (folder / "in").mkdir(parents=True)
    source = folder.parent / "train.parquet"
    frame = spark.readStream.schema("a INT, b INT, v INT").parquet(str(folder / "in"))
    running = []
    for number, row in enumerate(bounds):
        chosen = frame.where(f"a BETWEEN {row[0]} AND {row[1]} AND b BETWEEN {row[2]} AND {row[3]}")
        writer = chosen.writeStream.format("noop").option("checkpointLocation", str(folder / f"c{number}"))
        running.append(writer.start())
    try:
        lags = []
        for number in range(5):
            begun = time.perf_counter()
            aside = folder / f".{number}.parquet"
            aside.write_bytes(source.read_bytes())
            aside.rename(folder / "in" / f"{number}.parquet")
            for query in running:
                query.processAllAvailable()
            lags.append(time.perf_counter() - begun)
            time.sleep(max(0.0, 1.0 - lags[-1]))
        return quantile(lags[1:], 0.5)  # the first one starts the queries
    finally:
        for query in running:
            with contextlib.suppress(Exception):
                query.stop()


def report(figures: dict[str, Any]) -> None:
    ours, each = figures["ours"], figures["query_each"]
    duck, cross = figures["duckdb"], figures["cross_join"]
    last = (each.get("rows") or [{}])[-1]
    most = f"(a) a streaming query each, {last.get('queries')}"
    rows = [
        ("ours: probe in Spark tasks", ours["train_s"], ours["tuples_per_second"], ours["invocation_ms_p50"]),
        (most, last.get("lag_s"), None, None),
        ("(b) DuckDB at each invocation", None, None, duck.get("invocation_ms_p50")),
        ("(c) cross join in Spark", cross.get("train_s"), cross.get("tuples_per_second"), None),
    ]
    names = ("way", "a train, s", "tuples/s", "invocation p50 ms")
    note = f"(a) keeps up with {each.get('keeps_up_with')}, chokes at {each.get('chokes_at')}"
    show("standing queries and the alternatives", [dict(zip(names, row, strict=True)) for row in rows], note)


if __name__ == "__main__":
    sys.exit(main())
