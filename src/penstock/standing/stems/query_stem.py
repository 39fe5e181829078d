"""The Query SteM (PSoup, Sect. 3; P07, P23-P26): all queries of the system, probed by trains.

Equal conjunctions of one stream are kept once, under a slot number that is never reused. Their constants lie
sorted, separately for each column and operator. A train, sorted by the same column, meets them in one merge.
Where the paper counts the factors that each query has fulfilled, we take the shortest slice and check the
rest (probe_loop.py). That gives the same answer with fewer writes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from penstock.model.types import INTEGRAL, Schema
from penstock.standing.language.query import Conjunction, Constant, Span
from penstock.standing.stems.columns import SortedColumn

_EQ, _GE, _GT, _LE, _LT, _ANY = range(6)


@dataclass(frozen=True)
class Factors:
    """The constants of one column and operator, sorted, and the span that each of them bounds."""

    attribute: int
    operator: int
    constants: np.ndarray
    spans: np.ndarray


@dataclass(frozen=True, eq=False)
class KnownConjunctions:
    """Which conjunctions an index knew, and where each one's matches are.

    A block needs to remember nothing else of the index. The first `lasting` conjunctions keep their matches
    with the data (PSoup-P); the others hand them over (PSoup-C).
    """

    version: int
    rows: np.ndarray  # slot -> row, -1: not known
    lasting: int
    size: int

    def row(self, slot: int) -> int:
        """Where a slot's matches are, -1 if it is not known."""
        return int(self.rows[slot]) if slot < len(self.rows) else -1


@dataclass(frozen=True, eq=False)
class PredicateIndex:
    """The conjunctions of one stream at one moment, as arrays.

    It is small enough to be sent to every task when it changes.
    """

    known: KnownConjunctions
    slots: np.ndarray  # the slot of each conjunction, int64
    attributes: tuple[str, ...]
    first: np.ndarray
    attribute: np.ndarray
    factors: tuple[Factors, ...]
    residuals: dict[int, tuple[str, ...]] = field(default_factory=dict)  # row -> texts
    bounds: np.ndarray | None = (
        None  # a conjunction with lists of values is probed as several: where each one's begin
    )

    def bind(self, sorted_columns: Sequence[SortedColumn]) -> tuple[np.ndarray, np.ndarray]:
        """Turn each span into a slice of the train's order by its column."""
        counts = np.array([c.count for c in sorted_columns], np.int64)
        low = np.zeros(len(self.attribute), np.int64)
        high = counts[self.attribute] if len(self.attribute) else low.copy()
        for part in self.factors:
            column = sorted_columns[part.attribute]
            if part.operator in (_EQ, _GE, _GT):
                low[part.spans] = column.before(part.constants, "right" if part.operator == _GT else "left")
            if part.operator in (_EQ, _LE, _LT):
                high[part.spans] = column.before(part.constants, "left" if part.operator == _LT else "right")
        return low, high


class _Constants:
    """A growing list of constants of one column and operator.

    Each entry is (slot, which of its combinations of listed values, constant).
    """

    def __init__(self, code: str) -> None:
        self.slots, self.turns = array("q"), array("q")
        self.values: array[int] | array[float] | list[Constant] = array(code) if code else []

    def add(self, slot: int, turn: int, value: Constant) -> None:
        self.slots.append(slot)
        self.turns.append(turn)
        self.values.append(value)  # type: ignore[arg-type]  # of the column's own kind

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kind = object if isinstance(self.values, list) else self.values.typecode
        values = np.array(self.values, dtype=kind)
        return np.array(self.slots, np.int64), np.array(self.turns, np.int64), values


class _StreamPart:
    """The conjunctions on one stream."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.constants: dict[tuple[str, int], _Constants] = {}
        self.known: dict[Conjunction, int] = {}
        self.uses: dict[int, list[int]] = {}  # slot -> lasting uses, passing uses
        self.conjunctions: dict[int, Conjunction] = {}
        self.residuals: dict[int, tuple[str, ...]] = {}
        self.turns: dict[int, int] = {}  # for slots with lists of values: the number of combinations
        self.state = bytearray()  # for each slot: 0 absent, 1 lasting, 2 passing
        self.written = 0
        self.changed = True
        self.index: PredicateIndex | None = None

    def write(self, slot: int, conjunction: Conjunction) -> None:
        self.written += 1
        turn = -1
        # A span of listed values is one equality for each value; several such spans give all combinations.
        for turn, spans in enumerate(product(*(_each(span) for span in conjunction.spans))):
            for span in spans:
                self._write(slot, turn, span)
        if turn > 0:
            self.turns[slot] = turn + 1

    def _write(self, slot: int, turn: int, span: Span) -> None:
        for operator, value in _bounds(span):
            key = (span.column, operator)
            if key not in self.constants:
                self.constants[key] = _Constants(self._code(span.column, operator))
            self.constants[key].add(slot, turn, value)

    def mark(self, slot: int) -> None:
        """Record the state of a slot."""
        uses = self.uses.get(slot)
        if slot >= len(self.state):
            self.state.extend(bytes(slot + 1024 - len(self.state)))
        now = 0 if uses is None else 1 if uses[0] else 2
        self.changed |= self.state[slot] != now
        self.state[slot] = now

    def _code(self, column: str, operator: int) -> str:
        type_ = self.schema.type_of(column)
        if operator == _ANY or type_ in (*INTEGRAL, "TIMESTAMP", "DATE", "BOOLEAN"):
            return "q"
        return "d" if type_ in ("FLOAT", "DOUBLE") else ""

    def rewrite(self) -> None:
        """Remove what removed conjunctions have left behind."""
        self.constants, self.turns, self.written = {}, {}, 0
        for slot, conjunction in self.conjunctions.items():
            self.write(slot, conjunction)


def _each(span: Span) -> list[Span]:
    return [Span(span.column, value, value) for value in span.points] or [span]


def _bounds(span: Span) -> Iterable[tuple[int, Constant]]:
    if span.point and span.low is not None:
        yield _EQ, span.low
        return
    if span.low is not None:
        yield (_GT if span.low_open else _GE), span.low
    if span.high is not None:
        yield (_LT if span.high_open else _LE), span.high
    if span.low is None and span.high is None:
        yield _ANY, 0


class QuerySteM:
    """All conjunctions of all standing queries.

    >>> stem = QuerySteM()
    >>> stem.add_stream("cars", Schema.parse("v INT"))
    >>> slot = stem.insert("cars", Conjunction((Span("v", 3, 5),)))
    >>> stem.insert("cars", Conjunction((Span("v", 3, 5),))) == slot  # equal ones are kept once
    True
    """

    def __init__(self) -> None:
        self._parts: dict[str, _StreamPart] = {}
        self._next = 0
        self._version = 0

    def add_stream(self, name: str, schema: Schema) -> None:
        """Add a stream that queries may name."""
        self._parts.setdefault(name, _StreamPart(schema))

    def insert(self, stream: str, conjunction: Conjunction, *, lasting: bool = True) -> int:
        """The slot of a conjunction, used by one more query. `lasting`: its matches stay with the data."""
        part = self._parts[stream]
        slot = part.known.get(conjunction)
        if slot is None:
            slot, self._next = self._next, self._next + 1
            part.known[conjunction], part.conjunctions[slot], part.uses[slot] = slot, conjunction, [0, 0]
            part.write(slot, conjunction)
            if conjunction.residuals:
                part.residuals[slot] = conjunction.residuals
        part.uses[slot][0 if lasting else 1] += 1
        part.mark(slot)
        return slot

    def remove(self, stream: str, slot: int, *, lasting: bool = True) -> None:
        """Count one query less for the slot; with the last one, the conjunction goes."""
        part = self._parts[stream]
        uses = part.uses[slot]
        uses[0 if lasting else 1] -= 1
        if not any(uses):
            del part.known[part.conjunctions.pop(slot)], part.uses[slot]
            part.residuals.pop(slot, None)
            part.turns.pop(slot, None)
        part.mark(slot)

    def conjunction(self, stream: str, slot: int) -> Conjunction:
        return self._parts[stream].conjunctions[slot]

    def live(self, stream: str) -> dict[int, Conjunction]:
        """Slot -> conjunction."""
        return self._parts[stream].conjunctions

    def lasting(self, stream: str, slot: int) -> bool:
        return self._parts[stream].uses.get(slot, [0])[0] > 0

    def index(self, stream: str) -> PredicateIndex:
        """The current index; rebuilt only if it has changed since the last call."""
        part = self._parts[stream]
        if part.index is None or part.changed:
            if part.written > 2 * len(part.conjunctions) + 64:
                part.rewrite()
            self._version += 1
            part.index, part.changed = _compile(part, self._version, self._next), False
        return part.index


def _compile(part: _StreamPart, version: int, slots_given: int) -> PredicateIndex:
    state = np.frombuffer(bytes(part.state), np.uint8)
    kept = np.flatnonzero(state == 1)
    slots = np.concatenate([kept, np.flatnonzero(state == 2)])
    rows = np.full(slots_given, -1, np.int32)
    rows[slots] = np.arange(len(slots))
    turns = np.ones(len(slots), np.int64)
    for slot, count in part.turns.items():
        turns[rows[slot]] = count
    begin = np.concatenate([[0], np.cumsum(turns)])
    attributes = tuple(sorted({column for column, _ in part.constants}))
    width = max(1, len(attributes))
    parts, keys = [], []
    for (column, operator), constants in part.constants.items():
        at, turn, values = constants.arrays()
        live = rows[at] >= 0
        attribute = attributes.index(column)
        key = (begin[rows[at[live]]] + turn[live]) * width + attribute
        parts.append((attribute, operator, values[live], key))
        keys.append(key)
    spans = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
    first = np.searchsorted(spans, np.arange(begin[-1] + 1) * width)
    factors = tuple(
        _factors(a, o, v, np.searchsorted(spans, k)) for a, o, v, k in parts if o != _ANY and len(v)
    )
    residuals = {int(rows[slot]): texts for slot, texts in part.residuals.items()}
    known = KnownConjunctions(version, rows, len(kept), len(slots))
    bounds = begin if part.turns else None
    return PredicateIndex(known, slots, attributes, first, spans % width, factors, residuals, bounds)


def _factors(attribute: int, operator: int, values: np.ndarray, spans: np.ndarray) -> Factors:
    order = np.argsort(values, kind="stable")
    return Factors(attribute, operator, values[order], spans[order])
