"""The tuples and queries of the paper's experiments, and how long an invocation takes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.common.process_tree import kit_command
from benchmarks.common.spark import scratch
from penstock.model.types import Schema
from penstock.standing.answers.query_engine import QueryEngine
from penstock.standing.language.query import StandingQuery, StreamInfo
from penstock.standing.limits import Limits

SCHEMA = Schema.parse("k INT, a INT, b INT, c INT, d INT")
REPORTS = Schema.parse("vid INT, spd INT, lane INT, seg INT")
DOMAIN = 10_000
STEP = 1000  # microseconds between tuples: windows in tuples are windows in time
TRAIN = 16_384


def tuples(count: int, seed: int, first: int = 0, stream: str = "r") -> pa.Table:
    rng = np.random.default_rng([seed, first, len(stream)])
    at = np.arange(first, first + count)
    columns = {name: rng.integers(0, DOMAIN, count).astype(np.int32) for name in SCHEMA.names}
    return pa.table({**columns, "_ts": at * STEP, "_seq": at})


def road(count: int, seed: int, first: int = 0) -> pa.Table:
    """Position reports of the Linear Road generator, in order; here too, windows are counted in tuples."""
    reports = _reports(seed)
    at = np.arange(first, first + count)
    part = reports.take(pa.array(at % reports.num_rows))
    return part.append_column("_ts", pa.array(at * STEP)).append_column("_seq", pa.array(at))


@cache
def _reports(seed: int) -> pa.Table:
    """70 minutes of one expressway, as `penstock lr generate` makes them."""
    with scratch() as folder:
        size = ["--xways", 1, "--minutes", 70, "--format", "parquet", "--jobs", 1, "--seed", seed]
        command = kit_command("generate", *size, "--out", folder / "lr")
        subprocess.run(command, check=True, capture_output=True)
        table = pa.concat_tables([pq.read_table(path) for path in sorted((folder / "lr").glob("*.parquet"))])
    table = table.filter(pc.equal(table["Type"], 0)).select(["VID", "Spd", "Lane", "Seg"])
    return table.rename_columns(list(REPORTS.names)).combine_chunks()


def filled(
    texts: Sequence[str | StandingQuery],
    mode: str,
    count: int,
    seed: int,
    make: Callable[..., pa.Table] = tuples,
    schema: Schema = SCHEMA,
) -> tuple[QueryEngine, list[str]]:
    """A engine with queries registered first and data inserted afterwards, train by train."""
    engine = QueryEngine(
        [StreamInfo("r", schema, keep=1 << 50), StreamInfo("s", schema, keep=1 << 50)],
        limits=Limits(1 << 30, 1 << 30),
    )
    handles = [engine.register(text, mode=mode).handle for text in texts]
    for first in range(0, count, TRAIN):
        engine.insert("r", make(min(TRAIN, count - first), seed, first))
    return engine, handles


def response(engine: QueryEngine, handles: list[str], least: float = 0.15) -> float:
    """Median milliseconds of an invocation, over all queries and at least so many seconds."""
    for handle in handles[:2]:
        engine.invoke(handle)
    took: list[float] = []
    until = time.perf_counter() + least
    while time.perf_counter() < until or len(took) < len(handles):
        handle = handles[len(took) % len(handles)]
        begun = time.perf_counter()
        engine.invoke(handle)
        took.append((time.perf_counter() - begun) * 1e3)
    return float(np.median(took))


def span(rng: np.random.Generator, share: float, column: str) -> str:
    width = max(1, int(DOMAIN * share))
    low = int(rng.integers(0, DOMAIN - width + 1))
    return f"{column} BETWEEN {low} AND {low + width - 1}"


def window_of(count: int) -> str:
    return f"BEGIN now - {(count - 1) * STEP} microseconds END now"
