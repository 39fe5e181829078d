"""Writes decisions to the catalog, and some seconds later what they have achieved; what is worth telling."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.control.loop.sentences import length_decision, out_of_reach_decision, would
from penstock.control.priority import Candidate, Ranking, train_length
from penstock.control.roadmap import RoadMap
from penstock.model.qos import QoS
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision

_LOG = logging.getLogger("penstock.control")
AFTER = 5.0
"""Seconds after which the effect of a decision is measured."""
_OPPOSITES = {"shed": "open", "open": "shed", "would-shed": "would-open", "would-open": "would-shed"}
_SHARES = ("shed", "open")
_LENGTH_CHANGE, _LENGTH_STAYS = 2, 10.0  # times as long or as short, seconds
_MAP_AT_MOST, _MAP_EVERY, _MAP_MOVED = 1.0, 10.0, 0.05  # seconds, seconds, part of the load

Measure = Callable[[Decision], Mapping[str, float]]


@dataclass(frozen=True)
class _Pending:
    decision: Decision
    due: float


class DecisionLog:
    """The decisions of one run. `observing`: they are only what would be done."""

    def __init__(self, decisions: Decisions, *, observing: bool) -> None:
        self._decisions, self._observing = decisions, observing
        self._pending: list[_Pending] = []
        self._told: set[tuple[str, float]] = set()  # outputs that cannot be good, and their thresholds

    def take(self, decision: Decision, now: float) -> None:
        """Keep a decision; `now`: on the clock of intervals."""
        if self._observing:
            decision = would(decision)
        opposite = _OPPOSITES.get(decision.kind)
        if opposite is not None:
            self._decisions.end(opposite, decision.subject, decision.time)
        kept = self._decisions.record(decision)
        _LOG.info("%s", kept.sentence)
        if kept.expected:
            self._pending.append(_Pending(kept, now + AFTER))

    def tell(self, decision: Decision) -> None:
        """Keep something that happened, whoever did it, observing or not."""
        self._decisions.record(decision)

    def end(self, kind: str, subject: str, at: float) -> None:
        """A decision no longer holds."""
        self._decisions.end(f"would-{kind}" if self._observing else kind, subject, at)

    def end_gone(self, shares: Mapping[str, float], outputs: Container[str]) -> Mapping[str, float]:
        """End what holds for outputs that were replaced or detached; returns the shares of the others."""
        for name in [name for name in shares if name not in outputs]:
            for kind in _SHARES:
                self.end(kind, name, time.time())
        return {name: share for name, share in shares.items() if name in outputs}

    def tell_out_of_reach(self, out_of_reach: Mapping[str, float], qos: Mapping[str, QoS]) -> None:
        """Tell, once for each graph, which outputs no rate lets be good, and what could be promised."""
        for name, least in out_of_reach.items():
            told = name, qos[name].threshold
            if told not in self._told:
                self._told.add(told)
                self.tell(out_of_reach_decision(*told, least, time.time()))

    def measure(self, now: float, measure: Measure) -> None:
        """Note what the decisions of some seconds ago have achieved."""
        due = [each for each in self._pending if each.due <= now]
        self._pending = [each for each in self._pending if each.due > now]
        for each in due:
            figures = {k: v for k, v in measure(each.decision).items() if k in each.decision.expected}
            self._decisions.realised(each.decision.id, figures)


class LengthNews:
    """Tells when the trains of a sub-network may become much longer or shorter, and stay so.

    Lengths follow cost lines that move all the time. What has moved back some seconds later is no news.
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}  # the length
        self._since: dict[str, float] = {}  # when it began to be another one

    def news(self, candidates: Sequence[Candidate], ranking: Ranking, now: float) -> Iterator[Decision]:
        """What is to be told of these sub-networks."""
        for candidate in (each for each in candidates if each.wall is not None):
            others = [each for each in candidates if each is not candidate]
            length, name = train_length(candidate, others), candidate.name
            told = self._told.get(name)
            if told is not None and max(length, told) < _LENGTH_CHANGE * min(length, told):
                self._since.pop(name, None)
            elif told is None or now - self._since.setdefault(name, now) >= _LENGTH_STAYS:
                self._told[name] = length
                self._since.pop(name, None)
                yield length_decision(candidate, others, ranking, time.time())


class MapNews:
    """Tells when the kept road map is old: there is another one, or the load that it is a part of has moved.

    The map is in parts of the load, so a load that rises evenly changes none of its rows.
    """

    def __init__(self) -> None:
        self._kept: RoadMap | None = None
        self._load, self._at = 0.0, float("-inf")

    def news(self, road: RoadMap | None, load: float | None, now: float) -> RoadMap | None:
        """The map, if it is to be kept anew."""
        if road is None or (road is self._kept and not self._old(load, now)):
            return None
        self._kept, self._load, self._at = road, load or 0.0, now
        return road

    def _old(self, load: float | None, now: float) -> bool:
        if load is None or now - self._at < _MAP_AT_MOST:
            return False
        return abs(load - self._load) > _MAP_MOVED * self._load or now - self._at >= _MAP_EVERY
