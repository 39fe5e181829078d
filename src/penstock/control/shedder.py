"""When to shed and how much (A85, A87, A89, A92): tighten at once, loosen slowly, never swing.

The offered rate is measured in front of the valves. So shedding does not change what decides about it, and
the plan follows from demand and capacity alone. Delays only add to the demand: a backlog has to be done too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.control.analysis import PART

CATCH_UP = 1.5
"""Seconds in which a backlog older than its part of the threshold is to be worked off."""
_BAND = 0.03  # tighten by less than this only if something is late
_CALM = 2.0  # seconds without tightening before valves open
_OPEN_EVERY = 1.0  # seconds between two steps of opening
_LAST_TENTH = 0.9
_GAIN, _LEAST_ERROR, _MOST_ERROR = 0.05, 0.7, 1.6


@dataclass(frozen=True)
class Pressure:
    """What decides, at one moment. `load`: CPU-seconds a second that the offered tuples need, unshed.

    `usable`: CPU-seconds a second that may be used. `age`: of the oldest waiting tuple; `threshold`: of the
    strictest governed output. `measured` and `predicted`: CPU of recent trains, as used and as the cost lines
    say; None if no train ran.
    """

    now: float
    load: float
    usable: float
    age: float
    threshold: float
    measured: float | None = None
    predicted: float | None = None


@dataclass(frozen=True)
class Shedding:
    """How much of the load is kept, 0..1, and what is remembered for the next look.

    `error`: measured CPU by predicted CPU, smoothed.
    """

    kept: float = 1.0
    tightened: float = float("-inf")  # when
    opened: float = float("-inf")  # when, last
    error: float = 1.0


def demand(load: float, age: float, threshold: float) -> float:
    """The load with what has to be worked off.

    >>> demand(1.0, age=0.5, threshold=2.0), demand(1.0, age=2.3, threshold=2.0)
    (1.0, 2.0)
    """
    return load * (1 + max(0.0, age - PART * threshold) / CATCH_UP)


def next_shedding(state: Shedding, seen: Pressure) -> Shedding:
    """The decision of one look, a few times a second."""
    state = replace(state, error=_error(state.error, seen))
    needed = state.error * demand(seen.load, seen.age, seen.threshold)
    target = 1.0 if needed <= seen.usable else seen.usable / needed
    late = seen.age > PART * seen.threshold
    if target < state.kept * (1 - _BAND) or (late and target < state.kept):
        return replace(state, kept=target, tightened=seen.now)
    if target > state.kept and _may_open(state, seen.now):
        return replace(state, kept=_opened(state.kept, target), opened=seen.now)
    return state


def _error(before: float, seen: Pressure) -> float:
    if not seen.measured or not seen.predicted:
        return before
    now = seen.measured / seen.predicted
    return min(_MOST_ERROR, max(_LEAST_ERROR, before + _GAIN * (now - before)))


def _may_open(state: Shedding, now: float) -> bool:
    return now - state.tightened >= _CALM and now - state.opened >= _OPEN_EVERY


def _opened(kept: float, target: float) -> float:
    """Half of the way; the last tenth in one step, or a valve would never be fully open."""
    half = kept + (target - kept) / 2
    return 1.0 if target >= 1 and half > _LAST_TENTH else half
