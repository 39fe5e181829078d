"""Who is compared: what steers a run in each case. Those that are not ours live here, not in the product."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import penstock as ps
from benchmarks.qos.workload import SOURCE
from penstock.engine.contract.valve import Valve, lot_of
from penstock.rewrite.subnetworks import SubNetwork

OURS = ("state", "feedback")
NAMES = ("none", "round-robin", "fifo", "static", "random", "latency", *OURS)
_LEAST = 0.01


def controller(name: str, factor: float, strictest: float) -> Any:
    """What steers the run of a contender. `factor`: the overload; only `static` is told.

    `strictest`: the smallest threshold, in seconds; only `latency` is told.
    """
    match name:
        case "none":
            return None
        case "round-robin" | "fifo":
            return ps.Control(priority=name, shed=False)
        case "static":
            return Static(min(1.0, 1 / factor))
        case "random":
            return RandomAtSource()
        case "latency":
            return LatencyFeedback(strictest)
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


class LatencyFeedback:
    """Looks at the delay alone, as a network card would: late, drop a tenth more; in time, a little less."""

    EVERY = 0.25
    TIGHTEN, LOOSEN = 0.9, 0.01

    def __init__(self, threshold: float) -> None:
        self._threshold, self._share = threshold, 1.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

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
        while not self._over.wait(self.EVERY):
            for name, query in list(self._runtime.queries.items()):
                if SOURCE in query.sub.inputs:
                    age = query.situation().inputs[SOURCE].oldest_age or 0.0
                    self._share = self.next_share(self._share, age)
                    self._runtime.set_valves(name, at_the_source(self._share))

    def next_share(self, share: float, age: float) -> float:
        """The share after a look at the age of the oldest waiting tuple."""
        late = age > self._threshold / 2  # what waits so long will be late when its train ends
        return max(_LEAST, share * self.TIGHTEN) if late else min(1.0, share + self.LOOSEN)
