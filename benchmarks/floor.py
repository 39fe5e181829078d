"""The floor of a micro-batch: what a train costs that carries next to nothing, and where that time goes.

Empty tickets through the bare streaming query; then trains of ten tuples through one native box, one stage and two
stages; with the engine's settings and with Spark's defaults for the checkpoint. Spark's own progress gives the parts.
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
from common import cpu_seconds, options, quantile, scratch, session, show, write_result
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import Ticket, TrainLog
from penstock.engine.spark.session import SETTINGS
from python_source import TrainSource

START = 1_767_225_600_000_000
MANAGER, CHECKSUM = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled",
)
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
    made = {}
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
        made[name] = net
    return made


def bare(spark: Any, place: Path, trains: int) -> tuple[list[Any], float]:
    """Empty tickets, one as soon as the one before is done; nothing happens in the train."""
    log, done = TrainLog(place), []
    spark.dataSource.register(TrainSource)

    def nothing(_frame: Any, train: int) -> None:
        done.append(train)
        if train + 1 < trains:
            log.write_ticket(Ticket(train + 1, time.time()))

    log.write_ticket(Ticket(0, time.time()))
    frame = spark.readStream.format("penstock").option("trains", str(place)).load()
    query = frame.writeStream.foreachBatch(nothing).option("checkpointLocation", str(place / "spark")).start()
    before = None
    while len(done) < trains:
        before = cpu_seconds() if before is None and len(done) >= trains // 3 else before
        time.sleep(0.05)
    cpu = (cpu_seconds() - (before or 0.0)) / (trains - trains // 3)
    query.stop()
    return query.recentProgress, cpu


def whole(spark: Any, net: ps.Network, place: Path, trains: int) -> tuple[list[Any], float]:
    """A network with trains of one file of ten tuples."""
    with ps.Runtime(
        net, spark, place, once=True, policy=AsSoonAsPossible(length=10), partitions=2
    ) as running:
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


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int)
    chosen = parser.parse_args()
    trains = chosen.trains or (18 if chosen.quick else 60)
    spark = session(**{"spark.sql.streaming.numRecentProgressUpdates": "500"})
    rows = []
    with scratch() as root:
        prepare(root / "in", trains)
        # twice round: the first one warms the JVM and is left out
        for turn, settings in enumerate(("warm-up", "engine's", "Spark's")):
            spark.conf.set(CHECKSUM, "true" if settings == "Spark's" else "false")
            if settings == "Spark's":
                spark.conf.unset(MANAGER)
                spark.conf.set(
                    MANAGER,
                    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager",
                )
            else:
                spark.conf.set(MANAGER, SETTINGS[MANAGER])
            place = root / str(turn)
            rows.append(figures("empty, no box", settings, *bare(spark, place / "bare", trains), trains))
            for name, net in networks(root / "in", place / "out").items():
                rows.append(
                    figures(
                        name, settings, *whole(spark, net, place / name.replace(" ", "-"), trains), trains
                    )
                )
                print(f"  {settings}: {name}: {rows[-1]['p50_ms']} ms", flush=True)
    steady = [row for row in rows if row["settings"] != "warm-up"]
    show("The floor of a micro-batch (ms; parts: medians as Spark reports them)", steady)
    write_result("floor", chosen, {"trains": trains}, rows)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
