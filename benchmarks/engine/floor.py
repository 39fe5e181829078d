"""The floor of a micro-batch: what a train costs that carries next to nothing, and where that time goes.

First empty tickets through a bare streaming query, then trains of ten tuples through one native box, one
stage and two stages. Everything runs with the engine's settings and with Spark's defaults for the checkpoint.
The parts of the time come from Spark's own progress reports.

Figure: milliseconds of a train, processor milliseconds, and the parts as Spark reports them.
Time:   about 4 minutes; --quick about 2.
"""

from __future__ import annotations

import statistics
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
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.python_source import TrainSource
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.session import SETTINGS

START = 1_767_225_600_000_000
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
CHECKSUM = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
SPARKS_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
SETTING_NAMES = ("warm-up", "engine's", "Spark's")
PARTS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


def prepare(folder: Path, trains: int) -> None:
    folder.mkdir(parents=True)
    for number in range(trains):
        times = [START + number * 1_000_000 + i for i in range(10)]
        table = pa.table(
            {"time": pa.array(times, pa.timestamp("us", "UTC")), "k": pa.array(range(10), pa.int32())}
        )
        pq.write_table(table, folder / f"{number:05d}.parquet")


def networks(source: Path, out: Path) -> dict[str, ps.Network]:
    by_name = {}
    for name in ("one native box", "one stage", "two stages"):
        net = ps.Network("floor")
        stream = net.source(
            "ticks", ps.parquet(str(source), schema="time TIMESTAMP, k INT"), timestamp="time"
        )
        if name == "one native box":
            stream = stream.filter("k < 5")
        else:
            stream = stream.group_by("k").tumble("1 second", n="count(*)")
        if name == "two stages":
            stream = stream.map(half="k DIV 2").group_by("half").tumble("5 seconds", n="sum(n)")
        net.output("out", stream, to=ps.parquet(str(out / name.replace(" ", "-"))))
        by_name[name] = net
    return by_name


def run_bare(spark: Any, work: Path, trains: int) -> tuple[list[Any], float]:
    """Empty tickets, each as soon as the one before is done; nothing happens in the train."""
    log, done = TrainLog(work), []
    spark.dataSource.register(TrainSource)

    def nothing(_frame: Any, train: int) -> None:
        done.append(train)
        if train + 1 < trains:
            log.write_ticket(Ticket(train + 1, time.time()))

    log.write_ticket(Ticket(0, time.time()))
    frame = spark.readStream.format("penstock").option("trains", str(work)).load()
    query = frame.writeStream.foreachBatch(nothing).option("checkpointLocation", str(work / "spark")).start()
    before = None
    while len(done) < trains:
        before = cpu_seconds() if before is None and len(done) >= trains // 3 else before
        time.sleep(0.05)
    cpu = (cpu_seconds() - (before or 0.0)) / (trains - trains // 3)
    query.stop()
    return query.recentProgress, cpu


def run_network(spark: Any, net: ps.Network, work: Path, trains: int) -> tuple[list[Any], float]:
    """A network with trains of one file of ten tuples."""
    policy = AsSoonAsPossible(length=10)
    with ps.Runtime(net, spark, work, once=True, close=True, policy=policy, partitions=2) as running:
        query = next(iter(running.queries.values()))
        while query.last < trains // 3:
            time.sleep(0.02)
            running.check()
        before, at = cpu_seconds(), query.last
        running.wait(300)
        cpu = (cpu_seconds() - before) / max(1, query.last - at)
    return query.query.recentProgress, cpu


def figures(name: str, settings: str, progress: list[Any], cpu: float, trains: int) -> dict[str, Any]:
    steady = [p.durationMs for p in progress if "addBatch" in p.durationMs][-(trains - trains // 3) :]
    row: dict[str, Any] = {
        "train": name,
        "settings": settings,
        "p50_ms": quantile([d["triggerExecution"] for d in steady], 0.5),
    }
    row["p99_ms"] = quantile([d["triggerExecution"] for d in steady], 0.99)
    row["cpu_ms"] = cpu * 1000
    return row | {part: statistics.median(d.get(part, 0) for d in steady) for part in PARTS}


def use_settings(spark: Any, name: str) -> None:
    """How Spark writes its checkpoint: as it does by default, or as the engine tells it to."""
    by_default = name == "Spark's"
    spark.conf.set(CHECKSUM, "true" if by_default else "false")
    spark.conf.set(MANAGER, SPARKS_MANAGER if by_default else SETTINGS[MANAGER])


def measure(spark: Any, root: Path, settings: str, trains: int) -> list[dict[str, Any]]:
    """All kinds of trains with one set of settings."""
    use_settings(spark, settings)
    work = root / settings.replace("'", "")
    rows = [figures("empty, no box", settings, *run_bare(spark, work / "bare", trains), trains)]
    for name, net in networks(root / "in", work / "out").items():
        progress, cpu = run_network(spark, net, work / name.replace(" ", "-"), trains)
        rows.append(figures(name, settings, progress, cpu, trains))
        print(f"  {settings}: {name}: {rows[-1]['p50_ms']} ms", flush=True)
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int, help="of each kind; the first third is not counted")
    chosen = parser.parse_args()
    trains = chosen.trains or (18 if chosen.quick else 60)
    with recording("engine-floor", chosen, trains=trains) as record, scratch() as root:
        spark = session({"spark.sql.streaming.numRecentProgressUpdates": "500"})
        prepare(root / "in", trains)
        record.warm_up, *rounds = (measure(spark, root, settings, trains) for settings in SETTING_NAMES)
        record.figures = [row for rows in rounds for row in rows]
        show("The floor of a micro-batch (ms; parts: medians as Spark reports them)", record.figures)
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
