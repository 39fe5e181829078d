"""Joins by symmetric probing (PSoup, Sect. 3.3 and 5; P16-P18, P33, P34).

The Query SteM is probed first (P17), so only tuples that fulfil the query's own conjunction for their stream
meet here. They form one composite of a query and many tuples, not one struct for each tuple (P33). A
composite that covers some streams is extended by one more. Equal columns are matched by sort-merge, unequal
ones by slices of the sorted side, the remaining factors by comparing. No intermediate result is kept. Each
train decides anew which stream comes next, from the numbers of candidates and from how many pairs the step
gave last time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.model.expressions.expression import columns_of
from penstock.model.types import Schema
from penstock.standing.answers.results import MatchedPositions, stamps_of, take_column
from penstock.standing.deadline import check_time
from penstock.standing.errors import LimitError
from penstock.standing.language.factors import MIRRORED
from penstock.standing.language.query import Branch, JoinFactor, Part
from penstock.standing.language.select_clause import mangled
from penstock.standing.stems.columns import comparable

_PORTION = 1 << 18  # pairs that are looked at together: this bounds what lies in memory beside the results
_HINT = "tie the streams by an equality, add factors on the single streams, or shorten the windows"


@dataclass
class Candidates:
    """The tuples of one stream that may take part, by number, with the columns that factors compare."""

    numbers: np.ndarray
    stamps: np.ndarray
    matched: MatchedPositions
    schema: Schema
    _columns: dict[str, tuple[np.ndarray, np.ndarray | None]] = field(default_factory=dict)

    @staticmethod
    def of(matched: MatchedPositions, schema: Schema) -> Candidates:
        numbers = np.concatenate([b.numbers(p) for b, p in matched]) if matched else np.zeros(0, np.int64)
        return Candidates(numbers, stamps_of(matched), matched, schema)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        columns = sum(values.nbytes for values, _ in self._columns.values())
        return int(self.numbers.nbytes + self.stamps.nbytes + columns)

    def column(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """The values, and which of them are not null."""
        if name not in self._columns:
            parts = [(b.values(name), p) for b, p in self.matched]
            values = [v[p] for (v, _), p in parts]
            valid = [np.ones(len(p), bool) if m is None else m[p] for (_, m), p in parts]
            together = np.concatenate(values) if values else self._no_values(name)
            good = np.concatenate(valid) if valid else np.zeros(0, bool)
            self._columns[name] = together, None if good.all() else good
        return self._columns[name]

    def _no_values(self, name: str) -> np.ndarray:
        """An empty array of the column's own kind: texts do not compare with numbers, even if empty."""
        return comparable(take_column([], self.schema, name), self.schema.type_of(name))[0]

    def arrow(self, name: str) -> pa.Array:
        return take_column(self.matched, self.schema, name)


Composite = dict[int, np.ndarray]  # stream -> which candidate, row by row


@dataclass
class ProbeOrder:
    """Observed pairs for each tuple probed, for the step from some streams to another."""

    seen: dict[tuple[frozenset[int], int], float] = field(default_factory=dict)

    def next(
        self, known: frozenset[int], left: Mapping[int, Candidates], factors: Sequence[JoinFactor]
    ) -> int:
        """The stream that is expected to give the fewest pairs.

        A stream tied to a known one comes before one that is not.
        """

        def cost(stream: int) -> tuple[int, float]:
            tied = [f for f in factors if stream in (f.left, f.right) and known & {f.left, f.right}]
            kind = 0 if any(f.operator == "=" for f in tied) else 1 if tied else 2
            return kind, self.seen.get((known, stream), float(len(left[stream])))

        return min(left, key=cost)

    def learn(self, known: frozenset[int], stream: int, probed: int, pairs: int) -> None:
        before = self.seen.get((known, stream))
        now = pairs / max(1, probed)
        self.seen[known, stream] = now if before is None else 0.8 * before + 0.2 * now


@dataclass(frozen=True)
class JoinBounds:
    """What one join may cost: pairs that a step looks at, and bytes for the pairs that it finds."""

    pairs: int
    room: float = math.inf


@dataclass(frozen=True)
class JoinTask:
    """One branch of a query, and the tuples that may take part in it."""

    branch: Branch
    parts: Sequence[Part]
    candidates: Sequence[Candidates]
    schema: Schema  # of residuals: all columns of all streams
    bounds: JoinBounds


def join(task: JoinTask, start: int, order: ProbeOrder) -> Composite:
    """All combinations of candidates that fulfil the branch's factors.

    `start` is the stream that is probed first. Raises LimitError before the bounds are passed.
    """
    candidates = task.candidates
    composite: Composite = {start: np.arange(len(candidates[start]))}
    left = {i: c for i, c in enumerate(candidates) if i != start}
    while left:
        known = frozenset(composite)
        stream = order.next(known, left, task.branch.joins)
        del left[stream]
        probed = len(composite[start])
        composite = _extended(task, composite, stream, last=not left)
        order.learn(known, stream, probed, len(composite[stream]))
    return composite


def _extended(task: JoinTask, composite: Composite, stream: int, *, last: bool) -> Composite:
    """The composite with one more stream.

    The pairs are made and checked portion by portion. Only those that fulfil all factors are kept.
    """
    tied = [_turned(f, stream) for f in task.branch.joins if _ties(f, stream, composite)]
    tied.sort(key=lambda f: {"=": 0, "<>": 2}.get(f.operator, 1))
    lead = tied[0] if tied and tied[0].operator != "<>" else None
    slices = _leading(composite, stream, task.candidates, lead)
    rest = tied[1:] if lead is not None else tied
    portions, room = [], task.bounds.room
    for part in slices.portions(task.bounds.pairs):
        check_time()
        rows, picks = part.pairs()
        portion = {known: at[rows] for known, at in composite.items()} | {stream: picks}
        for factor in rest:
            portion = _where(portion, _holds(factor, portion, task.candidates))
        if last and task.branch.residuals and len(portion[stream]):
            portion = _sifted(portion, task)
        room -= len(portion[stream]) * _bytes_of_pair(len(portion))
        if room < 0:
            raise LimitError(
                "the join gives more pairs than memory allows",
                expected=f"at most {int(task.bounds.room) >> 20:,} MB for the pairs of one join",
                hint=_HINT,
            )
        portions.append(portion)
    return {known: _joined([each[known] for each in portions]) for known in (*composite, stream)}


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _bytes_of_pair(streams: int) -> int:
    """What a pair takes at most: in the composite, in its portion, and while JoinedPairs are sorted."""
    return 8 * (6 * streams + 3)


def _ties(factor: JoinFactor, stream: int, composite: Composite) -> bool:
    return (factor.left == stream and factor.right in composite) or (
        factor.right == stream and factor.left in composite
    )


def _turned(factor: JoinFactor, stream: int) -> JoinFactor:
    """The factor with the new stream on the right."""
    if factor.right == stream:
        return factor
    return JoinFactor(
        factor.right, factor.right_column, MIRRORED[factor.operator], factor.left, factor.left_column
    )


@dataclass(frozen=True)
class _Slices:
    """For each row of a composite, a range of the new stream's candidates in some order."""

    rows: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray

    def portions(self, most: int) -> Iterator[_Slices]:
        """Cut into parts of few pairs each. Raises LimitError if there are more than `most` in all."""
        until = np.cumsum(self.high - self.low)
        total = int(until[-1]) if len(until) else 0
        if total > most:
            raise LimitError(
                f"the join would look at {total:,} pairs at once",
                expected=f"at most {most:,}",
                hint=_HINT,
            )
        cuts = np.unique(np.searchsorted(until, np.arange(_PORTION, total + _PORTION, _PORTION)) + 1)
        for begin, end in pairwise([0, *np.minimum(cuts, len(until)).tolist()]):
            if end > begin:
                yield _Slices(self.rows[begin:end], self.low[begin:end], self.high[begin:end], self.order)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the composite, and the candidates that they meet."""
        counts = self.high - self.low
        before = np.cumsum(counts) - counts
        offsets = np.arange(int(counts.sum())) - np.repeat(before, counts)
        return np.repeat(self.rows, counts), self.order[np.repeat(self.low, counts) + offsets]


def _leading(
    composite: Composite, stream: int, candidates: Sequence[Candidates], lead: JoinFactor | None
) -> _Slices:
    """What the leading factor matches; everything if there is none."""
    width = len(next(iter(composite.values())))
    new = candidates[stream]
    if lead is None:
        none, all_ = np.zeros(width, np.int64), np.full(width, len(new))
        return _Slices(np.arange(width), none, all_, np.arange(len(new)))
    values, valid = candidates[lead.left].column(lead.left_column)
    at = composite[lead.left]
    rows = np.arange(width) if valid is None else np.flatnonzero(valid[at])
    keys = values[at[rows]]
    other, other_valid = new.column(lead.right_column)
    usable = np.arange(len(new)) if other_valid is None else np.flatnonzero(other_valid)
    order = usable[np.argsort(other[usable], kind="stable")]
    low, high = _slices(keys, other[order], lead.operator)
    return _Slices(rows, low, high, order)


def _slices(keys: np.ndarray, ordered: np.ndarray, operator: str) -> tuple[np.ndarray, np.ndarray]:
    """For each key, the range of the sorted side where `key operator value` holds."""
    left, right = np.searchsorted(ordered, keys, "left"), np.searchsorted(ordered, keys, "right")
    zero, all_ = np.zeros(len(keys), np.int64), np.full(len(keys), len(ordered))
    match operator:
        case "=":
            return left, right
        case "<":
            return right, all_
        case "<=":
            return left, all_
        case ">":
            return zero, left
        case _:
            return zero, right


def _where(composite: Composite, mask: np.ndarray) -> Composite:
    return {stream: at[mask] for stream, at in composite.items()}


def _holds(factor: JoinFactor, composite: Composite, candidates: Sequence[Candidates]) -> np.ndarray:
    one, one_valid = candidates[factor.left].column(factor.left_column)
    other, other_valid = candidates[factor.right].column(factor.right_column)
    at, to = composite[factor.left], composite[factor.right]
    mask = np.ones(len(at), bool)
    if one_valid is not None:
        mask &= one_valid[at]
    if other_valid is not None:
        mask &= other_valid[to]
    rows = np.flatnonzero(mask)
    mask[rows] = compared(one[at[rows]], factor.operator, other[to[rows]])
    return mask


def compared(one: np.ndarray, operator: str, other: np.ndarray) -> np.ndarray:
    """Whether `one operator other` holds; NaN is equal to itself and above every number."""
    greater, equal = one > other, one == other
    if "f" in (one.dtype.kind, other.dtype.kind):
        left, right = np.isnan(one), np.isnan(other)
        greater, equal = greater | (left & ~right), equal | (left & right)
    holds = {
        "=": equal,
        "<>": ~equal,
        ">": greater,
        ">=": greater | equal,
        "<": ~(greater | equal),
        "<=": ~greater,
    }[operator]
    return np.asarray(holds, bool)


def _sifted(composite: Composite, task: JoinTask) -> Composite:
    """Apply factors that do not compare two columns to the remaining combinations."""
    for text in task.branch.residuals:
        wanted = set(columns_of(text))
        columns = {
            mangled(part.alias, name): task.candidates[stream].arrow(name).take(pa.array(composite[stream]))
            for stream, part in enumerate(task.parts)
            for name in task.candidates[stream].schema.names
            if mangled(part.alias, name) in wanted
        }
        values, _ = compile_arrow(text, task.schema)(pa.table(columns))
        composite = _where(composite, np.asarray(pc.fill_null(values, False)))
    return composite


# -- what is kept of a join


@dataclass
class JoinedPairs:
    """Combinations by the numbers of their tuples, one row for each stream of FROM, with the tuples' times.

    They are sorted by the older tuple's time (P28), so a window takes its part without scanning what precedes
    it.
    """

    numbers: np.ndarray
    stamps: np.ndarray
    older: np.ndarray

    @staticmethod
    def none(width: int) -> JoinedPairs:
        return JoinedPairs(*(np.zeros(shape, np.int64) for shape in ((width, 0), (width, 0), 0)))

    @staticmethod
    def in_order(numbers: np.ndarray, stamps: np.ndarray) -> JoinedPairs:
        older = stamps.min(axis=0)
        order = np.argsort(older, kind="stable")  # mostly in order already, which this sort exploits
        return JoinedPairs(numbers[:, order], stamps[:, order], older[order])

    @staticmethod
    def of(composite: Composite, candidates: Sequence[Candidates]) -> JoinedPairs:
        width = range(len(candidates))
        return JoinedPairs.in_order(
            np.stack([candidates[i].numbers[composite[i]] for i in width]),
            np.stack([candidates[i].stamps[composite[i]] for i in width]),
        )

    @staticmethod
    def together(parts: Sequence[JoinedPairs]) -> JoinedPairs:
        return JoinedPairs.in_order(
            np.concatenate([p.numbers for p in parts], axis=1),
            np.concatenate([p.stamps for p in parts], axis=1),
        )

    def __len__(self) -> int:
        return int(self.numbers.shape[1])

    def where(self, mask: np.ndarray | slice) -> JoinedPairs:
        return JoinedPairs(self.numbers[:, mask], self.stamps[:, mask], self.older[mask])

    def once(self) -> JoinedPairs:
        """Without repetitions: several branches may find the same combination."""
        if not len(self):
            return self
        _, at = np.unique(self.numbers, axis=1, return_index=True)
        return self.where(np.sort(at))

    def after(self, begins: Sequence[int]) -> JoinedPairs:
        """Those whose tuples are all at or after these times."""
        mask = np.asarray((self.stamps >= np.array(begins)[:, None]).all(axis=0))
        return self if mask.all() else self.where(mask)

    def within(self, spans: Sequence[tuple[int, int]]) -> JoinedPairs:
        """Those whose tuples all lie in the windows of their streams."""
        begins, ends = (np.array(each)[:, None] for each in zip(*spans, strict=True))
        part = self.where(np.s_[np.searchsorted(self.older, begins.min()) :])
        return part.where(np.asarray(((part.stamps >= begins) & (part.stamps <= ends)).all(axis=0)))

    def among(self, stream: int, numbers: np.ndarray) -> JoinedPairs:
        """Those whose tuple of one stream is among the given ones."""
        return self.where(np.isin(self.numbers[stream], numbers))

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.stamps.nbytes + self.older.nbytes)
