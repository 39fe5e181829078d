"""A block: some tuples of a train with the queries that they match.

A Spark task sends back one block, and Data SteMs consist of blocks. Tuples lie in the order of their
timestamps, so a window is a range of positions. Matches are posting lists of positions, 16 bits each, for all
conjunctions of an index one after the other. A conjunction that matches much of the block has a bitmap
instead (P27: whichever is smaller). So results hold identities, never copies (P14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.types import SEQ, STAMP, Schema
from penstock.standing.deadline import check_time
from penstock.standing.language.query import Conjunction, Constant, Span
from penstock.standing.stems.columns import Comparable, SortedColumn, comparable, plain
from penstock.standing.stems.probe_loop import arrange, probe
from penstock.standing.stems.query_stem import KnownConjunctions, PredicateIndex

MOST_ROWS = 1 << 16  # positions have 16 bits
_BITS = 16  # a list costs 16 bits a match, a bitmap one bit a tuple
_MOST_POSITIONS = 1 << 24  # of one portion of the conjunctions, 16 bits each
NONE = np.zeros(0, np.uint16)


@dataclass(frozen=True, eq=False)
class Matches:
    """Which tuples of a block each conjunction of an index matches."""

    known: KnownConjunctions
    starts: np.ndarray
    positions: np.ndarray
    bitmaps: dict[int, np.ndarray] = field(default_factory=dict)

    def of(self, row: int) -> np.ndarray:
        """Positions, in ascending order."""
        bits = self.bitmaps.get(row)
        if bits is not None:
            return np.flatnonzero(np.unpackbits(bits)).astype(np.uint16)
        return self.positions[self.starts[row] : self.starts[row + 1]]

    @property
    def nbytes(self) -> int:
        return int(
            self.starts.nbytes + self.positions.nbytes + sum(bits.nbytes for bits in self.bitmaps.values())
        )

    def lasting(self) -> Matches:
        """The matches without those of PSoup-C, which has taken them over."""
        kept = self.known.lasting
        if kept == self.known.size:
            return self
        starts = self.starts[: kept + 1]
        bitmaps = {row: bits for row, bits in self.bitmaps.items() if row < kept}
        return Matches(self.known, starts, self.positions[: starts[-1]].copy(), bitmaps)


@dataclass(eq=False)
class Block:
    """Tuples, their numbers in the stream, and their matches; only `late` ever changes."""

    table: pa.Table
    schema: Schema
    stamps: np.ndarray
    seqs: np.ndarray
    matches: Matches | None = None
    first: int = (
        0  # the stream's number of tuple 0 in arrival order; the block's tuples are first .. first + rows - 1
    )
    position_of: np.ndarray | None = (
        None  # number - first -> position, where the block was merged from several
    )
    entry: int = -1  # the last entry of the connection point in it
    late: dict[int, np.ndarray] = field(default_factory=dict)  # slots registered since, probed on demand
    _late_bytes: int = 0
    _views: dict[str, Comparable] = field(default_factory=dict, repr=False)
    _numbers: np.ndarray | None = field(default=None, repr=False)  # position -> number - first

    @property
    def rows(self) -> int:
        return len(self.stamps)

    @property
    def least(self) -> int:
        return int(self.stamps[0])

    @property
    def newest(self) -> int:
        return int(self.stamps[-1])

    @property
    def nbytes(self) -> int:
        kept = self.matches.nbytes if self.matches is not None else 0
        late = sum(p.nbytes for p in list(self.late.values()))
        return self.data_bytes + int(kept + late)

    @cached_property
    def data_bytes(self) -> int:
        """The bytes of the tuples alone; called for every block at every train."""
        return int(self.table.nbytes + self.stamps.nbytes + self.seqs.nbytes)

    def values(self, column: str) -> tuple[np.ndarray, np.ndarray | None]:
        """A column in the form numpy compares, and which rows are not null."""
        view = self._views.get(column)
        if view is None:
            view = self._views[column] = comparable(self.table[column], self.schema.type_of(column))
        return view

    def kept(self, slot: int, conjunction: Conjunction) -> np.ndarray:
        """The positions that a conjunction matches.

        A conjunction that the train did not meet is probed now and remembered. One that has just lost its
        slot, because its query became too large to keep, has nothing to be remembered under.
        """
        if slot < 0:
            return self.scan(conjunction)
        if self.matches is not None:
            row = self.matches.known.row(slot)
            if 0 <= row < len(self.matches.starts) - 1:
                return self.matches.of(row)
        positions = self.late.get(slot)
        if positions is None:
            positions = self.scan(conjunction)
            if self._late_bytes + positions.nbytes <= self.data_bytes:  # else clients could fill the memory
                self._late_bytes += positions.nbytes
                self.late[slot] = positions
        return positions

    def forget_late(self, slots: Iterable[int]) -> None:
        """Drop what is remembered of slots."""
        for slot in slots:
            dropped = self.late.pop(slot, None)
            self._late_bytes -= 0 if dropped is None else dropped.nbytes

    def scan(self, conjunction: Conjunction, low: int = 0, high: int | None = None) -> np.ndarray:
        """Probe one conjunction against the tuples low..high: a query meets old data (P07)."""
        check_time()
        high = self.rows if high is None else high
        mask: np.ndarray | None = None
        for span in conjunction.spans:
            fits = self._within(span, low, high)
            if fits is None:
                continue
            mask = fits if mask is None else mask & fits
        if mask is None:
            positions = np.arange(low, high, dtype=np.uint16)
        else:
            positions = (np.flatnonzero(mask) + low).astype(np.uint16)
        return passing(self.table, self.schema, conjunction.residuals, positions)

    def _within(self, span: Span, low: int, high: int) -> np.ndarray | None:
        """Which tuples lie in the span; None: all of them."""
        values, valid = self.values(span.column)
        values = values[low:high]
        mask: np.ndarray | None = None
        if values.dtype == object:
            # Nulls are None here and would not compare.
            values = values if valid is None else np.where(valid[low:high], values, "")
        if span.points:
            mask = _among(values, span.points)
        if span.low is not None and not _below_all(values, span.low):
            mask = _over(values, span.low, open_=span.low_open)
        if span.high is not None and not _above_all(values, span.high):
            under = ~_over(values, span.high, open_=not span.high_open)
            mask = under if mask is None else mask & under
        if valid is not None:
            mask = valid[low:high] if mask is None else mask & valid[low:high]
        return mask

    def positions(self, numbers: np.ndarray) -> np.ndarray:
        """The positions of tuples, given their numbers in the stream."""
        at = numbers - self.first
        return at if self.position_of is None else self.position_of[at]

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        """The stream's numbers of tuples at positions."""
        if self.position_of is None:
            return positions.astype(np.int64) + self.first
        if self._numbers is None:
            numbers = np.empty(self.rows, np.int64)
            numbers[self.position_of] = np.arange(self.rows)
            self._numbers = numbers
        return np.asarray(self._numbers[positions] + self.first)


def _among(values: np.ndarray, points: Sequence[Constant]) -> np.ndarray:
    """Whether values are in a sorted list of the column's kind, though perhaps not of its width."""
    if values.dtype == object:
        wanted = set(points)
        return np.fromiter((value in wanted for value in values), bool, len(values))
    return np.isin(values, np.array(points, np.float64 if values.dtype.kind == "f" else np.int64))


def _over(values: np.ndarray, bound: Constant | np.float64, *, open_: bool) -> np.ndarray:
    """Whether values > bound, or >= bound; NaN is above every number."""
    if values.dtype.kind == "f":
        bound = np.float64(bound)  # otherwise numpy would round it to the column's 32 bits
    over = values > bound if open_ else values >= bound
    if values.dtype.kind == "f":
        over |= np.isnan(values)
    return np.asarray(over, bool)


def _limits(values: np.ndarray) -> tuple[int, int] | None:
    if values.dtype.kind not in "iu":
        return None
    bounds = np.iinfo(values.dtype)
    return int(bounds.min), int(bounds.max)


def _below_all(values: np.ndarray, bound: Constant) -> bool:
    """Whether no value can be below the bound: numpy refuses constants that its type cannot hold."""
    limits = _limits(values)
    return limits is not None and not isinstance(bound, str) and bound < limits[0]


def _above_all(values: np.ndarray, bound: Constant) -> bool:
    limits = _limits(values)
    return limits is not None and not isinstance(bound, str) and bound > limits[1]


def passing(table: pa.Table, schema: Schema, texts: Sequence[str], positions: np.ndarray) -> np.ndarray:
    """The positions whose tuples also fulfil the residuals; a tuple on which an expression fails does not."""
    from penstock.engine.arrow.columns.expressions import compile_arrow

    for text in texts:
        if not len(positions):
            break
        values, _ = compile_arrow(text, schema)(table.take(pa.array(positions)))
        positions = positions[np.asarray(pc.fill_null(values, False))]
    return positions


def make_blocks(
    table: pa.Table, schema: Schema, index: PredicateIndex | None, entry: int = -1
) -> list[Block]:
    """Cut a table with `_ts` and `_seq` into blocks of at most 65,536 tuples, with their matches.

    Tuples are in the order of time.
    """
    stamps, seqs = _int64(table[STAMP]), _int64(table[SEQ])
    if not _ordered(stamps, seqs):
        order = np.lexsort((seqs, stamps))
        table, stamps, seqs = table.take(pa.array(order)), stamps[order], seqs[order]
    table = table.select(list(schema.names)).combine_chunks()
    blocks = []
    pieces = -(-len(stamps) // MOST_ROWS)
    step = -(-len(stamps) // pieces) if pieces else 1
    for at in range(0, len(stamps), step):
        block = Block(
            table.slice(at, step), schema, stamps[at : at + step], seqs[at : at + step], entry=entry
        )
        block.matches = None if index is None else probe_block(block, index)
        blocks.append(block)
    return blocks


def lone_column(name: str, type_: str, values: pa.Array) -> Block:
    """A block of one column without times: for aggregates over tuples that are not in the stream's order."""
    none = np.zeros(len(values), np.int64)
    return Block(pa.table({name: values}), Schema.of([(name, type_)]), none, none)


def _int64(column: pa.ChunkedArray) -> np.ndarray:
    # Unstamped streams have null timestamps. Treat them as one time, so that arrival order decides.
    filled = plain(column).fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _ordered(stamps: np.ndarray, seqs: np.ndarray) -> bool:
    later, same = stamps[1:] > stamps[:-1], stamps[1:] == stamps[:-1]
    return bool((later | (same & (seqs[1:] >= seqs[:-1]))).all())


def probe_block(block: Block, index: PredicateIndex) -> Matches:
    """New data meets old queries (P07): all conjunctions of the index against all tuples of the block."""
    columns = [SortedColumn.of(*block.values(name)) for name in index.attributes]
    low, high = index.bind(columns)
    shape = (max(1, len(columns)), block.rows)
    rank, order = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for i, column in enumerate(columns):
        rank[i], order[i] = column.rank, column.order
    # A conjunction with lists of values is probed as several. These are disjoint, so they form one list.
    firsts = index.bounds if index.bounds is not None else np.arange(len(index.first))
    parts = []
    for begin, end in _portions(_most_matches(index, low, high, block.rows)[firsts]):
        spans = index.first[firsts[begin] : firsts[end] + 1]
        starts, positions = probe(rank, order, spans, index.attribute, low, high)
        starts = starts[firsts[begin : end + 1] - firsts[begin]]
        residuals = {row - begin: texts for row, texts in index.residuals.items() if begin <= row < end}
        if residuals:
            starts, positions = _sifted(block, residuals, starts, positions)
        parts.append(_compacted(starts, positions, block.rows))
    return _together(index, parts)


def _most_matches(index: PredicateIndex, low: np.ndarray, high: np.ndarray, rows: int) -> np.ndarray:
    """How many matches the probes before each one can have at most: the shortest slice bounds a probe."""
    begins, ends = index.first[:-1], index.first[1:]
    most = np.full(len(begins), rows, np.int64)
    some = ends > begins
    if some.any():
        most[some] = np.minimum.reduceat(np.maximum(high - low, 0), begins[some])
    return np.concatenate([[0], np.cumsum(most)])


def _portions(before: np.ndarray) -> Iterator[tuple[int, int]]:
    """Conjunctions that are probed together: thousands that match everything would fill a task's memory."""
    begin, count = 0, len(before) - 1
    while begin < count:
        end = int(np.searchsorted(before, before[begin] + _MOST_POSITIONS, side="right")) - 1
        end = min(max(end, begin + 1), count)
        yield begin, end
        begin = end


def _sifted(
    block: Block, residuals: Mapping[int, Sequence[str]], starts: np.ndarray, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Apply the residuals of the conjunctions that have some (P25: a list, evaluated one by one)."""
    keep = np.ones(len(positions), bool)
    for row, texts in residuals.items():
        part = slice(starts[row], starts[row + 1])
        matched = positions[part]
        keep[part] = np.isin(matched, passing(block.table, block.schema, texts, matched))
    before = np.concatenate([[0], np.cumsum(keep)])
    return before[starts], positions[keep]


@dataclass(frozen=True)
class _Part:
    """The matches of some conjunctions of an index."""

    starts: np.ndarray
    positions: np.ndarray
    bitmaps: dict[int, np.ndarray]


def _compacted(starts: np.ndarray, positions: np.ndarray, rows: int) -> _Part:
    """Use lists, or bitmaps where they are smaller."""
    counts = np.diff(starts)
    dense = np.flatnonzero(counts > max(rows // _BITS, 64))
    bitmaps = {}
    if len(dense):
        keep = np.ones(len(positions), bool)
        for row in dense:
            bits = np.zeros(rows, bool)
            bits[positions[starts[row] : starts[row + 1]]] = True
            bitmaps[int(row)] = np.packbits(bits)
            keep[starts[row] : starts[row + 1]] = False
        before = np.concatenate([[0], np.cumsum(keep)])
        starts, positions = before[starts], positions[keep]
    arrange(starts, positions)
    return _Part(starts, positions, bitmaps)


def _together(index: PredicateIndex, parts: Sequence[_Part]) -> Matches:
    if len(parts) == 1:
        [part] = parts
        return Matches(index.known, part.starts.astype(np.uint32), part.positions, part.bitmaps)
    starts, bitmaps, used = [np.zeros(1, np.int64)], dict[int, np.ndarray](), 0
    for part in parts:
        row = sum(len(each) for each in starts) - 1
        bitmaps |= {row + at: bits for at, bits in part.bitmaps.items()}
        starts.append(part.starts[1:] + used)
        used += len(part.positions)
    positions = np.concatenate([NONE, *(part.positions for part in parts)])
    return Matches(index.known, np.concatenate(starts).astype(np.uint32), positions, bitmaps)
