"""Whether a run keeps up with its input (A83), without any QoS: how far behind, growing how fast, and why.

A backlog alone is no overload: a run over old files has one, and works it off. Overload is a backlog that
grows while its oldest tuple gets older.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import InputLoad, TrainRecord

SECONDS = 60
"""Loads of so many seconds decide."""
_LEAST_SPAN = 10.0  # seconds that must have been seen
_LEAST_AGE = 5.0  # seconds: a train may take that long without anything being wrong
_LEAST_GROWTH = 0.02  # seconds a second
_GAP = 3.0  # seconds without a record: the input was held, or nothing ran
AROUND = "reading, native boxes and Spark itself"


@dataclass(frozen=True)
class FallingBehind:
    """An input that comes faster than it is taken.

    `age`: seconds that its oldest tuple has waited; `aging`: by how much that grows each second. `waiting`
    and `growth`: the same in tuples, as far as known. `costliest`: what uses most CPU, and its share.
    """

    input: str
    subnetwork: str
    age: float
    aging: float
    waiting: int | None = None
    growth: float | None = None
    costliest: str = ""
    share: float = 0.0

    def __str__(self) -> str:
        """One sentence.

        >>> print(FallingBehind("cars", "tolls", 12.34, 0.6, 48200, 1210.0, "score", 0.71))
        cars is 12.3 s behind, 0.6 s more each second; 48,200 tuples wait, 1,210 more each second; \
most CPU goes to score: 71 %
        """
        parts = [f"{self.input} is {self.age:.1f} s behind, {self.aging:.1f} s more each second"]
        if self.waiting is not None and self.growth is not None:
            parts.append(f"{self.waiting:,} tuples wait, {self.growth:,.0f} more each second")
        if self.costliest:
            parts.append(f"most CPU goes to {self.costliest}: {100 * self.share:.0f} %")
        return "; ".join(parts)


def overload_now(catalog: Catalog, now: float) -> list[FallingBehind]:
    """The inputs of a running network that it does not keep up with; none if it does not run."""
    recent = [load for load in catalog.loads(SECONDS) if load.time > now - SECONDS]
    if not recent or recent[-1].time < now - _LEAST_SPAN:
        return []
    behind = falling_behind(recent)
    trains = {each.subnetwork: catalog.trains(each.subnetwork, last=16) for each in behind}
    return [_explained(each, trains[each.subnetwork]) for each in behind]


def falling_behind(loads: Iterable[InputLoad]) -> list[FallingBehind]:
    """The inputs that come faster than they are taken, from the loads of the last minute, oldest first."""
    by_input: dict[tuple[str, str], list[InputLoad]] = {}
    for load in loads:
        by_input.setdefault((load.input, load.subnetwork), []).append(load)
    judged = [_judged(_since_last_gap(seen)) for seen in by_input.values()]
    return sorted((each for each in judged if each is not None), key=lambda each: -each.age)


def _since_last_gap(seen: Sequence[InputLoad]) -> Sequence[InputLoad]:
    """The loads after the last pause: what waited while an input was held is no overload."""
    gaps = [other.time - one.time for one, other in pairwise(seen)]
    # A large folder is looked at less often: then the usual distance between two looks is longer.
    longest = max(_GAP, 3 * median(gaps)) if gaps else _GAP
    begins = [i for i, gap in enumerate(gaps, 1) if gap > longest]
    return seen[begins[-1] :] if begins else seen


def _judged(seen: Sequence[InputLoad]) -> FallingBehind | None:
    last = seen[-1]
    if last.age is None or last.age < _LEAST_AGE or last.time - seen[0].time < _LEAST_SPAN:
        return None
    aging = _slope([(load.time, load.age or 0.0) for load in seen])
    waiting = [(load.time, float(load.waiting)) for load in seen if load.waiting is not None]
    growth = _slope(waiting) if last.waiting is not None and len(waiting) > 1 else None
    if aging < _LEAST_GROWTH or (growth is not None and growth <= 0):
        return None
    return FallingBehind(last.input, last.subnetwork, last.age, aging, last.waiting, growth)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth a second, by least squares: the age moves in steps, one for each train."""
    times, values = (np.array(column) for column in zip(*points, strict=True))
    spread = times - times.mean()
    return float((spread * (values - values.mean())).sum() / max(1e-9, (spread**2).sum()))


def _explained(behind: FallingBehind, trains: Sequence[TrainRecord]) -> FallingBehind:
    name, share = costliest(trains)
    return FallingBehind(
        behind.input,
        behind.subnetwork,
        behind.age,
        behind.aging,
        behind.waiting,
        behind.growth,
        name,
        share,
    )


def costliest(trains: Sequence[TrainRecord]) -> tuple[str, float]:
    """What used most CPU in these trains, and its share; ("", 0) if nothing is known."""
    used: dict[str, float] = {}
    for train in trains:
        for box in train.boxes:
            used[box.box] = used.get(box.box, 0.0) + box.cpu
        around = (train.cpu or 0.0) - sum(box.cpu for box in train.boxes)
        used[AROUND] = used.get(AROUND, 0.0) + max(0.0, around)
    total = sum(used.values())
    if total <= 0:
        return "", 0.0
    name = max(used, key=lambda each: used[each])
    return name, used[name] / total
