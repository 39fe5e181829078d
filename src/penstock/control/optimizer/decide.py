"""Whether another form of a sub-network is worth a swap, and whether the swap has kept its promise.

Pure: the same figures give the same decision. All CPU is in seconds of CPU a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.control.costs import subnetwork_of
from penstock.model.costs import Line
from penstock.store.catalog.record_types import TrainRecord


@dataclass(frozen=True)
class Limits:
    """When to act.

    `every`: seconds between two rounds. `share`: the least part of a sub-network's CPU to be won. `repaid`:
    seconds in which the blip must be repaid. `pause`: seconds between two swaps. `kept`: the least part of
    what was promised that must come true. `trains`: as many must have been measured before each decision.
    """

    every: float = 60.0
    share: float = 0.05
    repaid: float = 600.0
    pause: float = 300.0
    kept: float = 0.5
    trains: int = 8


@dataclass(frozen=True)
class Gain:
    """What another form is expected to save: CPU a second, and the part of all that the sub-network uses."""

    saved: float
    share: float


def gain(now: float, then: float, used: float) -> Gain:
    """What is won if boxes that cost `now` will cost `then`; `used` is what the sub-network was seen to use.

    The model may think too much of the boxes, so the larger of both is what is shared.

    >>> gain(0.5, 0.25, used=1.0)
    Gain(saved=0.25, share=0.25)
    """
    saved = now - then
    whole = max(used, now)
    return Gain(saved, saved / whole if whole > 0 else 0.0)


def objection(offered: Gain, blip: float, since: float | None, limits: Limits) -> str | None:
    """Why not to swap; None if nothing speaks against it. `since`: seconds since the last swap, if any.

    While the blip lasts nothing is done, and a core stands by: it costs its length in CPU.

    >>> objection(Gain(0.2, 0.4), blip=1.0, since=None, limits=Limits()) is None
    True
    >>> objection(Gain(0.2, 0.04), blip=1.0, since=None, limits=Limits())
    'saves only 4.0 % of its CPU, less than 5 %'
    >>> objection(Gain(0.001, 0.4), blip=1.0, since=None, limits=Limits())
    'a blip of 1.0 s is repaid only after 1000 s'
    """
    if offered.share < limits.share:
        return f"saves only {offered.share:.1%} of its CPU, less than {limits.share:.0%}".replace("%", " %")
    if offered.saved * limits.repaid < blip:
        return f"a blip of {blip:.1f} s is repaid only after {blip / offered.saved:.0f} s"
    if since is not None and since < limits.pause:
        return f"the last swap was {since:.0f} s ago"
    return None


@dataclass(frozen=True)
class Judgement:
    """What a swap has achieved: the part of the sub-network's CPU that it saved, at trains as long as now."""

    realised: float
    undo: bool


def judged(before: Line, trains: Sequence[TrainRecord], expected: float, limits: Limits) -> Judgement | None:
    """Compare the trains since a swap with the line before it; None if too few were measured."""
    full = [train for train in trains if train.rows_in > 0 and train.cpu is not None]
    after = subnetwork_of("", full).cpu
    if len(full) < limits.trains or after is None:
        return None
    length = sum(train.rows_in for train in full) / len(full)
    then, now = before.at(length), after.at(length)
    realised = 1 - now / then if then > 0 else 0.0
    return Judgement(realised, undo=realised < limits.kept * expected)


def cpu_used(trains: Sequence[TrainRecord], now: float) -> float | None:
    """CPU a second of these trains, from the first one until now; None if it was not measured."""
    known = [train.cpu for train in trains if train.cpu is not None]
    if not trains or len(known) < len(trains):
        return None
    return sum(known) / max(1e-9, now - trains[0].start)
