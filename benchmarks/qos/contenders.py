"""Who is compared: what steers a run in each case. Those that are not ours live here, not in the product."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import penstock as ps
from benchmarks.qos.workload import SOURCE
from penstock.control.roadmap import LoadNode
from penstock.control.valve_places import ValvePlace
from penstock.engine.contract.valve import Valve, lot_of
from penstock.model.control_settings import Scheme
from penstock.rewrite.subnetworks import SubNetwork

OURS = ("state", "feedback")
UNSHED: Mapping[str, Scheme] = {
    "round-robin": "round-robin", "fifo": "fifo", "state-only": "state", "feedback-only": "feedback",
}  # fmt: skip
"""These schedule only: what is compared is the order of trains."""
NAMES = ("none", *UNSHED, "static", "random", "costliest", "uniform", "latency", *OURS)
_LEAST = 0.01

Shares = dict[str, float]
Drop = Callable[[Mapping[str, float], float], Shares]
"""From what each branch costs, and how much of the load must go (CPU-s a second), to shares of branches."""


@dataclass(frozen=True)
class Told:
    """What a contender is told of the trial; most use only a part of it, or nothing.

    `factor`: the overload. `strictest`: the smallest threshold, in seconds. `nodes`: the loads measured at
    x1. `places`: where valves may stand.
    """

    factor: float
    strictest: float
    nodes: Sequence[LoadNode] = ()
    places: Sequence[ValvePlace] = ()


def controller(name: str, told: Told) -> Any:
    """What steers the run of a contender."""
    match name:
        case "none":
            return None
        case _ if name in UNSHED:
            return ps.Control(priority=UNSHED[name], shed=False)
        case "static":
            return Static(min(1.0, 1 / told.factor))
        case "random":
            return RandomAtSource()
        case "costliest":
            return ByBranch(told, costliest_first)
        case "uniform":
            return ByBranch(told, uniform_by_cost)
        case "latency":
            return LatencyFeedback(told.strictest)
        case "state" | "feedback":
            return ps.Control(priority=name)
    raise ValueError(f"no contender '{name}'; there are: {', '.join(NAMES)}")


def at_the_source(share: float) -> tuple[Valve, ...]:
    """All outputs alike lose blocks of lines in front of decoding: the cheapest way to drop."""
    return () if share >= 1 else (Valve(SOURCE, round(max(_LEAST, share), 6), "blocks", lot_of(SOURCE)),)


@dataclass
class Static:
    """Drops the same share at the source throughout: it is told the factor, and needs to measure nothing."""

    share: float

    def begin(self, runtime: Any) -> None:
        for sub in runtime.subs:
            if SOURCE in sub.inputs:
                runtime.first_valves[sub.name] = at_the_source(self.share)

    def end(self) -> None:
        """Nothing to end."""

    def qos(self) -> None:
        """Nothing to tell."""


class RandomAtSource(ps.Control):
    """Our scheduler and our amount, but dropped at the source, all outputs alike."""

    def valves_for(self, sub: SubNetwork) -> tuple[Valve, ...]:
        return at_the_source(self.kept) if SOURCE in sub.inputs else ()


class ByBranch(ps.Control):
    """Our scheduler and our amount, dropped at the branches by what they cost, whatever they are worth."""

    def __init__(self, told: Told, drop: Drop) -> None:
        super().__init__()
        self._drop, self._full = drop, sum(node.load for node in told.nodes)
        self._costs = branch_costs(told.nodes)
        branches = [p for p in told.places if p.grain and p.at != SOURCE and len(p.outputs) == 1]
        # The first of a branch, from the input down: it saves most.
        self._branches = {min(place.outputs): place for place in reversed(branches)}

    def valves_for(self, sub: SubNetwork) -> tuple[Valve, ...]:
        # A branch whose boxes were too cheap to be told apart costs nothing, and gives its share too.
        known = {name: self._costs.get(name, 0.0) for name in self._branches}
        shares = self._drop(known, (1 - self.kept) * self._full)
        return tuple(
            place.valve(round(max(_LEAST, shares[output]), 6))
            for output, place in self._branches.items()
            if place.subnetwork == sub.name and shares.get(output, 1.0) < 1
        )


def branch_costs(nodes: Sequence[LoadNode]) -> dict[str, float]:
    """What each branch alone costs; work that several share is saved by none of them."""
    costs: dict[str, float] = {}
    for node in nodes:
        if len(node.outputs) == 1:
            output = min(node.outputs)
            costs[output] = costs.get(output, 0.0) + node.load
    return costs


def costliest_first(costs: Mapping[str, float], excess: float) -> Shares:
    """All of the costliest branch, then of the next, until enough has gone.

    >>> costliest_first({"a": 2.0, "b": 1.0}, excess=2.5)
    {'a': 0.0, 'b': 0.5}
    """
    shares: Shares = {}
    for output, cost in sorted(costs.items(), key=lambda each: -each[1]):
        gone = min(cost, max(0.0, excess))
        shares[output] = 1 - gone / cost if cost else 1.0
        excess -= gone
    return shares


def uniform_by_cost(costs: Mapping[str, float], excess: float) -> Shares:
    """The same share of every branch, so that each gives by what it costs.

    >>> uniform_by_cost({"a": 2.0, "b": 1.0}, excess=1.5)
    {'a': 0.5, 'b': 0.5}
    """
    return dict.fromkeys(costs, 1 - min(1.0, excess / (sum(costs.values()) or 1.0)))


class LatencyFeedback:
    """Looks at the delay alone, as a network card would: late, drop a tenth more; in time, a little less."""

    EVERY = 0.25
    TIGHTEN, LOOSEN = 0.9, 0.01

    def __init__(self, threshold: float) -> None:
        self._threshold, self._share = threshold, 1.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None

    def begin(self, runtime: Any) -> None:
        self._runtime = runtime
        self._thread = threading.Thread(target=self._run, name="latency feedback", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def qos(self) -> None:
        """Nothing to tell."""

    def _run(self) -> None:
        try:
            while not self._over.wait(self.EVERY):
                self._look()
        except Exception as error:  # otherwise it would go on as a run without control
            self.failure = error

    def _look(self) -> None:
        for name, query in list(self._runtime.queries.items()):
            if SOURCE in query.sub.inputs:
                age = query.situation().inputs[SOURCE].oldest_age or 0.0
                self._share = self.next_share(self._share, age)
                self._runtime.set_valves(name, at_the_source(self._share))

    def next_share(self, share: float, age: float) -> float:
        """The share after a look at the age of the oldest waiting tuple."""
        late = age > self._threshold / 2  # what waits so long will be late when its train ends
        return max(_LEAST, share * self.TIGHTEN) if late else min(1.0, share + self.LOOSEN)
