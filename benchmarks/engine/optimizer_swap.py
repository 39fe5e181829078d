"""The blip of a live swap: a running sub-network changes to its optimized form and back, again and again.

A window with a filter behind it and filters in front runs over CSV files that keep coming. Each swap holds
the input, ends the current train, and goes on in the other form with the same state. In the end the rows must
be those of a run without any swap.

Figure: seconds of each swap, from the call until the next train may leave.
Time:   about 4 minutes; --quick about 1.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.running_network import Feeder
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.optimizer_input import write_source
from penstock.model.types import Schema
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful

SCHEMA = "time TIMESTAMP, k INT, v INT, note STRING"
ROWS = 5_000  # of a file


def network(inputs: Path, out: Path) -> ps.Network:
    net = ps.Network("swap")
    rows = net.source("rows", ps.csv(str(inputs), SCHEMA, settle="0"), timestamp="time")
    some = rows.filter("v < 900", name="some").map(w="v * 2", name="doubled").filter("w > 20", name="more")
    windows = some.group_by("k", name="by_k").tumble(
        "10 seconds", n="count(*)", most="max(w)", name="windows"
    )
    net.output("few", windows.filter("k < 100", name="few_keys"), to=ps.parquet(str(out)))
    return net


def rows_of(folder: Path) -> list[str]:
    return sorted(repr(row) for row in pq.read_table(folder).to_pylist())


def swaps(spark: Any, root: Path, chosen: argparse.Namespace) -> tuple[list[float], float]:
    """The blips, and the seconds of the first swap, which warms up."""
    files = (chosen.swaps + 2) * 3 + 20
    write_source(root / "prepared", Schema.parse(SCHEMA), files * ROWS, chosen.seed, files)
    feeder = Feeder(sorted((root / "prepared").glob("*.csv")), root / "in", chosen.period)
    net = network(root / "in", root / "out")
    forms = [Form(rewritten=True, in_use=stateful(net)), Form()]
    blips = []
    with ps.Runtime(net, spark, root / "checkpoint") as running:
        feeder.start()
        until(running, 5)
        for number in range(chosen.swaps + 1):
            blips.append(running.rewrite("few", forms[number % 2]))
            until(running, running.queries["few"].last + 2)
        feeder.stop()
        running.wait_idle(120)
        running.finish()
        running.wait(120)
    return blips[1:], blips[0]


def until(running: ps.Runtime, train: int) -> None:
    end = time.monotonic() + 60
    while running.queries["few"].last < train and time.monotonic() < end:
        running.check()
        time.sleep(0.02)


def must_be_exact(spark: Any, root: Path, record: Record) -> None:
    """Run the same files once more without any swap."""
    shutil.rmtree(root / "checkpoint")
    net = network(root / "in", root / "undisturbed")
    with ps.Runtime(net, spark, root / "checkpoint", once=True, close=True) as running:
        running.wait(300)
    if rows_of(root / "out") != rows_of(root / "undisturbed"):
        record.found_wrong("a run with swaps gave other rows than one without")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--swaps", type=int, help="how many are counted (default: 40)")
    parser.add_argument("--period", type=float, default=0.5, help="seconds between files of 5,000 tuples")
    chosen = parser.parse_args()
    chosen.swaps = chosen.swaps or (8 if chosen.quick else 40)
    with recording("engine-optimizer-swap", chosen, swaps=chosen.swaps) as record, scratch() as root:
        spark = session()
        blips, record.warm_up = swaps(spark, root, chosen)
        must_be_exact(spark, root, record)
        spark.stop()
        figures = {"swaps": len(blips), "p50_s": quantile(blips, 0.5), "max_s": max(blips)}
        record.figures = {**figures, "blips_s": blips}
        show("A live swap", [figures])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
