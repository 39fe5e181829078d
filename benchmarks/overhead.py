"""Overhead: five networks on the Spark engine against the same jobs hand-written in PySpark, in one session.

Same Parquet files, as many of them in a train, Parquet out, a checkpoint and dead letters on both sides; repetitions
alternate; the results are compared row by row. The goal: at most 1.10 times the hand-written job for the native ones.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock as ps
from common import Spent, TrainWatch, options, scratch, session, show, spent, write_result
from overhead_jobs import FILES, JOBS, START, ByHand, Job, write_input
from penstock.engine.contract.policy import AsSoonAsPossible

WARM_UPS = 2  # of each side: the JVM compiles for longer than one run takes
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


def ours(spark: Any, job: Job, folder: Path, place: Path, rows: int) -> tuple[Spent, list[float]]:
    """The network, start to end; seconds of each train."""
    net = ps.Network("bench")
    net.output("out", job.network(net, folder), to=ps.parquet(str(place / "out")))
    with spent() as took:
        runtime = ps.Runtime(
            net, spark, place / "checkpoint", once=True, policy=AsSoonAsPossible(length=rows), partitions=2
        )
        with runtime as running:
            watch = TrainWatch(next(iter(running.queries.values())))
            running.wait(600)
    # from commit to commit: all that a train costs, also between two trains
    done = [train["done"] for train in watch.seen]
    return took, [after - before for before, after in itertools.pairwise(done)]


def by_hand(
    spark: Any, job: Job, folder: Path, place: Path, *, dead_letters: bool
) -> tuple[Spent, list[float]]:
    """The hand-written job, start to end."""
    # a hand-written query needs a last empty batch to give the windows that the watermark has passed
    spark.conf.set(NO_DATA, "true")
    try:
        with spent() as took:
            queries = job.by_hand(ByHand(spark, folder, place / "out", place / "checkpoint", dead_letters))
            for query in queries:
                query.awaitTermination()
    finally:
        spark.conf.set(NO_DATA, "false")
    return took, _trains(queries[:1])


def _trains(queries: list[Any]) -> list[float]:
    return [
        p.durationMs["triggerExecution"] / 1000
        for q in queries
        for p in q.recentProgress
        if "addBatch" in p.durationMs
    ]


def result(place: Path) -> Any:
    """What a job has written, in an order of its own; the row of the next day left out."""
    files = sorted(p for p in (place / "out").rglob("*.parquet") if not p.name.startswith((".", "_")))
    table = pa.concat_tables([pq.ParquetFile(f).read() for f in files])
    table = table.select(sorted(table.column_names))
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp("us", "UTC")))
    real = pc.greater_equal(table.column("seg" if "seg" in table.column_names else "vid"), 0)
    return table.filter(real).sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def equal(one: Any, other: Any) -> str:
    """'equal', or what differs."""
    if one.num_rows != other.num_rows:
        return f"rows: {one.num_rows} and {other.num_rows}"
    for name in one.column_names:
        if one.column(name).to_pylist() != other.column(name).to_pylist():
            return f"column {name} differs"
    return "equal"


def dead_count(place: Path, *, hand: bool) -> int:
    """How many dead letters a job has kept."""
    if not hand:
        from penstock.store.dead_letters import DeadLetters

        return int(DeadLetters(place / "checkpoint").read().num_rows)
    files = (place / "checkpoint" / "dead-letters").rglob("*.parquet")
    return sum(pq.ParquetFile(f).metadata.num_rows for f in files if not f.name.startswith((".", "_")))


def measure(spark: Any, job: Job, root: Path, chosen: Any) -> dict[str, Any]:
    """One job: warm-ups of each side, then so many repetitions in turn."""
    runs: dict[str, list[tuple[Spent, list[float]]]] = {"ours": [], "hand": []}
    for turn in range(WARM_UPS + chosen.repeat):
        for side in ("ours", "hand") if turn % 2 else ("hand", "ours"):
            # other times in every repetition: code that Spark generates for one horizon must not serve the next run
            folder = root / f"in{turn}"
            place = root / side
            shutil.rmtree(place, ignore_errors=True)
            if side == "ours":
                runs[side].append(ours(spark, job, folder, place, chosen.rows))
            else:
                runs[side].append(by_hand(spark, job, folder, place, dead_letters=not chosen.no_dead_letters))
            print(
                f"  {job.name} {side}: {runs[side][-1][0].wall:.1f} s, {runs[side][-1][0].cpu:.1f} CPU-s",
                flush=True,
            )
    row: dict[str, Any] = {"job": job.name, "goal": job.goal}
    for side, found in runs.items():
        row[f"{side}_warm_up_s"] = found[0][0].wall
        row[f"{side}_s"] = statistics.median(took.wall for took, _ in found[WARM_UPS:])
        row[f"{side}_cpu_s"] = statistics.median(took.cpu for took, _ in found[WARM_UPS:])
        row[f"{side}_train_s"] = statistics.median(t for _, trains in found[WARM_UPS:] for t in trains[:-1])
        row[f"{side}_all"] = [[took.wall, took.cpu, trains] for took, trains in found]
    for kind in ("s", "cpu_s", "train_s"):
        row[f"ratio_{kind}"] = row[f"ours_{kind}"] / row[f"hand_{kind}"]
    row["rows_out"] = result(root / "ours").num_rows
    row["result"] = equal(result(root / "ours"), result(root / "hand"))
    row["dead_ours"], row["dead_hand"] = (
        dead_count(root / "ours", hand=False),
        dead_count(root / "hand", hand=True),
    )
    return row


SHOWN = ("job", "ours_s", "hand_s", "ratio_s", "ours_cpu_s", "hand_cpu_s", "ratio_cpu_s", "ours_train_s", "hand_train_s",
         "ratio_train_s", "goal", "rows_out", "dead_ours", "dead_hand", "result")  # fmt: skip


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int)
    parser.add_argument("--rows", type=int, help="tuples a train")
    parser.add_argument("--repeat", type=int, help="best even: each side goes first as often as the other")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="begin no further job after so many seconds"
    )
    parser.add_argument("--only", nargs="+", choices=[job.name for job in JOBS])
    parser.add_argument("--no-dead-letters", action="store_true", help="the hand-written side keeps none")
    chosen = parser.parse_args()
    small = {"trains": 4, "rows": 200_000, "repeat": 2}
    full = {"trains": 12, "rows": 500_000, "repeat": 6}
    for name, value in (small if chosen.quick else full).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    spark = session()
    with scratch() as root:
        for turn in range(WARM_UPS + chosen.repeat):
            start = START + turn * 7 * 86_400_000_000
            write_input(root / f"in{turn}", chosen.trains, chosen.rows, chosen.seed + turn, start=start)
        jobs = [job for job in JOBS if chosen.only is None or job.name in chosen.only]
        begun, figures = time.monotonic(), []
        for job in jobs:
            if time.monotonic() - begun > chosen.budget:
                break
            figures.append(measure(spark, job, root, chosen))
    show("Overhead: ours against hand-written", [{k: row[k] for k in SHOWN} for row in figures])
    config = {
        "trains": chosen.trains,
        "rows": chosen.rows,
        "files": FILES,
        "repeat": chosen.repeat,
        "warm_ups": WARM_UPS,
        "hand_dead_letters": not chosen.no_dead_letters,
    }
    write_result("overhead", chosen, config, figures)
    spark.stop()
    return 0 if all(row["result"] == "equal" for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
