"""What waits at the inputs of a sub-network: looked at now and then, at little cost, without taking it.

The conductor looks, because an input has one user. Others read the last look from any thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.connectors.contract import Input, Position, Taken, Waiting
from penstock.engine.contract.situation import InputSituation

_EVERY = 0.25  # seconds between two looks at an input
_COSTS = 3  # the cheapest of so many looks tells what a look costs
_COST = 200  # looks take at most one part in so many of a core, for each input
_RATE_SECONDS = 5.0  # the offered rate is that of so many seconds
_JUMP_SECONDS, _JUMP = 2.0, 1.25  # unless that of fewer is so many times as much: then the load has jumped


class InputBacklog:
    """Looks at the inputs of one sub-network."""

    def __init__(
        self, inputs: Mapping[str, Input[Any]], clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._inputs, self._clock, self._wall = inputs, clock, wall
        self._waiting: dict[str, Waiting] = {}
        self._taken: dict[str, int] = dict.fromkeys(inputs, 0)
        self._lost: dict[str, int] = dict.fromkeys(inputs, 0)  # shed above a connection point
        self._cost: dict[str, float] = dict.fromkeys(inputs, 0.0)
        self._costs: dict[str, deque[float]] = {name: deque(maxlen=_COSTS) for name in inputs}
        self._next: dict[str, float] = dict.fromkeys(inputs, 0.0)
        self._offered: dict[str, deque[tuple[float, int]]] = {name: deque() for name in inputs}

    def took(self, name: str, part: Taken) -> None:
        """Note what a train takes. What waits behind it is looked at again as soon as the cost allows."""
        self._taken[name] += part.rows
        self._lost[name] += part.lost
        if part.rows:
            self._next[name] = min(self._next[name], self._clock() + _COST * self._cost[name])
        if not (part.slices or part.more or part.waiting):
            self._waiting[name] = Waiting(0, 0)
        elif part.rows and name in self._waiting:
            self._waiting[name] = _behind(self._waiting[name], part)

    def look(self, positions: Mapping[str, Position | None]) -> None:
        """Look at the inputs whose turn it is."""
        now = self._clock()
        for name, source in self._inputs.items():
            if now >= self._next[name]:
                before = time.perf_counter()
                self._waiting[name] = source.waiting(positions.get(name))
                # On a busy machine a single look may take long for no fault of its own.
                self._costs[name].append(time.perf_counter() - before)
                self._cost[name] = min(self._costs[name])
                self._next[name] = now + max(_EVERY, _COST * self._cost[name])
                self._note_offered(name, now)

    def _note_offered(self, name: str, now: float) -> None:
        waiting = self._waiting[name].tuples
        seen = self._offered[name]
        if waiting is None:
            seen.clear()  # taken alone would show our own speed, not that of the source
            return
        # In front of all valves, also above a point: else what is shed would look like less to do.
        lost = self._lost[name] + self._waiting[name].lost
        seen.append((now, self._taken[name] + waiting + lost))
        while len(seen) > 2 and seen[1][0] <= now - _RATE_SECONDS:
            seen.popleft()

    def situation(self, name: str) -> InputSituation:
        """What is known about an input now."""
        waiting = self._waiting.get(name, Waiting())
        age = None if waiting.arrived is None else max(0.0, self._wall() - waiting.arrived)
        return InputSituation(self._taken[name], waiting.tuples, waiting.bytes, age, self._rate(name))

    def _rate(self, name: str) -> float | None:
        seen = list(self._offered[name])
        rate = _slope(seen)
        if rate is None:
            return None
        jump = _slope([each for each in seen if each[0] >= seen[-1][0] - _JUMP_SECONDS])
        return jump if jump is not None and jump > _JUMP * rate else rate


def _behind(known: Waiting, part: Taken) -> Waiting:
    """What is left of what was seen, once a train has taken its part.

    Inputs are taken in the order of arrival. So what is left came no earlier than the last that was taken:
    with the old time it would seem to grow older and older until the next look.
    """
    left = None if known.tuples is None else max(0, known.tuples - part.rows)
    last = max((at for at, _ in part.arrivals), default=None)
    arrived = known.arrived if last is None else max(last, known.arrived or last)
    return Waiting(left, known.bytes, None if left == 0 and not part.more else arrived)


def _slope(seen: Sequence[tuple[float, int]]) -> float | None:
    """Tuples a second from the first to the last of these moments."""
    if len(seen) < 2 or seen[-1][0] <= seen[0][0]:
        return None
    return max(0.0, (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0]))
