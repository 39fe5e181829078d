"""Skew: one window join on keys that are uniform, Zipf 1.0, Zipf 1.5, and one key with 86 %; Spark's own join, hash, diffused, auto.

The same files in the same trains for all, in one session, after a warm-up; results are compared. `spark` is Spark's own
stream-stream join, the others are ours. The predicate passes few pairs, so that comparing them is the work. Spark's own join needs
microseconds a pair on a hot key, so each distribution has as many tuples as it can digest; `large` is without it, with windows so full that
comparing pairs dominates, which is the case in which a hot key hurts. Task times come from Spark's event log, the same way for all.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from common import options, scratch, session, show, spent, write_result
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import TrainLog

SCHEMA = "time TIMESTAMP, k INT, v INT"
WHERE = "abs(v - v_right) <= 1"
DISTRIBUTIONS = ("uniform", "zipf 1.0", "zipf 1.5", "86 %")
LARGE = " large"
WAYS = ("spark", "hash", "diffused", "auto")
KEYS, SERVERS = 1000, 2
DIGESTIBLE = {
    "uniform": 100_000,
    "zipf 1.0": 30_000,
    "zipf 1.5": 15_000,
    "86 %": 8_000,
}  # by Spark's own join


@dataclass
class Made:
    """One run: what it took and what it gave."""

    way: str
    wall: float
    cpu: float
    trains: list[float]
    span: tuple[float, float]
    state: list[int] = field(default_factory=list)
    rows: Any = None
    note: str = ""


def keys(kind: str, count: int, dice: Any) -> np.ndarray:
    """Keys of one stream."""
    kind = kind.removesuffix(LARGE)
    if kind == "uniform":
        return dice.integers(0, KEYS, count)
    if kind == "86 %":
        return np.where(dice.random(count) < 0.86, 0, dice.integers(1, KEYS, count))
    weights = np.arange(1, KEYS + 1) ** -float(kind.split()[1])
    return dice.choice(KEYS, count, p=weights / weights.sum())


def write_input(folder: Path, kind: str, chosen: Any) -> None:
    """Both streams in order of time, one file of each for every train."""
    dice = np.random.default_rng([chosen.seed, DISTRIBUTIONS.index(kind.removesuffix(LARGE))])
    for side in ("left", "right"):
        place = folder / side
        place.mkdir(parents=True)
        count = chosen.tuples
        times = np.sort(dice.integers(0, chosen.seconds * 1_000_000, count))
        table = pa.table({
            "time": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "k": keys(kind, count, dice).astype(np.int32),
            "v": dice.integers(0, 10_000, count).astype(np.int32),
        })  # fmt: skip
        size = count // chosen.trains
        for n in range(chosen.trains):
            pq.write_table(table.slice(n * size, size), place / f"{n:03d}.parquet")
            time.sleep(0.02)  # files are taken in order of their time


def ours(spark: Any, way: str, folder: Path, place: Path, chosen: Any) -> Made:
    """A join of ours."""
    net = ps.Network("skew")
    left, right = (
        net.source(n, ps.parquet(str(folder / n), SCHEMA), timestamp="time") for n in ("left", "right")
    )
    spread = {} if way == "hash" else {"distribution": way, "servers": SERVERS, "sample": "5 seconds"}
    joined = left.join(right, on="k", within=f"{chosen.window} seconds", where=WHERE, name="pairs", **spread)
    joined.select("k", "v", "v_right").output("out", to=ps.parquet(str(place / "out")))
    policy, begin = AsSoonAsPossible(length=chosen.tuples // chosen.trains), time.time()
    with (
        spent() as took,
        ps.Runtime(net, spark, place / "checkpoint", once=True, policy=policy, partitions=SERVERS) as run,
    ):
        run.wait(900)
        query = next(iter(run.queries.values()))
        trains = seconds_of(query.query)
    log = TrainLog(query.trains.place)
    made = Made(way, took.wall, took.cpu, trains, (begin, time.time()))
    tickets = [t for t in (log.ticket(n) for n in range(log.last() + 1)) if t is not None]
    commits = [c for c in (log.commit(n) for n in range(log.last() + 1)) if c is not None]
    held = [
        [sum(r["held"]) for r in sorted(c.joins["pairs"], key=lambda r: r["server"])]
        for c in commits
        if c.joins
    ]
    made.state = held[-2] if len(held) > 1 else []
    schemes = [t.joins["pairs"]["scheme"] for t in tickets if t.joins]
    made.note = " > ".join(f"{s} ({schemes.count(s)})" for s in dict.fromkeys(schemes))
    return made


def sparks_own(spark: Any, folder: Path, place: Path, chosen: Any) -> Made:
    """Spark's stream-stream join by hand."""
    from pyspark.sql import functions as F

    def side(name: str, suffix: str) -> Any:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        return frame.withWatermark("time", "0 seconds").select(
            *[F.col(c).alias(c + suffix) for c in ("time", "k", "v")]
        )

    window = f"INTERVAL {chosen.window} SECONDS"
    near = F.expr(
        f"k = k_right AND time_right >= time - {window} AND time_right <= time + {window} AND {WHERE}"
    )
    joined = side("left", "").join(side("right", "_right"), near).select("k", "v", "v_right")
    begin = time.time()
    with spent() as took:
        writer = joined.writeStream.format("parquet").option("path", str(place / "out"))
        query = (
            writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
        )
        query.awaitTermination()
        trains = seconds_of(query)
    made = Made("spark", took.wall, took.cpu, trains, (begin, time.time()))
    counts: dict[int, int] = defaultdict(int)
    for which in ("left", "right"):
        reader = spark.read.format("statestore").option("joinSide", which)
        for row in reader.load(str(place / "checkpoint")).groupBy("partition_id").count().collect():
            counts[row["partition_id"]] += row["count"]
    made.state = [counts[n] for n in range(SERVERS)]
    return made


def seconds_of(query: Any) -> list[float]:
    """Seconds of each train, as Spark counts them."""
    return [
        p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress if "addBatch" in p.durationMs
    ]


def result(place: Path) -> list[tuple[int, ...]]:
    """What was written, sorted."""
    files = [p for p in (place / "out").rglob("*.parquet") if not p.name.startswith((".", "_"))]
    tables = [pq.ParquetFile(f).read() for f in files]
    table = pa.concat_tables(tables) if tables else pa.table({"k": [], "v": [], "v_right": []})
    return sorted(zip(*(table.column(n).to_pylist() for n in ("k", "v", "v_right")), strict=True))


def task_skew(log: Path, span: tuple[float, float]) -> tuple[float, list[float]]:
    """Of the tasks behind the shuffle in this span of time: max / mean of the partitions' seconds, and the seconds."""
    seconds: dict[int, float] = defaultdict(float)
    for line in log.read_text().splitlines():
        if '"SparkListenerTaskEnd"' not in line:
            continue
        event = json.loads(line)
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        read = metrics.get("Shuffle Read Metrics", {}).get("Total Records Read", 0)
        if read and span[0] * 1000 <= info["Launch Time"] <= span[1] * 1000:
            seconds[info["Partition ID"]] += metrics["Executor Run Time"] / 1000
    found = [seconds.get(n, 0.0) for n in range(max([SERVERS - 1, *seconds]) + 1)]
    mean = sum(found) / len(found)
    return (max(found) / mean if mean else float("nan")), found


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--tuples", type=int, default=120_000, help="of each stream")
    parser.add_argument("--seconds", type=int, default=300, help="of stream time")
    parser.add_argument("--window", type=int, default=15, help="seconds, both ways")
    parser.add_argument("--trains", type=int, default=5)
    parser.add_argument("--events", type=Path, help="keep Spark's event log there")
    parser.add_argument("--keys", default=",".join((*DISTRIBUTIONS, f"86 %{LARGE}")))
    parser.add_argument(
        "--repeat", type=int, default=3, help="hash and auto on uniform keys, in turn: to see 5 %%"
    )
    parser.add_argument("--ways", default=",".join(WAYS))
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.tuples, chosen.trains, chosen.keys, chosen.repeat = 5000, 3, "uniform,86 %", 1
    rows, wrong = [], 0
    with scratch() as root:
        (root / "log").mkdir()
        spark = session(**{
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{root}/log", "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false", "spark.sql.shuffle.partitions": str(SERVERS),
        })  # fmt: skip
        runs = []
        warm = chosen.keys.split(",")[0]
        for number, kind in enumerate((f"warm-up {warm}", *chosen.keys.split(","))):
            real = not kind.startswith("warm-up")
            folder = root / f"in-{number}"
            tuples = 500 * chosen.trains if not real else chosen.tuples
            if real and not kind.endswith(LARGE):
                tuples = min(tuples, DIGESTIBLE[kind])
            small = type(chosen)(**{**vars(chosen), "tuples": tuples})
            write_input(folder, kind.removeprefix("warm-up "), small)
            ways = [way for way in chosen.ways.split(",") if way != "spark" or not kind.endswith(LARGE)]
            ways += [way for way in ("hash", "auto") if kind == "uniform" and way in ways] * (
                chosen.repeat - 1
            )
            for turn, way in enumerate(ways):
                place = root / "out" / f"{number}-{turn}-{way}"
                made = (
                    sparks_own(spark, folder, place, small)
                    if way == "spark"
                    else ours(spark, way, folder, place, small)
                )
                made.rows = result(place)
                print(
                    f"  {kind} {way}: {made.wall:.1f} s, trains {sum(made.trains):.1f} s, {made.cpu:.1f} CPU-s {made.note}",
                    flush=True,
                )
                if real:
                    runs.append((kind, tuples, made))
                shutil.rmtree(place, ignore_errors=True)
        spark.stop()
        log = max((root / "log").iterdir(), key=lambda p: p.stat().st_size)
        if chosen.events is not None:
            shutil.copy(log, chosen.events)
        for kind, tuples, made in runs:
            first = next(m for k, _, m in runs if k == kind)
            same = made.rows == first.rows
            wrong += not same
            skew, seconds = task_skew(log, made.span)
            rows.append({
                "keys": kind, "way": made.way, "tuples": 2 * tuples, "tuples_per_s": 2 * tuples / sum(made.trains), "trains_s": sum(made.trains),
                "run_s": made.wall, "cpu_s": made.cpu, "task_skew": skew, "task_s": seconds, "state": made.state,
                "pairs": len(made.rows), "result": "equal" if same else "DIFFERS", "chose": made.note, "train_s": made.trains,
            })  # fmt: skip
    shown = (
        "keys",
        "way",
        "tuples_per_s",
        "trains_s",
        "run_s",
        "cpu_s",
        "task_skew",
        "state",
        "pairs",
        "result",
        "chose",
    )
    show("Skew: throughput, task-time skew, state", [{n: r[n] for n in shown} for r in rows])
    write_result(
        "diffusion-skew",
        chosen,
        {"where": WHERE, "keys": KEYS, "servers": SERVERS, **{n: str(v) for n, v in vars(chosen).items()}},
        rows,
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
