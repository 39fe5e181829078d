"""Trains as one task, as a job of tasks, and as DataFrames: what each costs, by the number of tuples.

A network of a filter, a window by key and a window over all, on Parquet files of so many tuples, one file a
train. The same trains run in each form, in turn. The limits of `engine/spark/jobs/forms.py` come from this.

Figure: median milliseconds of a train, and processor milliseconds of all processes.
Time:   about 3 minutes; --quick about 1.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import cpu_seconds
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.floor import SCHEMA, prepare
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.rewrite.subnetworks import split

SIZES = (10, 1_000, 2_000, 5_000, 20_000, 50_000)


def network(source: Path, out: Path) -> ps.Network:
    net = ps.Network("forms")
    stream = net.source("ticks", ps.parquet(str(source), schema=SCHEMA, settle="0"), timestamp="time")
    seconds = stream.filter("k < 9").group_by("k").tumble("1 second", n="count(*)", s="sum(k)")
    net.output("out", seconds.tumble("5 seconds", n="sum(n)"), to=ps.parquet(str(out)))
    return net


def run(spark: Any, form: Form, source: Path, work: Path, size: int) -> dict[str, Any]:
    """All trains in one form, without a streaming query around them; the first third is not counted."""
    (sub,) = split(network(source, work / "out"))
    settings = QuerySettings(2, once=True, form=lambda _ticket, _layout: form)
    steering = Steering(AsSoonAsPossible(size))
    query = SubnetworkQuery(sub, spark, work / "checkpoint", steering, settings)
    walls, cpus = [], []
    while not query.finished.is_set():
        if query.next_ticket():
            began, cpu = time.perf_counter(), cpu_seconds()
            query.run_train(query.last)
            walls.append((time.perf_counter() - began) * 1000)
            cpus.append((cpu_seconds() - cpu) * 1000)
    steady = slice(len(walls) // 3, None)
    p50, cpu_ms = quantile(walls[steady], 0.5), sum(cpus[steady]) / len(cpus[steady])
    return {"tuples": size, "form": form.value, "p50_ms": p50, "cpu_ms": cpu_ms}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trains", type=int, help="of each kind; the first third is not counted")
    chosen = parser.parse_args()
    trains = chosen.trains or (6 if chosen.quick else 18)
    with recording("engine-forms", chosen, trains=trains) as record, scratch() as root:
        spark = session()
        for size in SIZES:
            prepare(root / f"in-{size}", trains, size)
        record.warm_up = [run(spark, f, root / "in-10", root / f"warm-{f.value}", 10) for f in Form]
        record.figures = [
            run(spark, form, root / f"in-{size}", root / f"{size}-{form.value}", size)
            for size in SIZES
            for form in Form
        ]
        show("Trains in each form (ms)", record.figures)
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
