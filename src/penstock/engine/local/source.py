"""Where tuples enter the reference engine: each gets its place, its types and its timestamp, or is refused.

The source is the same description that other engines read, but no code of a connector runs here: rows are
given as Python values. So a fault of a connector shows when the engines are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.engine.local.rows import Answer, Row, Value
from penstock.model.boxes import Source
from penstock.model.checks.horizons import MIN
from penstock.model.expressions.values import convert, micros
from penstock.model.types import SEQ, STAMP


class SourceLogic:
    """Counts arrivals, types rows, and knows how far the source is.

    `clock` gives microseconds, for idleness.
    """

    def __init__(self, node: Source, clock: Callable[[], int] | None) -> None:
        self.node, self.clock = node, clock
        self.arrived = 0
        self.horizon = MIN
        self.last_tuple = clock() if clock else 0

    @property
    def idle(self) -> bool:
        """Whether others need not wait for this source any more."""
        if self.clock is None or self.node.idle is None:
            return False
        return self.clock() - self.last_tuple >= self.node.idle

    def take(self, given: Iterable[object]) -> Answer:
        """One train: typed tuples; late and broken ones with a reason. Only then does the horizon move."""
        answer = Answer()
        for row in given:
            self._take(row, answer)
            self.arrived += 1
            self.last_tuple = self.clock() if self.clock else 0
        if answer.out and self.node.timestamp is not None:
            newest = max(row[STAMP] for row in answer.out)
            self.horizon = max(self.horizon, newest - self.node.lateness + (1 if self.node.whole else 0))
        return answer

    def _take(self, given: object, answer: Answer) -> None:
        try:
            row = self._typed(self._named(given))
        except ValueError as problem:
            answer.dead.append(({**_shown(given), SEQ: self.arrived}, str(problem)))
            return
        reason = self._refusal(row)
        if reason:
            answer.dead.append((row, reason))
        else:
            answer.out.append(row)

    def _named(self, given: object) -> Mapping[str, Value]:
        if isinstance(given, Mapping):
            return given
        names = self.node.schema.names
        if not isinstance(given, list | tuple) or len(given) != len(names):
            raise ValueError(f"{given!r} is no row of {len(names)} columns")
        return dict(zip(names, given, strict=True))

    def _typed(self, named: Mapping[str, Value]) -> Row:
        row: Row = {}
        for column in self.node.schema:
            try:
                row[column.name] = convert(named.get(column.name), column.type)
            except ValueError as problem:
                raise ValueError(f"column '{column.name}': {problem}") from None
        stamp = None if self.node.timestamp is None else row[self.node.timestamp]
        return {**row, STAMP: None if stamp is None else micros(stamp), SEQ: self.arrived}

    def _refusal(self, row: Row) -> str:
        if self.node.timestamp is None:
            return ""
        if row[STAMP] is None:
            return "timestamp is null"
        if row[STAMP] < self.horizon:
            return (
                f"late: timestamp {row[STAMP]} us is behind the horizon {self.horizon} us of earlier trains"
            )
        return ""


def _shown(given: object) -> Row:
    return dict(given) if isinstance(given, Mapping) else {"row": given}
