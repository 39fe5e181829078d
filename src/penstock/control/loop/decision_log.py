"""Writes decisions to the catalog, and some seconds later what they have achieved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.control.loop.sentences import would
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision

_LOG = logging.getLogger("penstock")
AFTER = 5.0
"""Seconds after which the effect of a decision is measured."""
_OPPOSITES = {"shed": "open", "open": "shed", "would-shed": "would-open", "would-open": "would-shed"}

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

    def measure(self, now: float, measure: Measure) -> None:
        """Note what the decisions of some seconds ago have achieved."""
        due = [each for each in self._pending if each.due <= now]
        self._pending = [each for each in self._pending if each.due > now]
        for each in due:
            figures = {k: v for k, v in measure(each.decision).items() if k in each.decision.expected}
            self._decisions.realised(each.decision.id, figures)
