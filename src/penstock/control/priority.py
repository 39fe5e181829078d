"""Which sub-network runs next, and how long its train may be (A75, A76, A78, A79). Pure functions.

Spark cannot be told to prefer a job that comes later, and a task that runs is never stopped. So priority acts
where tickets are written: a train that is not granted does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from penstock.control.analysis import PART
from penstock.engine.contract.policy import DEFAULT_LENGTH
from penstock.model.control_settings import Scheme
from penstock.model.costs import Line
from penstock.model.qos import QoS

FIRST_LENGTH = 10_000
"""The length of a train whose cost is not known; then it doubles."""
LEAST_LENGTH = 1_000
OWN_PART = 0.3  # of its own threshold that a train may take: the next one may have to wait for an odd one
_FIXED_PART = 0.3  # a train is worth waiting for while more of it than this does not depend on its tuples
_WORTH = 10  # times its fixed part: who waits longer for a train saves next to nothing
_UNKNOWN_TRAIN = 0.25  # seconds
_MOST_BOOST = 100.0  # of an output that is out of its zone, after 48 seconds


@dataclass(frozen=True)
class RatedEnd:
    """An output or view with a QoS that gets what a sub-network gives; `below`: seconds until it is there."""

    name: str
    qos: QoS
    below: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A sub-network that could run a train now. None means unknown.

    `age`: of its oldest waiting tuple. `last_length` and `last_seconds`: of its last train. `granted`: when
    it last got one.
    """

    name: str
    waiting: int | None = None
    age: float | None = None
    wall: Line | None = None
    cpu: Line | None = None
    ends: tuple[RatedEnd, ...] = ()
    last_length: int = 0
    last_seconds: float | None = None
    granted: float = float("-inf")

    @property
    def threshold(self) -> float | None:
        """The least delay, from here on, that one of its ends finds good; None if it has no QoS."""
        return min((end.qos.threshold - end.below for end in self.ends), default=None)

    def seconds(self, length: int) -> float:
        """What a train of this length takes."""
        tuples = length if self.waiting is None else min(length, self.waiting)
        return _UNKNOWN_TRAIN if self.wall is None else self.wall.at(tuples)

    def cpu_seconds(self, length: int) -> float:
        """CPU of a train of this length."""
        tuples = length if self.waiting is None else min(length, self.waiting)
        known = self.cpu or self.wall
        return max(1e-6, _UNKNOWN_TRAIN if known is None else known.at(tuples))


@dataclass(frozen=True)
class Grant:
    """A train that may leave. `why`: the numbers that decided, for those who ask."""

    name: str
    length: int
    scheme: Scheme = "state"
    priority: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Ranking:
    """What a scheme remembers. `boost`: by output, for the feedback scheme."""

    scheme: Scheme = "state"
    boost: Mapping[str, float] = field(default_factory=dict)
    cap: int = DEFAULT_LENGTH


@dataclass(frozen=True)
class Limit:
    """The most seconds that a train may take. `end`: for whose sake, good up to `threshold` from here on.

    `why`: it is its own output, or that of another sub-network; or already the fixed part takes so long that
    shorter trains would only get less done.
    """

    seconds: float
    end: str
    threshold: float
    why: Literal["own", "other", "fixed"]


def strictest_limit(candidate: Candidate, others: Sequence[Candidate]) -> Limit | None:
    """The limit that decides how long its trains may be; None if there is none."""
    limits = [
        Limit(PART * max(0.0, good), end.name, good, "other")
        for each in others
        for end in each.ends
        for good in [end.qos.threshold - end.below]
    ]
    own = min(((end.qos.threshold - end.below, end.name) for end in candidate.ends), default=None)
    if own is not None:
        fixed = 0.0 if candidate.wall is None else 2 * candidate.wall.fixed
        why: Literal["own", "fixed"] = "fixed" if fixed > OWN_PART * own[0] else "own"
        limits.append(Limit(max(OWN_PART * own[0], fixed), own[1], own[0], why))
    return min(limits, key=lambda limit: limit.seconds, default=None)


def train_length(candidate: Candidate, others: Sequence[Candidate], cap: int = DEFAULT_LENGTH) -> int:
    """The most tuples of which a train is short enough, for its own ends and for those it would block."""
    limit = strictest_limit(candidate, others)
    most = float("inf") if limit is None else limit.seconds
    if candidate.wall is None:
        return _unknown_length(candidate, most, cap)
    if limit is None:
        return cap
    length = candidate.wall.length(most)
    # A train of twice the length takes at most twice as long, whatever the line says.
    quick = candidate.last_seconds is not None and 2 * candidate.last_seconds <= most
    known = 2 * candidate.last_length if quick else 0
    return cap if length is None else min(cap, max(LEAST_LENGTH, length, known))


def _unknown_length(candidate: Candidate, seconds: float, cap: int) -> int:
    """Twice the last train, or as many times as it would then take too long: costs are not known yet."""
    if not candidate.last_length or not candidate.last_seconds:
        return min(cap, FIRST_LENGTH)
    longer = min(2.0, seconds / candidate.last_seconds)
    return min(cap, max(LEAST_LENGTH, int(longer * candidate.last_length)))


def should_wait(candidate: Candidate, length: int, blocked: float = 0.0) -> bool:
    """Whether a longer train later costs no utility: there is time, and a train now is mostly fixed (A75).

    `blocked`: seconds that another train would take, should it leave first. Nothing waits longer than the
    part of its threshold from which on the shedder takes it for late: waiting is no overload.
    """
    if candidate.threshold is None or candidate.wall is None or candidate.waiting is None:
        return False
    if candidate.age is None or candidate.waiting >= length:
        return False
    takes = candidate.seconds(length)
    if candidate.age + takes > PART * candidate.threshold or candidate.age > _WORTH * candidate.wall.fixed:
        return False
    slack = candidate.threshold - candidate.age - takes
    return slack > takes + max(takes, blocked) and candidate.wall.fixed > _FIXED_PART * takes


def loss_if_deferred(candidate: Candidate, length: int, by: float) -> float:
    """The utility that its ends lose if another train runs first (A78)."""
    delay = (candidate.age or 0.0) + candidate.seconds(length)
    return sum(
        end.qos.weight * (end.qos.at_delay(delay + end.below) - end.qos.at_delay(delay + end.below + by))
        for end in candidate.ends
    )


def choose(candidates: Sequence[Candidate], ranking: Ranking) -> Grant | None:
    """The train to grant next; None if all had better wait.

    A candidate for which nothing waits gets none, but the trains of others are short enough for its ends.
    """
    ready = [each for each in candidates if each.waiting != 0]
    lengths = {each.name: _length(each, candidates, ranking) for each in ready}
    if ranking.scheme in ("state", "feedback"):
        takes = {each.name: each.seconds(lengths[each.name]) for each in ready}
        ready = [each for each in ready if not should_wait(each, lengths[each.name], _longest(takes, each))]
    if not ready:
        return None
    ranked = [(_rank(each, ready, lengths, ranking), each) for each in ready]
    rank, best = min(ranked, key=lambda pair: (pair[0], pair[1].name))
    length = lengths[best.name]
    return Grant(best.name, length, ranking.scheme, -rank[1], _why(best, length, ranking, -rank[1]))


def priorities(candidates: Sequence[Candidate], ranking: Ranking) -> dict[str, float]:
    """The priority of each sub-network's next train, larger first (A67); 0 if nothing waits for it.

    Who has no QoS is served last, the oldest first: below 0. With round robin it is how many seconds earlier
    than the last one it was served.
    """
    ready = [each for each in candidates if each.waiting != 0]
    if ranking.scheme == "round-robin":
        known = _turns(ready)
    else:
        lengths = {each.name: _length(each, candidates, ranking) for each in ready}
        ranks = {each.name: _rank(each, ready, lengths, ranking) for each in ready}
        known = {name: -1 / (1 - rank[1]) if rank[0] else -rank[1] for name, rank in ranks.items()}
    return {each.name: known.get(each.name, 0.0) for each in candidates}


def _turns(ready: Sequence[Candidate]) -> dict[str, float]:
    """Whose turn it is: larger first. Who was never served comes first, and has no time."""
    times = [each.granted for each in ready if isfinite(each.granted)]
    last, first = max(times, default=0.0), min(times, default=0.0) - 1.0
    return {each.name: last - (each.granted if isfinite(each.granted) else first) for each in ready}


def _length(candidate: Candidate, all_: Sequence[Candidate], ranking: Ranking) -> int:
    if ranking.scheme in ("round-robin", "fifo"):
        return ranking.cap
    others = [each for each in all_ if each.name != candidate.name]
    return train_length(candidate, others, ranking.cap)


def _rank(
    candidate: Candidate, ready: Sequence[Candidate], lengths: Mapping[str, int], ranking: Ranking
) -> tuple[float, ...]:
    """Smallest first: those without QoS last, then by the scheme, then by the time that is left."""
    age = candidate.age or 0.0
    if ranking.scheme == "round-robin":
        return (0.0, candidate.granted)
    if ranking.scheme == "fifo":
        return (0.0, -age)
    length = lengths[candidate.name]
    threshold = candidate.threshold
    if threshold is None:
        return (1.0, -age)
    left = threshold - age - candidate.seconds(length)
    if ranking.scheme == "feedback":
        urgent = sum(end.qos.weight * ranking.boost.get(end.name, 1.0) for end in candidate.ends)
        return (0.0, -urgent, left)
    instead = _longest({each.name: each.seconds(lengths[each.name]) for each in ready}, candidate)
    lost = loss_if_deferred(candidate, length, instead)
    return (0.0, -lost / candidate.cpu_seconds(length), left)


def _longest(takes: Mapping[str, float], candidate: Candidate) -> float:
    """What the longest train of the others takes."""
    return max((seconds for name, seconds in takes.items() if name != candidate.name), default=0.0)


def _why(candidate: Candidate, length: int, ranking: Ranking, priority: float) -> str:
    age = 0.0 if candidate.age is None else candidate.age
    good = "" if candidate.threshold is None else f", good to {candidate.threshold:.2f} s"
    return (
        f"{candidate.name}: at most {length:,} tuples by {ranking.scheme}, priority {priority:.3g}; "
        f"oldest {age:.2f} s{good}, a train takes {candidate.seconds(length):.2f} s"
    )


def next_boost(
    boost: Mapping[str, float], good: Mapping[str, bool | None], seconds: float
) -> dict[str, float]:
    """The feedback scheme (A79): 10 % more for each second out of the zone, back towards 1 in it.

    >>> next_boost({"a": 2.0, "b": 1.0}, {"a": True, "b": False, "c": None}, 1.0)
    {'a': 1.8181818181818181, 'b': 1.1, 'c': 1.0}
    """
    factor = 1.1**seconds
    return {name: _boosted(boost.get(name, 1.0), factor, zone) for name, zone in good.items()}


def _boosted(before: float, factor: float, zone: bool | None) -> float:
    # Bounded: after an hour out of its zone an output must not need another hour to be like the rest again.
    return min(_MOST_BOOST, before * factor) if zone is False else max(1.0, before / factor)
