"""Overhead of the Spark engine: five networks against the same jobs written by hand in PySpark.

Both sides run in one session, read the same Parquet files, as many in a train, and write Parquet, a
checkpoint and dead letters. Repetitions take turns, and the results are compared row by row. The goal is at
most 1.10 times the hand-written job; the latch has no goal, since Spark has no native operator for it.

Figure: wall time, processor time and time of a train, ours divided by hand-written, for each of the five
        jobs.
Time:   about 25 minutes; --quick about 3.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import Spent, spent
from benchmarks.common.results import Record, recording
from benchmarks.common.running_network import TrainWatch
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from benchmarks.engine.jobs import FILES, JOBS, START, ByHand, Job, write_input
from penstock.engine.contract.policy import AsSoonAsPossible

WARM_UPS = 2  # of each side: the JVM compiles for longer than one run takes
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
WEEK = 7 * 86_400_000_000
SIDES = ("ours", "hand")
QUICK, FULL = {"trains": 4, "rows": 200_000, "repeat": 2}, {"trains": 12, "rows": 500_000, "repeat": 6}
SHOWN = (
    "job", "ours_s", "hand_s", "ratio_s", "ours_cpu_s", "hand_cpu_s", "ratio_cpu_s", "ours_train_s",
    "hand_train_s", "ratio_train_s", "goal", "rows_out", "dead_ours", "dead_hand", "result",
)  # fmt: skip


@dataclass(frozen=True)
class JobRun:
    """One run of one side: what it took, and the seconds of each train."""

    took: Spent
    trains: list[float]


def run_ours(spark: Any, job: Job, folder: Path, work: Path, rows: int) -> JobRun:
    """The network, start to end."""
    net = ps.Network("bench")
    net.output("out", job.network(net, folder), to=ps.parquet(str(work / "out")))
    policy = AsSoonAsPossible(length=rows)
    with spent() as took:
        runtime = ps.Runtime(
            net, spark, work / "checkpoint", once=True, close=True, policy=policy, partitions=2
        )
        with runtime as running:
            watch = TrainWatch(next(iter(running.queries.values())))
            running.wait(600)
    # From commit to commit: that is all a train costs, including the time between two trains.
    done = [train.done for train in watch.seen]
    return JobRun(took, [after - before for before, after in itertools.pairwise(done)])


def run_by_hand(spark: Any, job: Job, folder: Path, work: Path, *, dead_letters: bool) -> JobRun:
    """The hand-written job, start to end."""
    # A hand-written query needs a last empty batch to give the windows that the watermark has passed.
    spark.conf.set(NO_DATA, "true")
    try:
        with spent() as took:
            queries = job.by_hand(ByHand(spark, folder, work / "out", work / "checkpoint", dead_letters))
            for query in queries:
                query.awaitTermination()
    finally:
        spark.conf.set(NO_DATA, "false")
    durations = [p.durationMs for p in queries[0].recentProgress]
    return JobRun(took, [d["triggerExecution"] / 1000 for d in durations if "addBatch" in d])


def result(work: Path) -> pa.Table:
    """What a job wrote, in one order for both sides, without the report of the next day."""
    files = sorted(p for p in (work / "out").rglob("*.parquet") if not p.name.startswith((".", "_")))
    table = pa.concat_tables([pq.ParquetFile(f).read() for f in files])
    table = table.select(sorted(table.column_names))
    for i, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(pa.timestamp("us", "UTC")))
    real = pc.greater_equal(table.column("seg" if "seg" in table.column_names else "vid"), 0)
    return table.filter(real).sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def difference(one: pa.Table, other: pa.Table) -> str:
    """'equal', or what differs."""
    if one.num_rows != other.num_rows:
        return f"rows: {one.num_rows} and {other.num_rows}"
    for name in one.column_names:
        if one.column(name).to_pylist() != other.column(name).to_pylist():
            return f"column {name} differs"
    return "equal"


def dead_letters_of(work: Path, *, by_hand: bool) -> int:
    """How many dead letters a job has kept."""
    if not by_hand:
        from penstock.store.dead_letters import DeadLetters

        return int(DeadLetters(work / "checkpoint").read().num_rows)
    files = (work / "checkpoint" / "dead-letters").rglob("*.parquet")
    return sum(pq.ParquetFile(f).metadata.num_rows for f in files if not f.name.startswith((".", "_")))


def run_all(spark: Any, job: Job, root: Path, chosen: argparse.Namespace) -> dict[str, list[JobRun]]:
    """Warm-ups of each side, then the repetitions in turn."""
    runs: dict[str, list[JobRun]] = {side: [] for side in SIDES}
    for turn in range(WARM_UPS + chosen.repeat):
        # Each repetition has other times: code generated for one horizon must not serve the next run.
        folder = root / f"in{turn}"
        for side in SIDES if turn % 2 else reversed(SIDES):
            work = root / side
            shutil.rmtree(work, ignore_errors=True)
            if side == "ours":
                run = run_ours(spark, job, folder, work, chosen.rows)
            else:
                run = run_by_hand(spark, job, folder, work, dead_letters=not chosen.no_dead_letters)
            print(f"  {job.name} {side}: {run.took.wall:.1f} s, {run.took.cpu:.1f} CPU-s", flush=True)
            runs[side].append(run)
    return runs


def figures_of(job: Job, runs: dict[str, list[JobRun]], root: Path) -> dict[str, Any]:
    """Medians of each side, their ratios, and whether both gave the same."""
    row: dict[str, Any] = {"job": job.name, "goal": job.goal}
    for side, of_side in runs.items():
        counted = of_side[WARM_UPS:]
        row[f"{side}_warm_up_s"] = of_side[0].took.wall
        row[f"{side}_s"] = statistics.median(run.took.wall for run in counted)
        row[f"{side}_cpu_s"] = statistics.median(run.took.cpu for run in counted)
        row[f"{side}_train_s"] = statistics.median(t for run in counted for t in run.trains[:-1])
        row[f"{side}_all"] = [[run.took.wall, run.took.cpu, run.trains] for run in of_side]
    for kind in ("s", "cpu_s", "train_s"):
        row[f"ratio_{kind}"] = row[f"ours_{kind}"] / row[f"hand_{kind}"]
    ours, hand = result(root / "ours"), result(root / "hand")
    row |= {"rows_out": ours.num_rows, "result": difference(ours, hand)}
    row |= {f"dead_{side}": dead_letters_of(root / side, by_hand=side == "hand") for side in SIDES}
    return row


def measure(spark: Any, job: Job, root: Path, chosen: argparse.Namespace, record: Record) -> dict[str, Any]:
    """One job. Results that differ are wrong answers."""
    row = figures_of(job, run_all(spark, job, root, chosen), root)
    if row["result"] != "equal":
        record.found_wrong(f"{job.name}: {row['result']}")
    return row


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int, help="trains of a run")
    parser.add_argument("--rows", type=int, help="tuples of a train")
    parser.add_argument("--repeat", type=int, help="best even: each side goes first as often as the other")
    parser.add_argument(
        "--only", nargs="+", choices=[job.name for job in JOBS], help="default: all five jobs"
    )
    parser.add_argument("--no-dead-letters", action="store_true", help="the hand-written side keeps none")
    chosen = parser.parse_args()
    for name, value in (QUICK if chosen.quick else FULL).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    return chosen


def main() -> int:
    chosen = parse()
    jobs = [job for job in JOBS if chosen.only is None or job.name in chosen.only]
    config = {"trains": chosen.trains, "rows": chosen.rows, "files": FILES, "repeat": chosen.repeat}
    config |= {"warm_ups": WARM_UPS, "hand_dead_letters": not chosen.no_dead_letters}
    with recording("engine-overhead", chosen, **config) as record, scratch() as root:
        for turn in range(WARM_UPS + chosen.repeat):
            folder, start = root / f"in{turn}", START + turn * WEEK
            write_input(folder, chosen.trains, chosen.rows, chosen.seed + turn, start=start)
        rows: list[dict[str, Any]] = []
        ratios: dict[str, float] = {}
        record.figures = {"ratios": ratios, "jobs": rows}
        spark = session()
        for job in jobs:
            rows.append(measure(spark, job, root, chosen, record))
            ratios[job.name] = rows[-1]["ratio_s"]
        spark.stop()
        show("Overhead: ours against hand-written", [{k: row[k] for k in SHOWN} for row in rows])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
