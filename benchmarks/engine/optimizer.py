"""What the optimizer saves: eight networks as users write them, as it rewrites them, and the best by hand.

Each form of a network runs once uncounted; the costs measured as written are what the optimizer gets. Then
rounds follow: in each, the three forms of each network run in turn, in an order that changes, over the same
CSV files, until the input is used up and all windows are closed. The first round is not counted either: the
JVM still compiles. Linear Road's network runs without Spark (`penstock.testing.dry_run`): the same tasks,
state and files. Of the ad-hoc query only its own sub-network counts, not the one that fills the point. All
three forms must give the same rows.

Figure: CPU-seconds a million tuples of each form, and their ratios with an upper 95 % bound.
Time:   about 45 minutes; --quick about 4; --only NAME for one network; --minutes N begins no round after N.
"""

from __future__ import annotations

import argparse
import gc
import math
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from benchmarks.engine.optimizer_input import answers, placed, write_input
from benchmarks.engine.optimizer_networks import PAIRS, Pair
from benchmarks.engine.optimizer_networks.short_trains import run_short
from benchmarks.linear_road.network import prepared
from penstock.control.costs import costs_in
from penstock.linear_road import road_network
from penstock.model.costs import MeasuredCosts
from penstock.rewrite.cost_model import cost_model
from penstock.rewrite.optimize import optimize
from penstock.store.catalog.catalog import Catalog
from penstock.testing.dry_run import DryRun

FORMS = ("written", "optimized", "by_hand")
ORDERS = tuple(permutations(FORMS))  # each form follows each other equally often
ONE_SIDED_T = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83)  # 95 %, by degrees of freedom from 1
ROAD = "linear_road"
LEAST_ROUNDS = 2
UNCOUNTED = 1  # rounds before them


@dataclass
class Measured:
    """What one form cost in each of its runs, in CPU-seconds a million tuples."""

    cpu: dict[str, list[float]] = field(default_factory=lambda: {form: [] for form in FORMS})
    steps: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class OneRun:
    """One run of one form: CPU-seconds a million tuples, its rows, and its measured costs."""

    cpu: float
    rows: Any
    costs: MeasuredCosts


def upper_bound(ratios: list[float]) -> float:
    """An upper 95 % bound of the mean ratio, by logarithms; infinite for a single pair.

    >>> round(upper_bound([0.5, 0.5, 0.5]), 2)
    0.5
    """
    if len(ratios) < 2:
        return math.inf
    logs = [math.log(ratio) for ratio in ratios]
    t = ONE_SIDED_T[min(len(logs) - 1, len(ONE_SIDED_T)) - 1]
    return math.exp(statistics.mean(logs) + t * statistics.stdev(logs) / math.sqrt(len(logs)))


def counted(pair: Pair, checkpoint: Path) -> float:
    """CPU-seconds of the trains that count."""
    catalog = Catalog(checkpoint / "catalog.db")
    names = ["asked"] if pair.name == "point_query" else list(catalog.totals())
    trains = [train for name in names for train in catalog.trains(name, last=10_000)]
    catalog.close()
    return sum(train.cpu or math.nan for train in trains)


def run_on_spark(spark: Any, pair: Pair, network: ps.Network, root: Path, tuples: int) -> OneRun:
    work = root / "work"
    shutil.rmtree(work, ignore_errors=True)
    here = placed(network, root, work / "out")
    spark._jvm.System.gc()  # nobody pays for what ran before
    with ps.Runtime(here, spark, work / "checkpoint", once=True, close=True) as running:
        if not running.wait(timeout=600):
            raise TimeoutError(f"{pair.name} does not end")
    cpu = counted(pair, work / "checkpoint")
    return OneRun(
        cpu / tuples * 1e6, answers(here, work / "out", work / "checkpoint"), costs_in(work / "checkpoint")
    )


def run_as_tasks(pair: Pair, network: ps.Network, root: Path, tuples: int) -> OneRun:
    work = root / "work"
    shutil.rmtree(work, ignore_errors=True)
    here = placed(network, root, work / "out")
    counted_here = ["asked"] if pair.name == "point_query" else []
    cpu, costs = run_short(here, work / "checkpoint", counted_here)
    return OneRun(cpu / tuples * 1e6, answers(here, work / "out", work / "checkpoint"), costs)


def run_road(network: ps.Network, root: Path) -> OneRun:
    taken: list[int] = []
    work = root / "work"
    shutil.rmtree(work, ignore_errors=True)
    nodes = [_road_node(node, root, work) for node in network.nodes.values()]
    here = ps.Network.of(network.name, nodes)
    run = DryRun(here, work / "checkpoint", length=1, listen=lambda done: taken.append(done.ticket.rows))
    begun = time.process_time()
    run.run_all()
    used = time.process_time() - begun
    rows = {
        name: sorted(line for file in (work / name).rglob("*.csv") for line in file.read_text().splitlines())
        for name in here.outputs
    }
    return OneRun(used / sum(taken) * 1e6, rows, MeasuredCosts())


def _road_node(node: Any, root: Path, work: Path) -> Any:
    """Linear Road's network is described in a scratch folder; here it reads and writes in ours."""
    own = road_network(None, root / "in", work)
    if node.name in own.sources:
        return replace(node, format=own.sources[node.name].format)
    return replace(node, to=own.outputs[node.name].to) if node.name in own.outputs else node


Runner = Callable[[ps.Network], OneRun]


class Contest:
    """The three forms of one network, against each other."""

    def __init__(self, pair: Pair, run: Runner) -> None:
        """Run each form once, uncounted."""
        self.pair, self._run = pair, run
        self._first = run(pair.as_written())
        written = pair.as_written()
        plan = optimize(written, cost_model(written, self._first.costs))
        self._forms = {"written": written, "optimized": plan.network, "by_hand": pair.by_hand()}
        self.measured = Measured(steps=[step.says for step in plan.steps])
        for form in FORMS[1:]:
            run(self._forms[form])

    def round(self, number: int, record: Record) -> None:
        """Each form once more; which one begins changes from round to round. Rounds count from 0."""
        for form in ORDERS[number % len(ORDERS)]:
            gc.collect()  # nobody pays for what ran before
            one = self._run(self._forms[form])
            if number >= 0:
                self.measured.cpu[form].append(one.cpu)
            if one.rows != self._first.rows:
                record.found_wrong(f"{self.pair.name}: {form} gives other rows in round {number}")


def figures_of(pair: Pair, measured: Measured) -> dict[str, Any]:
    """Medians, and ratios of runs of the same pair."""
    cpu = {form: statistics.median(values) for form, values in measured.cpu.items()}
    against_written = [a / b for a, b in zip(measured.cpu["optimized"], measured.cpu["written"], strict=True)]
    against_hand = [a / b for a, b in zip(measured.cpu["optimized"], measured.cpu["by_hand"], strict=True)]
    return {
        "network": pair.name,
        **{f"{form}_cpu_s_a_million": value for form, value in cpu.items()},
        "times_cheaper": 1 / statistics.median(against_written),
        "to_written_upper_95": upper_bound(against_written),
        "to_by_hand": statistics.median(against_hand),
        "pairs": len(against_written),
    }


def runner(pair: Pair, spark: Any, root: Path, chosen: argparse.Namespace) -> Runner:
    if pair.name == ROAD:
        prepared(None, root, 2 if chosen.quick else 100, 60 if chosen.quick else 120)
        return lambda network: run_road(network, root)
    tuples = write_input(pair.as_written(), root, chosen.rows, chosen.seed)
    if chosen.trains == "short":
        return lambda network: run_as_tasks(pair, network, root, tuples)
    return lambda network: run_on_spark(spark, pair, network, root, tuples)


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--only", action="append", choices=[pair.name for pair in PAIRS], help="one network")
    parser.add_argument("--rows", type=int, help="tuples of each source (default: 1,000,000)")
    parser.add_argument("--pairs", type=int, help="runs of each form (default: 10)")
    parser.add_argument(
        "--trains",
        choices=("long", "short"),
        default="long",
        help="long: DataFrames of Spark; short: 20,000 tuples each, as tasks, without Spark",
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="no further round after so many")
    chosen = parser.parse_args()
    chosen.rows = chosen.rows or (100_000 if chosen.quick else 1_000_000)
    chosen.pairs = chosen.pairs or (2 if chosen.quick else 10)
    return chosen


def bars(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many networks keep each bar."""
    return {
        "networks": len(rows),
        "within_1_05_of_by_hand": sum(row["to_by_hand"] <= 1.05 for row in rows),
        "at_least_1_5_times_cheaper": sum(row["times_cheaper"] >= 1.5 for row in rows),
        "never_worse_than_written": sum(row["to_written_upper_95"] <= 1.05 for row in rows),
    }


def all_figures(contests: list[Contest]) -> dict[str, Any]:
    """All figures so far."""
    rows = [figures_of(each.pair, each.measured) for each in contests]
    runs = {
        each.pair.name: {"cpu_s_a_million": each.measured.cpu, "steps": each.measured.steps}
        for each in contests
    }
    return {"networks": rows, "bars": bars(rows), "runs": runs}


def main() -> int:
    chosen, began = parse(), time.monotonic()
    pairs = [pair for pair in PAIRS if not chosen.only or pair.name in chosen.only]
    with (
        recording(
            "engine-optimizer", chosen, rows=chosen.rows, pairs=chosen.pairs, trains=chosen.trains
        ) as record,
        ExitStack() as folders,
    ):
        on_spark = chosen.trains == "long" and any(pair.name != ROAD for pair in pairs)
        spark = session() if on_spark else None
        contests = [
            Contest(pair, runner(pair, spark, folders.enter_context(scratch()), chosen)) for pair in pairs
        ]
        for number in range(-UNCOUNTED, chosen.pairs):
            if number >= LEAST_ROUNDS and time.monotonic() - began > chosen.minutes * 60:
                break
            for contest in contests:
                contest.round(number, record)
        record.figures = all_figures(contests)
        if spark is not None:
            spark.stop()
        show("CPU-seconds a million tuples", record.figures["networks"])
        show("Bars", [record.figures["bars"]])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
