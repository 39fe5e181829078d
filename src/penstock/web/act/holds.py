"""Holding sub-networks, stepping them, and breakpoints (A38). Nothing stays held by mistake.

A hold belongs to somebody and has an end: the page renews it while it is open. A breakpoint is a monitor with
a condition; the train in which a tuple fulfils it is the last one to leave.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from penstock.engine.contract.steering import Monitor
from penstock.engine.contract.train_done import TrainDone
from penstock.model.errors import did_you_mean
from penstock.model.json_types import JsonObject
from penstock.runtime import Runtime
from penstock.web.act.monitors import Tell, check_condition
from penstock.web.errors import RefusedChangeError, UnknownNameError
from penstock.web.look.rows_json import json_rows

LONGEST = 3_600.0  # seconds of one hold
_WAIT = 10.0  # seconds that a step waits for input
_TRAIN = 120.0  # seconds more that it waits for a train that has left
_LOOK = 0.2  # seconds between two looks whether it has
_SHOWN = 20  # tuples of each box in a step
_BREAK, _STEP = "break ", "step "
_MOST_BREAKPOINTS = 50


@dataclass(frozen=True)
class Hold:
    """Who holds a sub-network, until when and why."""

    subnetwork: str
    by: str
    until: float | None
    why: str = ""


@dataclass(frozen=True)
class Breakpoint:
    """A condition on an arrow that holds the sub-network in front of which it lies."""

    id: str
    arrow: str
    tail: str
    condition: str
    subnetwork: str
    by: str
    hits: int = 0


class Holds:
    """All holds and breakpoints of a runtime."""

    def __init__(self, runtime: Runtime, tell: Tell, clock: Callable[[], float] = time.time) -> None:
        self._runtime, self._tell, self._clock = runtime, tell, clock
        self._holds: dict[str, Hold] = {}
        self._breakpoints: dict[str, Breakpoint] = {}
        self._numbers = itertools.count(1)
        self._done = threading.Condition()
        self._stepped: dict[str, TrainDone] = {}
        runtime.on_train(self._train_done)

    # -- hold and release

    def hold(self, subnetwork: str, by: str, seconds: float, why: str = "") -> Hold:
        """Hold a sub-network, or prolong a hold."""
        self._must_run(subnetwork)
        if not 0 < seconds <= LONGEST:
            raise RefusedChangeError(f"a hold of {seconds:g} seconds", expected=f"0 to {LONGEST:g}")
        if not self._runtime.queries[subnetwork].steering.held:
            self._runtime.hold(subnetwork)
        hold = self._holds[subnetwork] = Hold(subnetwork, by, self._clock() + seconds, why)
        self._publish()
        return hold

    def holds(self, subnetwork: str) -> bool:
        """Whether a client holds it now."""
        return subnetwork in self._holds

    def release(self, subnetwork: str) -> None:
        """Let it go on."""
        self._must_run(subnetwork)
        self._holds.pop(subnetwork, None)
        self._runtime.release(subnetwork)
        self._publish()

    def expire(self) -> None:
        """Release what nobody has prolonged."""
        now = self._clock()
        for hold in list(self._holds.values()):
            if hold.subnetwork not in self._runtime.queries:
                self._holds.pop(hold.subnetwork, None)
            elif hold.until is not None and hold.until <= now:
                self.release(hold.subnetwork)

    def end(self) -> None:
        """Release everything: the console ends."""
        for subnetwork in list(self._holds):
            if subnetwork in self._runtime.queries:
                self.release(subnetwork)

    def held(self) -> list[JsonObject]:
        """Who holds what; the run itself holds what no client does."""
        queries = list(self._runtime.queries.items())
        shown = [
            self._holds.get(name, Hold(name, "the run", None, "it was held outside of the console"))
            for name, query in queries
            if query.steering.held
        ]
        return [asdict(hold) for hold in shown]

    def _must_run(self, subnetwork: str) -> None:
        if subnetwork not in self._runtime.queries:
            raise UnknownNameError(
                f"no sub-network '{subnetwork}'", hint=did_you_mean(subnetwork, self._runtime.queries)
            )

    def _publish(self) -> None:
        self._tell("held", {"held": self.held(), "breakpoints": self.breakpoints()}, "held")

    # -- step

    def step(self, subnetwork: str, tuples: int | None, wait: float = _WAIT) -> JsonObject:
        """Let one train leave, and tell what each box took and gave."""
        self._must_run(subnetwork)
        query = self._runtime.queries[subnetwork]
        if not query.steering.held:
            raise RefusedChangeError(f"'{subnetwork}' is not held", hint="hold it first")
        self._monitor(subnetwork, _STEP, {name: Monitor(name, _SHOWN) for name in query.sub.network.nodes})
        try:
            done = self._next_with_tuples(subnetwork, tuples, time.monotonic() + wait)
        finally:
            query.steering.steps = 0  # what comes later must not run by surprise
            self._monitor(subnetwork, _STEP, {})
        return _stepped(subnetwork, done, list(query.sub.network.nodes))

    def _next_with_tuples(self, subnetwork: str, tuples: int | None, until: float) -> TrainDone | None:
        """Step over trains that only move horizons: nobody sees anything in them."""
        done: TrainDone | None = None
        while done is None or not (done.ticket.rows or done.samples):
            last = self._runtime.queries[subnetwork].last
            self._runtime.step(subnetwork, tuples)
            stepped = self._wait_for(subnetwork, last, until)
            if stepped is None:
                break
            done = stepped
        return done

    def _wait_for(self, subnetwork: str, last: int, until: float) -> TrainDone | None:
        """The next train; None if none leaves in time. One that has left is waited for."""
        query = self._runtime.queries[subnetwork]

        def newer() -> bool:
            done = self._stepped.get(subnetwork)
            return done is not None and done.ticket.train > last

        with self._done:
            while not self._done.wait_for(newer, _LOOK):
                left = query.last > last
                if query.failure is not None or time.monotonic() > until + (_TRAIN if left else 0.0):
                    return None
            return self._stepped[subnetwork]

    def _monitor(self, subnetwork: str, prefix: str, monitors: dict[str, Monitor]) -> None:
        query = self._runtime.queries.get(subnetwork)
        if query is not None:
            others = {n: m for n, m in query.steering.monitors.items() if not n.startswith(prefix)}
            query.steering.monitors = {**others, **{prefix + n: m for n, m in monitors.items()}}

    # -- a condition that holds

    def break_at(self, arrow: str, tail: str, subnetwork: str, condition: str, by: str) -> Breakpoint:
        """Hold the sub-network after the train in which a tuple on the arrow fulfils the condition."""
        self._must_run(subnetwork)
        if not condition.strip():
            raise RefusedChangeError("a breakpoint without a condition", expected="Spark SQL, as 'spd < 9'")
        if len(self._breakpoints) >= _MOST_BREAKPOINTS:
            raise RefusedChangeError(f"there are {_MOST_BREAKPOINTS} breakpoints already", hint="remove some")
        check_condition(self._runtime.queries[subnetwork].sub.network.types[tail], condition)
        breakpoint_ = Breakpoint(f"b{next(self._numbers)}", arrow, tail, condition, subnetwork, by)
        self._breakpoints[breakpoint_.id] = breakpoint_
        self._install(subnetwork)
        return breakpoint_

    def remove(self, number: str) -> None:
        """Forget a breakpoint."""
        gone = self._breakpoints.pop(number, None)
        if gone is None:
            raise UnknownNameError(f"no breakpoint '{number}'", hint=did_you_mean(number, self._breakpoints))
        self._install(gone.subnetwork)

    def breakpoints(self) -> list[JsonObject]:
        """All of them."""
        return [asdict(each) for each in self._breakpoints.values()]

    def _install(self, subnetwork: str) -> None:
        mine = [b for b in self._breakpoints.values() if b.subnetwork == subnetwork]
        monitors = {b.id: Monitor(b.tail, 1, b.condition) for b in mine}
        self._monitor(subnetwork, _BREAK, monitors)
        self._publish()

    def _train_done(self, done: TrainDone) -> None:
        """Runs in the train's thread, before the next one may leave."""
        for name in done.samples:
            hit = self._breakpoints.get(name.removeprefix(_BREAK)) if name.startswith(_BREAK) else None
            if hit is not None and done.samples[name].num_rows:
                self._hit(hit)
        with self._done:
            self._stepped[done.subnetwork] = done
            self._done.notify_all()

    def _hit(self, hit: Breakpoint) -> None:
        self._breakpoints[hit.id] = replace(hit, hits=hit.hits + 1)
        self.hold(hit.subnetwork, hit.by, 600.0, f"breakpoint {hit.condition} on {hit.arrow}")


def _stepped(subnetwork: str, done: TrainDone | None, nodes: list[str]) -> JsonObject:
    if done is None:
        return {"subnetwork": subnetwork, "train": None, "rows": 0, "seconds": None, "boxes": []}
    counts, samples = done.commit.counts, done.samples
    return {
        "subnetwork": subnetwork,
        "train": done.ticket.train,
        "rows": done.ticket.rows,
        "seconds": round(done.seconds, 3),
        "boxes": [
            {
                "box": name,
                "took": counts[name].get("in"),
                "gave": counts[name].get("out"),
                "dead": counts[name].get("dead", 0),
                "tuples": json_rows(samples[_STEP + name]) if _STEP + name in samples else [],
            }
            for name in nodes
            if name in counts
        ],
    }
