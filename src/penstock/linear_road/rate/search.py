"""Which L to try next: the search for a rating as a pure function of the trials so far.

Idea: start somewhere, then double while trials pass (or halve while they fail). Then bisect between the
largest pass and the smallest failure until they are one step apart: 0.5 expressways at small L, a share of L
at large ones, 5 % unless the user sets it. A longer run confirms the winner. A winner that fails there counts
as a failure, and the search continues below it. The answer depends on the trials alone, so an interrupted
search resumes from its list. `rating.py` runs the trials. L-rating: Arasu et al., VLDB 2004, section 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SMALLEST = 0.5
"""One direction of one expressway."""

SHARE = 0.05
"""The step at large L, as a share of it, unless the user sets another."""


BRACKET = 0.15
"""A rating is bracketed if an L at most this share larger has failed."""


@dataclass(frozen=True)
class TrialOutcome:
    """What the search needs to know about a trial."""

    expressways: float
    passed: bool
    confirming: bool = False


@dataclass(frozen=True)
class Bounds:
    """Where to search: the first trial, the largest L worth trying (None: no limit), and how finely."""

    begin: float = 50
    end: float | None = None
    share: float = SHARE


@dataclass(frozen=True)
class NextTrial:
    """What to do next: try this L, confirm it, or stop with it as the rating (0: nothing passed)."""

    kind: Literal["try", "confirm", "done"]
    expressways: float


def next_step(tried: Sequence[TrialOutcome], bounds: Bounds) -> NextTrial:
    """What to do after these trials.

    >>> bounds = Bounds(begin=4)
    >>> next_step([], bounds)
    NextTrial(kind='try', expressways=4)
    >>> next_step([TrialOutcome(4, True)], bounds)
    NextTrial(kind='try', expressways=8)
    >>> next_step([TrialOutcome(4, True), TrialOutcome(8, False)], bounds)
    NextTrial(kind='try', expressways=6.0)
    >>> next_step([TrialOutcome(4, True), TrialOutcome(4.5, False)], bounds)
    NextTrial(kind='confirm', expressways=4)
    >>> confirmed = TrialOutcome(4, True, confirming=True)
    >>> next_step([TrialOutcome(4, True), TrialOutcome(4.5, False), confirmed], bounds)
    NextTrial(kind='done', expressways=4)
    """
    failure = min((t.expressways for t in tried if not t.passed), default=None)
    # A pass above a failure was luck and does not count.
    passes = [t.expressways for t in tried if t.passed and (failure is None or t.expressways < failure)]
    if not passes:
        return _without_pass(failure, bounds)
    best = max(passes)
    following = _above(best, failure, bounds)
    if following is not None:
        return NextTrial("try", following)
    confirmed = any(t.confirming and t.passed and t.expressways == best for t in tried)
    return NextTrial("done" if confirmed else "confirm", best)


def _without_pass(failure: float | None, bounds: Bounds) -> NextTrial:
    if failure is None:
        return NextTrial("try", bounds.begin if bounds.end is None else min(bounds.begin, bounds.end))
    return NextTrial("done", 0) if failure <= SMALLEST else NextTrial("try", on_grid(failure / 2))


def _above(best: float, failure: float | None, bounds: Bounds) -> float | None:
    """The next L above the best one; None if there is nothing left to find."""
    if failure is None:
        limit = math.inf if bounds.end is None else bounds.end
        return None if best >= limit else min(best * 2, limit)
    # The grid may round the middle down to the best one. Then nothing is left between the two.
    middle = on_grid((best + failure) / 2)
    return middle if failure - best > step_at(best, bounds.share) and best < middle < failure else None


def step_at(expressways: float, share: float = SHARE) -> float:
    """The step size of the search at this L.

    >>> step_at(2.5), step_at(10), step_at(200), step_at(200, 0.1)
    (0.5, 0.5, 10.0, 20.0)
    """
    return max(SMALLEST, expressways * share)


def is_next(expressways: float, larger: float) -> bool:
    """Whether nothing worth trying lies between the two: the larger one brackets the smaller.

    >>> is_next(400, 420), is_next(400, 520), is_next(1, 1.5)
    (True, False, True)
    """
    return larger - expressways <= max(SMALLEST, expressways * BRACKET)


def on_grid(expressways: float) -> float:
    """The nearest L at or below that is worth trying: halves up to 20, whole expressways above.

    >>> on_grid(3.74), on_grid(0.2), on_grid(77.5)
    (3.5, 0.5, 77.0)
    """
    grid = SMALLEST if expressways < 20 else 1.0
    return max(SMALLEST, math.floor(expressways / grid) * grid)
