"""What it costs to survive a power cut: the same trains with durability 'process' and 'power', in one run.

Trains of some thousand tuples go through a filter, a window and a connection point into Parquet files: every
kind of file that a train writes. Rounds alternate between both, so that a busy machine disturbs both alike.

Figure: milliseconds of a train for each, their ratio, and the flushes of the disk.
Time:   about 3 minutes; --quick about 1.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_done import TrainDone
from penstock.store.durable import Durability

START = 1_767_225_600_000_000
ROWS = 5_000  # of a train
KINDS: tuple[Durability, ...] = ("process", "power")


def prepare(folder: Path, trains: int) -> None:
    folder.mkdir(parents=True)
    for number in range(trains):
        times = START + number * 1_000_000 + np.arange(ROWS) * (1_000_000 // ROWS)
        keys = np.arange(ROWS) % 500
        columns = {"time": pa.array(times, pa.timestamp("us", "UTC")), "k": pa.array(keys, pa.int32())}
        pq.write_table(pa.table(columns), folder / f"{number:05d}.parquet")


def network(source: Path, out: Path) -> ps.Network:
    net = ps.Network("durability")
    rows = net.source("rows", ps.parquet(str(source), schema="time TIMESTAMP, k INT"), timestamp="time")
    counts = rows.filter("k < 400").group_by("k").tumble("1 second", n="count(*)")
    net.output("out", counts.connection_point("counts"), to=ps.parquet(str(out)))
    return net


def flush_ms(folder: Path, times: int = 50) -> float:
    """The median time of one flush of a small file on this disk."""
    from penstock.store.durable import write_bytes

    spent = []
    for number in range(times):
        begun = time.perf_counter()
        write_bytes(folder / f"{number % 4}.flush", b"x" * 512)
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent) * 1000


def run(spark: Any, root: Path, durability: Durability, number: int) -> list[float]:
    """The seconds of each train that had tuples; the first third is not counted."""
    folder, seconds = root / f"{durability}-{number}", list[float]()

    def note(done: TrainDone) -> None:
        if done.ticket.rows and not done.again:
            seconds.append(done.seconds)

    runtime = ps.Runtime(
        network(root / "in", folder / "out"),
        spark,
        folder / "checkpoint",
        once=True,
        close=True,
        partitions=2,
        policy=AsSoonAsPossible(ROWS),
        durability=durability,
    )
    runtime.on_train(note)
    with runtime:
        runtime.wait(600)
    return seconds[len(seconds) // 3 :]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int, help="of each round; the first third is not counted")
    chosen = parser.parse_args()
    trains = chosen.trains or (9 if chosen.quick else 45)
    rounds = 1 if chosen.quick else 3
    with recording("engine-durability", chosen, trains=trains, rounds=rounds) as record, scratch() as root:
        spark = session({})
        prepare(root / "in", trains)
        run(spark, root, "process", -1)  # warm up
        spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(rounds):
            for kind in KINDS if number % 2 == 0 else reversed(KINDS):
                spent[kind] += run(spark, root, kind, number)
        record.figures = [
            {
                "durability": kind,
                "p50_ms": quantile([s * 1000 for s in spent[kind]], 0.5),
                "p99_ms": quantile([s * 1000 for s in spent[kind]], 0.99),
                "ratio": statistics.median(spent[kind]) / statistics.median(spent["process"]),
                "flush_ms": flush_ms(root),
            }
            for kind in KINDS
        ]
        show("What it costs to survive a power cut (ms a train)", record.figures)
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
