"""Where each microsecond of the Linear Road network goes: peak seconds through Spark, as fast as they go.

One expressway is generated (or given, `--city`). Its busiest seconds are copied `--xways` times and delivered
before the clock starts; then each second is one train. The first 33 trains are not counted: by then every
vehicle has a previous report. Answers are written and state is kept, but nothing is validated; `penstock lr
rate` does that.

Figure: processor seconds a million tuples by process and by box, and the time of a train from ticket to
        commit.
Time:   about 6 minutes for three sizes; --quick about 2.
"""

from __future__ import annotations

import argparse
import collections
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.common.command_line import options
from benchmarks.common.process_tree import memory_mb
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from penstock.linear_road.rows.inputs import Delivery, known_delivery
from penstock.linear_road.run.plan import RECOVERY

UNCOUNTED = 33


def prepared(
    city: Path | None, folder: Path, xways: int, seconds: int, delivery: Delivery = "packed"
) -> Path:
    """The delivered peak: `xways` copies of the last seconds of one expressway."""
    from penstock.linear_road.drive.driver import DrivePlan, drive
    from penstock.linear_road.traffic.generate import generate

    if city is None:
        city = folder / "city"
        generate(city, xways=1, seed=7)
    begin = 10_799 - seconds
    drive(
        DrivePlan(
            city,
            to=str(folder / "in"),
            speed=float("inf"),
            groups=2,
            copies=xways,
            begin=begin,
            end=10_799,
            delivery=delivery,
        )
    )
    return folder / "in"


def by_process() -> dict[str, float]:
    """Processor seconds so far of the driver, the JVM and the workers; those in the kernel apart."""
    me = psutil.Process()
    seconds: dict[str, float] = collections.defaultdict(float)
    for process in [me, *me.children(recursive=True)]:
        try:
            used, line = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        role = "JVM" if "java" in line.split(" ")[0] else "Python workers"
        role = "driver" if process.pid == me.pid else role
        seconds[role] += used.user
        seconds[f"{role}, kernel"] += used.system
    return seconds


@dataclass
class TrainCosts:
    """Notes the trains of a run; the first ones only warm up."""

    trains: list[tuple[float, float, int]] = field(default_factory=list)  # arrival, commit, tuples
    boxes: collections.Counter[str] = field(default_factory=collections.Counter)
    used: dict[str, float] = field(default_factory=dict)
    begun: float = 0.0

    def note(self, train: Any) -> None:
        self.trains.append((train.ticket.arrival, time.time(), train.ticket.rows))
        if len(self.trains) == UNCOUNTED:
            self.used, self.begun = by_process(), time.time()
        elif len(self.trains) > UNCOUNTED and train.ticket.rows:
            self.boxes.update({name: spent.wall for name, spent in train.commit.costs.items()})

    def figures(self, used: dict[str, float], end: float) -> dict[str, Any]:
        counted = [train for train in self.trains[UNCOUNTED:] if train[2]]
        rows = sum(train[2] for train in counted)
        took = [left - came for came, left, _ in counted]
        spent = {role: (used[role] - self.used[role]) / rows * 1e6 for role in used}
        return {
            "tuples": rows,
            "trains": len(counted),
            "tuples_a_train": rows / len(counted),
            "tuples_a_second": rows / (end - self.begun),
            "cpu_s_a_million": sum(spent.values()),
            "cpu_s_a_million_by_process": spent,
            "wall_s_a_million_by_box": {box: s / rows * 1e6 for box, s in self.boxes.most_common()},
            "train_s": {"p50": quantile(took, 0.5), "p95": quantile(took, 0.95), "max": max(took)},
        }


def measured(work: Path, spark: Any) -> dict[str, Any]:
    """One run over all that was delivered, a second a train."""
    from penstock.linear_road.network import road_network, road_runtime

    net = road_network(None, work / "in", work / "answers")
    run = road_runtime(
        net,
        work / "checkpoint",
        spark=spark,
        once=True,
        close=True,
        train_length=1,
        recovery=RECOVERY,
    )
    costs = TrainCosts()
    run.on_train(costs.note)
    with run:
        run.wait()
        return {**costs.figures(by_process(), time.time()), "memory_mb": memory_mb()}


def measure_sizes(
    spark: Any, sizes: list[int], seconds: int, folder: Path, chosen: argparse.Namespace
) -> list[dict[str, Any]]:
    """Each number of expressways, one after the other; the city of the first serves all."""
    rows, city = [], chosen.city
    for xways in sizes:
        work = folder / str(xways)
        prepared(city, work, xways, seconds, known_delivery(chosen.form))
        city = city or work / "city"
        rows.append({"xways": xways, **measured(work, spark)})
        for name in ("in", "answers", "checkpoint"):
            shutil.rmtree(work / name)
    return rows


def shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "L": row["xways"],
        "tuples/train": row["tuples_a_train"],
        "tuples/s": row["tuples_a_second"],
        "CPU-s/M": row["cpu_s_a_million"],
        "train p50": row["train_s"]["p50"],
        "max": row["train_s"]["max"],
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--xways", type=int, nargs="+", help="sizes, one after the other (default: 1 20 100)")
    parser.add_argument("--seconds", type=int, help="of the peak")
    parser.add_argument("--city", type=Path, help="traffic of `penstock lr generate`; generated if left out")
    parser.add_argument("--format", dest="form", default="packed", help="how tuples come: packed or text")
    chosen = parser.parse_args()
    sizes = chosen.xways or ([10] if chosen.quick else [1, 20, 100])
    seconds = chosen.seconds or (45 if chosen.quick else 75)
    from penstock.linear_road.network import warm_up

    with (
        recording("linear-road-network", chosen, xways=sizes, seconds=seconds, format=chosen.form) as record,
        scratch() as folder,
    ):
        spark = session()
        record.warm_up = {"seconds": warm_up(spark, delivery=known_delivery(chosen.form))}
        record.figures = measure_sizes(spark, sizes, seconds, folder, chosen)
        spark.stop()
        rows = [shown(row) for row in record.figures]
        show("Linear Road network, peak seconds, one a train, as fast as they go", rows)
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
