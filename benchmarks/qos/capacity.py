"""x1: the highest rate at which a run without control keeps all outputs in their zones. And what it costs."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.qos.answers import Due, delivered_in, due_in
from benchmarks.qos.judge import SETTLED, Answers
from benchmarks.qos.traffic import PERIOD, TrafficPlan, steady, write_files
from benchmarks.qos.trial import Observed, exact_run, run_trial
from benchmarks.qos.verdict import judged, keeps_all_zones
from benchmarks.qos.workload import POINT, SOURCE, Assignment, graphs, network
from penstock.control.costs import costs_in
from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.plan import load_nodes
from penstock.control.loop.structure import Structure, rates_in
from penstock.control.roadmap import LoadNode
from penstock.model.costs import MeasuredCosts
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.record_types import InputLoad

FIRST_RATE = 40_000.0
"""Of the files of the search; other rates give the same files faster or slower."""
STEP = 0.85
MOST_TRIALS = 8
LEAST_IN_ZONE = 0.9
"""Of the seconds: on a shared machine one stall is not the end. A higher x1 is harder for all."""
_PATIENCE = 8.0  # seconds after the end of a trial: what is not there then counts as missing


@dataclass
class Bench:
    """What the trials of one benchmark share: a session, a folder, and numbers for sub-folders."""

    spark: Any
    root: Path
    seed: int
    assignment: Assignment
    began: float = field(default_factory=time.monotonic)
    _numbers: Any = field(default_factory=itertools.count)

    def folder(self, name: str) -> Path:
        return self.root / f"{next(self._numbers):03d}-{name}"

    def prepared(self, plan: TrafficPlan) -> Path:
        return write_files(plan, self.folder("prepared"), self.seed)

    def due(self, prepared: Path, plan: TrafficPlan) -> Due:
        """What is due, from a run to the end of the input."""
        return self.due_and_answers(prepared, plan)[0]

    def due_and_answers(self, prepared: Path, plan: TrafficPlan) -> tuple[Due, Path]:
        """Also where the answers are. The costly box gives its answers at no cost."""
        free = replace(self.assignment, burn_us=0.0)
        out = exact_run(self.spark, self.folder("exact"), prepared, partial(network, assignment=free))
        return due_in(out, len(plan.counts)), out

    def run(
        self, name: str, prepared: Path, control: Any, *, patience: float, period: float = PERIOD
    ) -> Observed:
        folder, make = self.folder(name), partial(network, assignment=self.assignment)
        return run_trial(self.spark, folder, prepared, make, control, patience=patience, period=period)


@dataclass(frozen=True)
class Capacity:
    """x1 in tuples a second, the trials that found it, and the costs measured at it."""

    rate: float
    saturated: float
    trials: list[dict[str, Any]]
    nodes: tuple[LoadNode, ...]  # CPU-seconds a second at x1


def find(bench: Bench, hold: float) -> Capacity:
    """Two runs warm Spark up and show how much gets through; then go down until all zones are kept."""
    plan = steady("search", hold + SETTLED, FIRST_RATE)
    search = Search(bench, bench.prepared(plan), plan)
    search.through(1.0)  # cold, so it says little
    saturated = search.through(2.0)
    trials: list[dict[str, Any]] = []
    rate = saturated
    for _ in range(MOST_TRIALS):
        observed, kept = search.keeps(rate)
        trials.append({"rate": rate, "kept": kept, "load": observed.load})
        print(f"  {rate:,.0f}/s without control: {'keeps' if kept else 'loses'} its zones", flush=True)
        if kept:
            return _refined(bench, search, Capacity(rate, saturated, trials, _nodes(bench, observed, rate)))
        rate *= STEP
    raise RuntimeError(f"no rate down to {rate:,.0f} tuples a second keeps all zones without control")


def _refined(bench: Bench, search: Search, known: Capacity) -> Capacity:
    """Once more, half of the step back up: otherwise a little overload might be none."""
    if len(known.trials) == 1:
        return known  # nothing above it has failed
    rate = known.rate / math.sqrt(STEP)
    observed, kept = search.keeps(rate)
    known.trials.append({"rate": rate, "kept": kept, "load": observed.load})
    print(f"  {rate:,.0f}/s without control: {'keeps' if kept else 'loses'} its zones", flush=True)
    if not kept:
        return known
    return replace(known, rate=rate, nodes=_nodes(bench, observed, rate))


def _nodes(bench: Bench, observed: Observed, rate: float) -> tuple[LoadNode, ...]:
    return tuple(measured_nodes(bench, observed.folder / "checkpoint", rate))


@dataclass
class Search:
    """Trials without control on the same files, given at different rates."""

    bench: Bench
    prepared: Path
    plan: TrafficPlan

    def __post_init__(self) -> None:
        self._due = self.bench.due(self.prepared, self.plan)

    def through(self, factor: float) -> float:
        """Tuples a second that get through at a multiple of the first rate, by what the watcher saw."""
        observed = self.bench.run("through", self.prepared, None, patience=_PATIENCE, period=PERIOD / factor)
        delivered = delivered_in(observed.out, observed.seen, self._due, len(observed.arrivals))
        worth = self._due.totals["scores"] / sum(self.plan.counts)  # of a tuple, in the mean
        rate = throughput(delivered.by_output["scores"], observed.arrivals[0]) / worth
        print(f"  {factor * FIRST_RATE:,.0f}/s offered, {rate:,.0f}/s get through", flush=True)
        return rate

    def keeps(self, rate: float) -> tuple[Observed, bool]:
        """A run at this rate, and whether all outputs stayed in their zones."""
        qos, period = graphs(self.bench.assignment), PERIOD * FIRST_RATE / rate
        observed = self.bench.run("hold", self.prepared, None, patience=_PATIENCE, period=period)
        seconds, _ = judged(observed, self._due, qos)
        return observed, keeps_all_zones(seconds, qos, SETTLED, LEAST_IN_ZONE)


def throughput(answers: Sequence[Answers], start: float) -> float:
    """Amounts a second, from the first file that was seen to the last; from the start if there is one only.

    >>> throughput([Answers(0, 10, 2.0), Answers(1, 30, 4.0), Answers(2, 30, 5.0)], start=1.0)
    20.0
    >>> throughput([Answers(0, 10, 2.0)], start=1.0)
    10.0
    """
    first = min((each.seen for each in answers), default=start)
    last = max((each.seen for each in answers), default=start)
    begin = first if last > first else start
    if last <= begin:
        raise RuntimeError("nothing came through")
    return sum(each.amount for each in answers if each.seen > begin) / (last - begin)


def measured_nodes(bench: Bench, checkpoint: Path, rate: float) -> list[LoadNode]:
    """CPU-seconds a second of each node at a rate, by the costs that the catalog of a run tells."""
    net = network(bench.root / "in", bench.root / "out", bench.assignment)
    costs, structure = costs_in(checkpoint), Structure(tuple(split(net)))
    offered = offered_rates(structure, costs, {SOURCE: rate})
    pictures = tuple(
        SubnetworkPicture(
            sub.name,
            tuple(InputLoad(name, sub.name, 0.0, offered_rate=offered[name]) for name in sub.inputs),
        )
        for sub in structure.subs
    )
    nodes = load_nodes(structure, Picture(0.0, pictures, costs))
    return [replace(node, outputs=frozenset(_end(name) for name in node.outputs)) for node in nodes]


def _end(name: str) -> str:
    """The output behind the connection point; outputs are their own."""
    return "archive" if name == POINT else name


def offered_rates(structure: Structure, costs: MeasuredCosts, rates: dict[str, float]) -> dict[str, float]:
    """The rates of sources, and those of connection points, through measured selectivities."""
    known = dict(rates)
    for sub in structure.subs:
        into = rates_in(sub, costs, known)
        known |= {name: into[name] for name in sub.points}
    return known
