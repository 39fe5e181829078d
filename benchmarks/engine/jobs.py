"""Five jobs, each written twice: as a network, and by hand in PySpark Structured Streaming.

The hand-written side is meant to be good. It uses Spark's native operators where they exist, reads the data
once, and fetches dead letters only when it counted some. Its latch keeps few large keys and calls the same
vectorised function.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps

REPORTS = "time TIMESTAMP, vid INT, spd INT, seg INT, lane INT, dir INT, pos BIGINT"
CALLS = "time TIMESTAMP, vid INT, kind INT"
VEHICLES, SEGMENTS = 50_000, 100
START = 1_767_225_600_000_000  # 2026-01-01 UTC, in microseconds
TRAIN_SECONDS = 20
FILES = 2  # a train, so that both cores read
BAD = 3  # rows a file without a time, as many that cannot be divided by


def write_input(
    folder: Path, trains: int, rows: int, seed: int, *, start: int = START, files: int = FILES
) -> None:
    """Write reports and calls in order of time; the files of one train overlap in time.

    The last file holds one report of the next day. It moves the watermark: without it a hand-written query
    never gives its last windows.
    """
    dice = np.random.default_rng(seed)
    for number in range(trains):
        times = (
            start + number * TRAIN_SECONDS * 1_000_000 + np.arange(rows) * (TRAIN_SECONDS * 1_000_000 // rows)
        )
        for part in range(files):
            mine = times[part::files]
            _put(folder / "reports", number * files + part, _reports(mine, dice))
            _put(folder / "calls", number * files + part, _calls(mine[::10] + 1, dice))
    last = np.array([start + 86_400_000_000])
    for part in range(files):
        table = pa.table(
            {"time": pa.array(last + part, pa.timestamp("us", "UTC"))}
            | {n: pa.array([-1], t) for n, t in _TYPES.items()}
        )
        _put(folder / "reports", trains * files + part, table)


_TYPES = {
    "vid": pa.int32(),
    "spd": pa.int32(),
    "seg": pa.int32(),
    "lane": pa.int32(),
    "dir": pa.int32(),
    "pos": pa.int64(),
}


def _reports(times: Any, dice: Any) -> Any:
    n = len(times)
    bad = np.zeros(n, bool)
    bad[dice.choice(n, BAD, replace=False)] = True
    speed = dice.integers(1, 100, n)
    speed[dice.choice(n, BAD, replace=False)] = 0
    values = {
        "vid": dice.integers(0, VEHICLES, n),
        "spd": speed,
        "seg": dice.integers(0, SEGMENTS, n),
        "lane": dice.integers(0, 5, n),
        "dir": dice.integers(0, 2, n),
        "pos": dice.integers(0, 528_000, n),
    }
    return pa.table(
        {"time": pa.array(times, pa.timestamp("us", "UTC"), mask=bad)}
        | {k: pa.array(v, _TYPES[k]) for k, v in values.items()}
    )


def _calls(times: Any, dice: Any) -> Any:
    n = len(times)
    return pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "vid": pa.array(dice.integers(0, VEHICLES, n), pa.int32()),
            "kind": pa.array(dice.integers(0, 4, n), pa.int32()),
        }
    )


def _put(folder: Path, number: int, table: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:05d}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # both engines take files by age


# -- the latch's function, used by both


def running(batch: Any, state: Any) -> tuple[Any, Any]:
    """For each report: how many its vehicle has sent so far, and the highest speed among them."""
    codes, vehicles = pd.factorize(batch.column("vid").to_numpy())
    count, top = np.zeros(len(vehicles), np.int64), np.full(len(vehicles), -1, np.int32)
    at = pd.Index(vehicles).get_indexer(state.column("vid").to_numpy())
    known = at >= 0
    count[at[known]] = state.column("n").to_numpy()[known]
    top[at[known]] = state.column("top").to_numpy()[known]
    groups = pd.Series(batch.column("spd").to_numpy()).groupby(codes)
    n = count[codes] + groups.cumcount().to_numpy() + 1
    best = np.maximum(top[codes], groups.cummax().to_numpy())
    count += np.bincount(codes, minlength=len(vehicles))
    np.maximum.at(top, codes, best)
    out = pa.table(
        {"time": batch.column("time"), "vid": batch.column("vid"), "n": n, "top": pa.array(best, pa.int32())}
    )
    return out, pa.table(
        {"vid": pa.array(vehicles, pa.int32()), "n": count, "top": pa.array(top, pa.int32())}
    )


# -- the networks


def _reports_of(net: ps.Network, folder: Path) -> ps.Stream:
    return net.source("reports", ps.parquet(str(folder / "reports"), schema=REPORTS), timestamp="time")


def filter_map(net: ps.Network, folder: Path) -> ps.Stream:
    return _reports_of(net, folder).filter("lane < 4 AND dir = 0").map(pace="3600 / spd", mile="pos DIV 5280")


def tumble(net: ps.Network, folder: Path) -> ps.Stream:
    return (
        _reports_of(net, folder)
        .group_by("seg")
        .tumble("1 minute", speed="avg(spd)", n="count(*)", top="max(spd)")
    )


def slide(net: ps.Network, folder: Path) -> ps.Stream:
    return (
        _reports_of(net, folder)
        .group_by("seg")
        .slide("1 minute", every="20 seconds", speed="avg(spd)", n="count(*)", top="max(spd)")
    )


def join(net: ps.Network, folder: Path) -> ps.Stream:
    reports = _reports_of(net, folder)
    calls = net.source("calls", ps.parquet(str(folder / "calls"), schema=CALLS), timestamp="time")
    return reports.select("time", "vid", "spd").join(calls, on=["vid"], within="5 seconds", suffix="_call")


def latch(net: ps.Network, folder: Path) -> ps.Stream:
    lean = _reports_of(net, folder).select("time", "vid", "spd").group_by("vid")
    return lean.latch(
        function=running, state="n BIGINT, top INT", produces="time TIMESTAMP, vid INT, n BIGINT, top INT"
    )


# -- by hand


@dataclass(frozen=True)
class ByHand:
    """What a hand-written job is given: session, input, where to write, where to keep its checkpoint."""

    spark: Any
    folder: Path
    out: Path
    checkpoint: Path
    dead_letters: bool = True

    def reports(self) -> Any:
        return self._read("reports", REPORTS)

    def calls(self) -> Any:
        return self._read("calls", CALLS)

    def _read(self, name: str, schema: str) -> Any:
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES)
        return reader.parquet(str(self.folder / name))

    def start(self, frame: Any, *, mode: str = "append") -> list[Any]:
        """The query, and where it cannot do so itself one more that keeps rows without a time."""
        writer = (
            frame.writeStream.outputMode(mode)
            .format("parquet")
            .option("checkpointLocation", str(self.checkpoint / "main"))
        )
        queries = [writer.trigger(availableNow=True).start(str(self.out))]
        if self.dead_letters:
            dead = (
                self.reports()
                .where("time IS NULL")
                .selectExpr("to_json(struct(*)) AS raw", "'timestamp is null' AS reason")
            )
            writer = dead.writeStream.format("parquet").option(
                "checkpointLocation", str(self.checkpoint / "dead")
            )
            queries.append(writer.trigger(availableNow=True).start(str(self.checkpoint / "dead-letters")))
        return queries


def filter_map_by_hand(job: ByHand) -> list[Any]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    reason = F.expr(
        "CASE WHEN time IS NULL THEN 'timestamp is null' "
        "WHEN lane < 4 AND dir = 0 AND spd = 0 THEN 'division by zero' END"
    )

    def write(batch: Any, number: int) -> None:
        seen = Observation()
        marked = batch.observe(seen, F.count(F.when(reason.isNotNull(), 1)).alias("dead"))
        good = marked.where(reason.isNull()).where("lane < 4 AND dir = 0")
        good = good.withColumn("pace", F.expr("try_divide(3600, spd)")).withColumn(
            "mile", F.expr("pos DIV 5280")
        )
        good.write.mode("overwrite").parquet(str(job.out / f"batch={number}"))
        if seen.get["dead"] and job.dead_letters:
            dead = batch.where(reason.isNotNull()).select(
                F.expr("to_json(struct(*))").alias("raw"), reason.alias("reason")
            )
            dead.write.mode("overwrite").parquet(str(job.checkpoint / "dead-letters" / f"batch={number}"))

    writer = (
        job.reports()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(job.checkpoint / "main"))
    )
    return [writer.trigger(availableNow=True).start()]


def _windowed(job: ByHand, *extent: str) -> list[Any]:
    from pyspark.sql import functions as F

    in_time = job.reports().where("time IS NOT NULL").withWatermark("time", "0 seconds")
    grouped = in_time.groupBy(F.window("time", *extent), "seg")
    windows = grouped.agg(
        F.min("time").alias("time"),
        F.avg("spd").alias("speed"),
        F.count("*").alias("n"),
        F.max("spd").alias("top"),
    )
    return job.start(windows.drop("window"))


def tumble_by_hand(job: ByHand) -> list[Any]:
    return _windowed(job, "1 minute")


def slide_by_hand(job: ByHand) -> list[Any]:
    return _windowed(job, "1 minute", "20 seconds")


def join_by_hand(job: ByHand) -> list[Any]:
    left = (
        job.reports()
        .where("time IS NOT NULL")
        .select("time", "vid", "spd")
        .withWatermark("time", "0 seconds")
    )
    right = (
        job.calls()
        .selectExpr("time AS time_call", "vid AS vid_call", "kind")
        .withWatermark("time_call", "0 seconds")
    )
    near = "vid = vid_call AND time_call BETWEEN time - INTERVAL 5 SECONDS AND time + INTERVAL 5 SECONDS"
    from pyspark.sql import functions as F

    return job.start(left.join(right, F.expr(near)).select("time", "vid", "spd", "time_call", "kind"))


def latch_by_hand(job: ByHand) -> list[Any]:
    lean = job.reports().where("time IS NOT NULL").selectExpr("time", "vid", "spd", "pmod(vid, 2) AS fat")
    running_counts = lean.groupBy("fat").applyInPandasWithState(
        _fat_key, "time TIMESTAMP, vid INT, n BIGINT, top INT", "whole BINARY", "append", "NoTimeout"
    )
    return job.start(running_counts)


_EMPTY = pa.table(
    {"vid": pa.array([], pa.int32()), "n": pa.array([], pa.int64()), "top": pa.array([], pa.int32())}
)


def _fat_key(_key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """All vehicles of a half in one state, as bytes: rows by key through Spark's state are far slower."""
    held = pa.ipc.open_stream(state.get[0]).read_all() if state.exists else _EMPTY
    rows = pd.concat(list(frames)).sort_values("time")
    out, changed = running(pa.Table.from_pandas(rows, preserve_index=False), held)
    kept = held.filter(pa.array(~np.isin(held.column("vid").to_numpy(), changed.column("vid").to_numpy())))
    sink = io.BytesIO()
    whole = pa.concat_tables([kept, changed])
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    state.update((sink.getvalue(),))
    yield out.to_pandas()


@dataclass(frozen=True)
class Job:
    """One of the five."""

    name: str
    network: Callable[[ps.Network, Path], ps.Stream]
    by_hand: Callable[[ByHand], list[Any]]
    goal: float | None = 1.10


JOBS = (
    Job("filter+map", filter_map, filter_map_by_hand),
    Job("tumble", tumble, tumble_by_hand),
    Job("slide", slide, slide_by_hand),
    Job("join", join, join_by_hand),
    Job("latch", latch, latch_by_hand, goal=None),
)
