"""The floor of a train: what one costs that carries ten tuples, and how soon a tuple gets through.

First empty micro-batches of a bare streaming query, with the engine's settings and with Spark's defaults for
the checkpoint. Then trains of ten tuples through one native box, one stage and two stages, and the same three
jobs written by hand in PySpark, a file of ten tuples each micro-batch. Last a stream of 1,000 tuples a
second, file to file: from the moment a file is there to the moment the output of its last tuple is.

Figure: milliseconds of a train from commit to commit (by hand: of a trigger), processor milliseconds of all
        processes, milliseconds in the Spark job; of the stream the latency of each file.
Time:   about 4 minutes; --quick about 2.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import cpu_seconds
from benchmarks.common.results import recording
from benchmarks.common.running_network import Feeder, TrainWatch
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.python_source import TrainSource
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.engine.spark.session import SETTINGS
from penstock.engine.spark.trains.train import Trains

START = 1_767_225_600_000_000
SCHEMA = "time TIMESTAMP, k INT"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
CHECKSUM = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
SPARKS_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
JOBS = ("one native box", "one stage", "two stages")
RATE, PERIOD = 1_000, 0.1  # of the stream: tuples a second, seconds between two files


def prepare(folder: Path, files: int, tuples: int = 10, step: int = 1_000_000) -> list[Path]:
    """Files of some tuples each; the times of two files are `step` microseconds apart."""
    folder.mkdir(parents=True)
    paths = [folder / f"{number:05d}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        times = [START + number * step + i for i in range(tuples)]
        keys = [i % 10 for i in range(tuples)]
        table = pa.table(
            {"time": pa.array(times, pa.timestamp("us", "UTC")), "k": pa.array(keys, pa.int32())}
        )
        pq.write_table(table, path)
    return paths


def network(name: str, source: Path, out: Path) -> ps.Network:
    net = ps.Network("floor")
    stream = net.source("ticks", ps.parquet(str(source), schema=SCHEMA, settle="0"), timestamp="time")
    if name == "one native box":
        stream = stream.filter("k < 5")
    else:
        stream = stream.group_by("k").tumble("1 second", n="count(*)")
    if name == "two stages":
        stream = stream.map(half="k DIV 2").group_by("half").tumble("5 seconds", n="sum(n)")
    net.output("out", stream, to=ps.parquet(str(out)))
    return net


def by_hand(name: str, frame: Any) -> Any:
    """The same job in PySpark."""
    from pyspark.sql import functions as F

    if name == "one native box":
        return frame.where("k < 5")
    counted = frame.withWatermark("time", "0 seconds").groupBy("k", F.window("time", "1 second"))
    frame = counted.agg(F.count("*").alias("n"))
    if name == "two stages":
        halves = frame.selectExpr("k DIV 2 AS half", "window_time(window) AS time", "n")
        frame = halves.groupBy("half", F.window("time", "5 seconds")).agg(F.sum("n").alias("n"))
    return frame.drop("window")


def run_bare(spark: Any, work: Path, trains: int) -> dict[str, Any]:
    """Empty tickets, each as soon as the one before is done; nothing happens in the train."""
    log, done = TrainLog(work), []
    spark.dataSource.register(TrainSource)

    def nothing(_frame: Any, train: int) -> None:
        done.append((time.time(), cpu_seconds()))
        if train + 1 < trains:
            log.write_ticket(Ticket(train + 1, time.time()))

    log.write_ticket(Ticket(0, time.time()))
    frame = spark.readStream.format("penstock").option("trains", str(work)).load()
    query = frame.writeStream.foreachBatch(nothing).option("checkpointLocation", str(work / "spark")).start()
    while len(done) < trains:
        time.sleep(0.05)
    query.stop()
    return figures(done)


def run_network(spark: Any, net: ps.Network, work: Path) -> dict[str, Any]:
    """A network with trains of one file of ten tuples."""
    policy = AsSoonAsPossible(length=10)
    with ps.Runtime(net, spark, work, once=True, close=True, policy=policy, partitions=2) as running:
        query = next(iter(running.queries.values()))
        watch, in_job = TrainWatch(query), time_jobs(query.trains)
        running.wait(300)
    job_ms = quantile(in_job[len(in_job) // 3 :], 0.5)
    return {**figures([(train.done, train.cpu) for train in watch.seen]), "job_p50_ms": job_ms}


def time_jobs(trains: Trains) -> list[float]:
    """Milliseconds that each train to come spends in its Spark job; the rest is ticket and commit."""
    make, spent = trains.train_run, []

    def timed(*words: Any) -> TrainRun:
        train = make(*words)
        run = train.run

        def run_timed() -> None:
            began = time.perf_counter()
            run()
            spent.append((time.perf_counter() - began) * 1000)

        train.run = run_timed  # type: ignore[method-assign]  # a wrapper around it
        return train

    trains.train_run = timed
    return spent


def run_by_hand(spark: Any, name: str, source: Path, work: Path, trains: int) -> dict[str, Any]:
    """A hand-written query with a file of ten tuples each micro-batch."""
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    writer = by_hand(name, files).writeStream.outputMode("append").format("parquet")
    writer = writer.option("path", str(work / "out")).option("checkpointLocation", str(work / "spark"))
    query = writer.trigger(availableNow=True).start()
    before, first = 0.0, 0
    while query.isActive:
        done = len(list((work / "spark" / "commits").glob("[0-9]*")))
        if not first and done >= trains // 3:
            before, first = cpu_seconds(), done
        time.sleep(0.02)
    cpu = (cpu_seconds() - before) / max(1, trains - first)
    took = [p.durationMs["triggerExecution"] for p in query.recentProgress if "addBatch" in p.durationMs]
    steady = took[len(took) // 3 :]
    return {"p50_ms": quantile(steady, 0.5), "p99_ms": quantile(steady, 0.99), "cpu_ms": cpu * 1000}


def figures(done: list[tuple[float, float]]) -> dict[str, Any]:
    """From commit to commit: wall and processor time of each train. The first third is not counted."""
    steady = done[len(done) // 3 :]
    walls = [(after[0] - before[0]) * 1000 for before, after in itertools.pairwise(steady)]
    cpu = (steady[-1][1] - steady[0][1]) / max(1, len(walls))
    return {"p50_ms": quantile(walls, 0.5), "p99_ms": quantile(walls, 0.99), "cpu_ms": cpu * 1000}


def use_settings(spark: Any, name: str) -> None:
    """How Spark writes its checkpoint: as it does by default, or as the engine tells it to."""
    by_default = name == "Spark's"
    spark.conf.set(CHECKSUM, "true" if by_default else "false")
    spark.conf.set(MANAGER, SPARKS_MANAGER if by_default else SETTINGS[MANAGER])


def measure(spark: Any, root: Path, number: int, trains: int) -> list[dict[str, Any]]:
    """All kinds of trains, ours and by hand in turn."""
    rows = []
    for settings in ("engine's", "Spark's"):
        use_settings(spark, settings)
        row = run_bare(spark, root / f"bare-{number}-{settings[0]}", trains)
        rows.append({"train": "empty, no box", "by": "nobody", "checkpoint": settings, **row})
    use_settings(spark, "engine's")
    for name in JOBS:
        work = root / f"{name.replace(' ', '-')}-{number}"
        ours = run_network(spark, network(name, root / "in", work / "out"), work / "checkpoint")
        hand = run_by_hand(spark, name, root / "in", work / "by-hand", trains)
        rows.append({"train": name, "by": "Penstock", "checkpoint": "engine's", **ours})
        rows.append({"train": name, "by": "PySpark by hand", "checkpoint": "engine's", **hand})
        print(f"  {name}: {ours['p50_ms']:.0f} ms, by hand {hand['p50_ms']:.0f} ms", flush=True)
    return rows


def stream(spark: Any, root: Path, seconds: float) -> dict[str, Any]:
    """1,000 tuples a second from files to files: when the last tuple of each input file has left."""
    size = round(RATE * PERIOD)
    paths = prepare(root / "stream-prepared", round(seconds / PERIOD), size, round(PERIOD * 1e6))
    (root / "stream-in").mkdir()
    net = network("one native box", root / "stream-in", root / "stream-out")
    with ps.Runtime(net, spark, root / "stream-checkpoint", partitions=2) as running:
        watch = TrainWatch(next(iter(running.queries.values())))
        feeder = Feeder(paths, root / "stream-in", PERIOD)
        feeder.start()
        feeder.join()
        until = time.monotonic() + 60
        while sum(train.rows for train in watch.seen) < len(paths) * size and time.monotonic() < until:
            time.sleep(0.05)
            running.check()
    latencies, rows, file = [], 0, 0
    for train in watch.seen:
        rows += train.rows
        while file < len(feeder.given) and (file + 1) * size <= rows:
            latencies.append((train.done - feeder.given[file]) * 1000)
            file += 1
    steady = latencies[len(latencies) // 3 :]
    return {
        "tuples_per_s": RATE,
        "files": len(steady),
        "trains": len(watch.seen),
        "p50_ms": quantile(steady, 0.5),
        "p99_ms": quantile(steady, 0.99),
        "max_ms": max(steady),
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int, help="of each kind; the first third is not counted")
    parser.add_argument("--seconds", type=float, help="of the stream; the first third is not counted")
    chosen = parser.parse_args()
    trains = chosen.trains or (15 if chosen.quick else 60)
    seconds = chosen.seconds or (6.0 if chosen.quick else 45.0)
    with recording("engine-floor", chosen, trains=trains, seconds=seconds) as record, scratch() as root:
        spark = session({"spark.sql.streaming.numRecentProgressUpdates": "500"})
        prepare(root / "in", trains)
        record.warm_up = measure(spark, root, 0, trains)
        record.figures = measure(spark, root, 1, trains)
        show("A train of ten tuples (ms)", record.figures)
        record.figures += [
            {"train": "a stream, file to file", "by": "Penstock", **stream(spark, root, seconds)}
        ]
        show("1,000 tuples a second, file to file (ms)", record.figures[-1:])
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
