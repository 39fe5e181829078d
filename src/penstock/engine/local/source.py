"""Where tuples enter the reference engine: each gets its place, its types and its timestamp, or is refused.

The source is the same description that other engines read, but no code of a connector runs here: rows are
given as Python values. So a fault of a connector shows when the engines are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.local.rows import Answer, Row, Value
from penstock.engine.local.valves import Valve
from penstock.model.boxes import Source
from penstock.model.checks.horizons import MIN
from penstock.model.expressions.values import convert, micros
from penstock.model.types import SEQ, STAMP


@dataclass
class SourceAnswer(Answer):
    """What a source gives. `shed`: tuples that valves drop; `seen`: their times, by what was shed at once."""

    shed: int = 0
    seen: dict[int, int] = field(default_factory=dict)


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

    def take(self, given: Iterable[object], valves: Sequence[Valve] = ()) -> SourceAnswer:
        """One train: typed tuples; late and broken ones with a reason. Only then does the horizon move."""
        answer = SourceAnswer()
        for row in given:
            self._take(row, answer, valves)
            self.arrived += 1
            self.last_tuple = self.clock() if self.clock else 0
        seen = [row[STAMP] for row in answer.out] + list(answer.seen.values())
        if seen and self.node.timestamp is not None:
            # `whole`: a train never splits a time, so later ones begin after it and the promise may go one
            # step further.
            self.horizon = max(self.horizon, max(seen) - self.node.lateness + (1 if self.node.whole else 0))
        return answer

    def _take(self, given: object, answer: SourceAnswer, valves: Sequence[Valve]) -> None:
        row, problem = None, ""
        try:
            row = self._typed(self._named(given))
        except ValueError as error:
            problem = str(error)
        # Before anything is refused: a shed tuple is neither late nor dead.
        dropping = next((v for v in valves if not v.lets_in(self.arrived, row)), None)
        if dropping is not None:
            answer.shed += 1
            self._note_time(row, answer, dropping)
            return
        if row is None:
            answer.dead.append(({**_shown(given), SEQ: self.arrived}, problem))
            return
        reason = self._refusal(row)
        if reason:
            answer.dead.append((row, reason))
        else:
            answer.out.append(row)

    def _note_time(self, row: Row | None, answer: SourceAnswer, valve: Valve) -> None:
        """A shed tuple moves the horizon. Of a shed block only the last line is read."""
        number = valve.block(self.arrived)
        # A block whose last line has no time moves nothing: its other lines are not read.
        answer.seen.pop(number, None)
        if row is not None and row[STAMP] is not None:
            answer.seen[number] = row[STAMP]

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
