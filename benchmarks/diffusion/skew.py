"""A window join on skewed keys: Spark's own join, and ours by hash, diffused and with the automatic choice.

Keys are uniform, Zipf 1.0, Zipf 1.5, or one key with 86 % of the tuples. All ways read the same files in the
same trains, in one session, after a warm-up, and their results are compared. The predicate passes few pairs,
so comparing pairs is the work. Spark's own join needs microseconds a pair on a hot key, so each distribution
has as many tuples as Spark can digest. `large` leaves Spark out; its windows are so full that comparing pairs
dominates, which is where a hot key hurts. Task times come from Spark's event log, in the same way for all.

Figure: tuples a second, seconds of all trains, and task skew (slowest partition divided by the mean), for
        each way.
Time:   about 12 minutes; --quick about 2.
"""

from __future__ import annotations

import argparse
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
from benchmarks.common.command_line import given, options
from benchmarks.common.process_tree import spent
from benchmarks.common.results import Record, recording
from benchmarks.common.running_network import TrainWatch
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_log import TrainLog

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
SHOWN = (
    "keys", "way", "tuples_per_s", "trains_s", "run_s", "cpu_s", "task_skew", "state", "pairs", "result",
    "chose",
)  # fmt: skip


@dataclass
class JoinRun:
    """One run of the join: what it took and what it gave."""

    way: str
    wall: float
    cpu: float
    trains: list[float]
    span: tuple[float, float]
    state: list[int] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)
    schemes: str = ""


@dataclass(frozen=True)
class Case:
    """One distribution of keys; a warm-up is measured but not counted."""

    kind: str
    tuples: int
    folder: Path
    warm_up: bool = False


def keys(kind: str, count: int, dice: np.random.Generator) -> np.ndarray:
    """Keys of one stream."""
    kind = kind.removesuffix(LARGE)
    if kind == "uniform":
        return dice.integers(0, KEYS, count)
    if kind == "86 %":
        return np.where(dice.random(count) < 0.86, 0, dice.integers(1, KEYS, count))
    weights = np.arange(1, KEYS + 1) ** -float(kind.split()[1])
    return dice.choice(KEYS, count, p=weights / weights.sum())


def write_input(case: Case, chosen: argparse.Namespace) -> None:
    """Both streams in order of time, one file of each for every train."""
    dice = np.random.default_rng([chosen.seed, DISTRIBUTIONS.index(case.kind.removesuffix(LARGE))])
    for side in ("left", "right"):
        folder = case.folder / side
        folder.mkdir(parents=True)
        count = case.tuples
        times = np.sort(dice.integers(0, chosen.seconds * 1_000_000, count))
        table = pa.table(
            {
                "time": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
                "k": keys(case.kind, count, dice).astype(np.int32),
                "v": dice.integers(0, 10_000, count).astype(np.int32),
            }
        )
        size = count // chosen.trains
        for n in range(chosen.trains):
            pq.write_table(table.slice(n * size, size), folder / f"{n:03d}.parquet")
            time.sleep(0.02)  # files are taken in order of their time


def network(way: str, folder: Path, out: Path, chosen: argparse.Namespace) -> ps.Network:
    net = ps.Network("skew")
    left, right = (
        net.source(n, ps.parquet(str(folder / n), SCHEMA), timestamp="time") for n in ("left", "right")
    )
    spread: dict[str, Any] = (
        {} if way == "hash" else {"distribution": way, "servers": SERVERS, "sample": "5 seconds"}
    )
    joined = left.join(right, on="k", within=f"{chosen.window} seconds", where=WHERE, name="pairs", **spread)
    joined.select("k", "v", "v_right").output("out", to=ps.parquet(str(out)))
    return net


def run_ours(spark: Any, way: str, case: Case, work: Path, chosen: argparse.Namespace) -> JoinRun:
    """A join of ours."""
    net = network(way, case.folder, work / "out", chosen)
    policy, begin = AsSoonAsPossible(length=case.tuples // chosen.trains), time.time()
    with (
        spent() as took,
        ps.Runtime(
            net, spark, work / "checkpoint", once=True, close=True, policy=policy, partitions=SERVERS
        ) as runtime,
    ):
        query = next(iter(runtime.queries.values()))
        watch = TrainWatch(query)
        runtime.wait(900)
    trains = [train.done - train.started for train in watch.seen]
    log = TrainLog(query.trains.directory)
    run = JoinRun(way, took.wall, took.cpu, trains, (begin, time.time()))
    tickets = [t for t in (log.ticket(n) for n in range(log.last() + 1)) if t is not None]
    commits = [c for c in (log.commit(n) for n in range(log.last() + 1)) if c is not None]
    held = [
        [sum(r.held) for r in sorted(c.joins["pairs"], key=lambda r: r.server)] for c in commits if c.joins
    ]
    run.state = held[-2] if len(held) > 1 else []
    schemes = [t.joins["pairs"].scheme for t in tickets if t.joins]
    run.schemes = " > ".join(f"{s} ({schemes.count(s)})" for s in dict.fromkeys(schemes))
    return run


def run_sparks_own(spark: Any, folder: Path, work: Path, chosen: argparse.Namespace) -> JoinRun:
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
        writer = joined.writeStream.format("parquet").option("path", str(work / "out"))
        writer = writer.option("checkpointLocation", str(work / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        trains = seconds_of(query)
    run = JoinRun("spark", took.wall, took.cpu, trains, (begin, time.time()))
    counts: dict[int, int] = defaultdict(int)
    for which in ("left", "right"):
        reader = spark.read.format("statestore").option("joinSide", which)
        for row in reader.load(str(work / "checkpoint")).groupBy("partition_id").count().collect():
            counts[row["partition_id"]] += row["count"]
    run.state = [counts[n] for n in range(SERVERS)]
    return run


def seconds_of(query: Any) -> list[float]:
    """Seconds of each train, as Spark counts them."""
    return [
        p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress if "addBatch" in p.durationMs
    ]


def result(work: Path) -> list[tuple[int, ...]]:
    """What was written, sorted."""
    files = [p for p in (work / "out").rglob("*.parquet") if not p.name.startswith((".", "_"))]
    tables = [pq.ParquetFile(f).read() for f in files]
    table = pa.concat_tables(tables) if tables else pa.table({"k": [], "v": [], "v_right": []})
    return sorted(zip(*(table.column(n).to_pylist() for n in ("k", "v", "v_right")), strict=True))


def task_skew(log: Path, span: tuple[float, float]) -> tuple[float, list[float]]:
    """The slowest partition behind the shuffle divided by the mean, and the seconds of each partition."""
    seconds: dict[int, float] = defaultdict(float)
    for line in log.read_text().splitlines():
        if '"SparkListenerTaskEnd"' not in line:
            continue
        event = json.loads(line)
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        read = metrics.get("Shuffle Read Metrics", {}).get("Total Records Read", 0)
        if read and span[0] * 1000 <= info["Launch Time"] <= span[1] * 1000:
            seconds[info["Partition ID"]] += metrics["Executor Run Time"] / 1000
    partitions = [seconds.get(n, 0.0) for n in range(max([SERVERS - 1, *seconds]) + 1)]
    mean = sum(partitions) / len(partitions)
    return (max(partitions) / mean if mean else float("nan")), partitions


def cases(root: Path, chosen: argparse.Namespace) -> list[Case]:
    """A small warm-up, then each distribution with as many tuples as Spark's own join can digest."""
    kinds = chosen.keys.split(",")
    chosen_cases = [Case(kinds[0], 500 * chosen.trains, root / "warm-up", warm_up=True)]
    for number, kind in enumerate(kinds):
        most = chosen.tuples if kind.endswith(LARGE) else DIGESTIBLE[kind]
        chosen_cases.append(Case(kind, min(chosen.tuples, most), root / f"in-{number}"))
    return chosen_cases


def ways_of(case: Case, chosen: argparse.Namespace) -> list[str]:
    """`large` is too much for Spark's own join; hash and auto repeat on uniform keys, to see 5 %."""
    ways: list[str] = [
        way for way in chosen.ways.split(",") if way != "spark" or not case.kind.endswith(LARGE)
    ]
    repeated = [way for way in ("hash", "auto") if case.kind == "uniform" and way in ways]
    repeats: int = chosen.repeat - 1
    return ways + repeated * repeats


def run_case(spark: Any, case: Case, root: Path, chosen: argparse.Namespace) -> list[JoinRun]:
    """All ways of one distribution."""
    write_input(case, chosen)
    runs = []
    for way in ways_of(case, chosen):
        work = root / "out"
        if way == "spark":
            run = run_sparks_own(spark, case.folder, work, chosen)
        else:
            run = run_ours(spark, way, case, work, chosen)
        run.rows = result(work)
        shutil.rmtree(work, ignore_errors=True)
        times = f"{run.wall:.1f} s, trains {sum(run.trains):.1f} s, {run.cpu:.1f} CPU-s"
        print(f"  {case.kind} {way}: {times} {run.schemes}", flush=True)
        runs.append(run)
    return runs


def row_of(case: Case, run: JoinRun, log: Path, *, equal: bool) -> dict[str, Any]:
    skew, seconds = task_skew(log, run.span)
    return {
        "keys": case.kind,
        "way": run.way,
        "tuples": 2 * case.tuples,
        "tuples_per_s": 2 * case.tuples / sum(run.trains),
        "trains_s": sum(run.trains),
        "run_s": run.wall,
        "cpu_s": run.cpu,
        "task_skew": skew,
        "task_s": seconds,
        "state": run.state,
        "pairs": len(run.rows),
        "result": "equal" if equal else "DIFFERS",
        "chose": run.schemes,
        "train_s": run.trains,
    }


def measure(root: Path, chosen: argparse.Namespace, record: Record) -> list[dict[str, Any]]:
    """All distributions in one session; its event log is whole only when it has stopped."""
    (root / "log").mkdir()
    logging = {
        "enabled": "true",
        "dir": f"file://{root}/log",
        "rolling.enabled": "false",
        "compress": "false",
    }
    settings = {f"spark.eventLog.{name}": value for name, value in logging.items()}
    spark = session({**settings, "spark.sql.shuffle.partitions": str(SERVERS)})
    runs = [(case, run_case(spark, case, root, chosen)) for case in cases(root, chosen)]
    spark.stop()
    log = max((root / "log").iterdir(), key=lambda p: p.stat().st_size)
    if chosen.events is not None:
        shutil.copy(log, chosen.events)
    rows = []
    for case, of_case in runs:
        for run in of_case:
            equal = run.rows == of_case[0].rows
            if not equal:
                record.found_wrong(f"{case.kind}: {run.way} and {of_case[0].way} give different pairs")
            if not case.warm_up:
                rows.append(row_of(case, run, log, equal=equal))
    record.warm_up = {run.way: run.wall for run in runs[0][1]}
    return rows


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--tuples", type=int, default=120_000, help="of each stream")
    parser.add_argument("--seconds", type=int, default=300, help="of stream time")
    parser.add_argument("--window", type=int, default=15, help="seconds, both ways")
    parser.add_argument("--trains", type=int, default=5)
    parser.add_argument("--events", type=Path, help="keep Spark's event log there")
    parser.add_argument("--keys", default=",".join((*DISTRIBUTIONS, f"86 %{LARGE}")))
    parser.add_argument("--repeat", type=int, default=3, help="runs of hash and auto on uniform keys")
    parser.add_argument("--ways", default=",".join(WAYS))
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.tuples, chosen.trains, chosen.keys, chosen.repeat = 5000, 3, "uniform,86 %", 1
    return chosen


def main() -> int:
    chosen = parse()
    config = {**given(chosen), "where": WHERE, "distinct_keys": KEYS, "servers": SERVERS}
    with recording("diffusion-skew", chosen, **config) as record, scratch() as root:
        rows = measure(root, chosen, record)
        record.figures = rows
        show("Skew: throughput, task-time skew, state", [{n: r[n] for n in SHOWN} for r in rows])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
