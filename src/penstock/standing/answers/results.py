"""From matches to answers (PSoup, Sect. 3.5; P19): cut by the window, fetch, project, remove duplicates.

A selection is answered in one of three ways, which all give the same rows (P31). PSoup-P takes the positions
kept with the data and cuts them by the window. PSoup-C already has the current window's tuples. NoMat looks
at the window's tuples again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.types import INTEGRAL, Schema, arrow_schema
from penstock.standing.answers.ranked_tree import RankedTree, Summary, Value
from penstock.standing.errors import LimitError, QueryError
from penstock.standing.language.query import Conjunction, SelectItem
from penstock.standing.stems.block import NONE, Block
from penstock.standing.stems.columns import plain
from penstock.standing.stems.data_stem import BlockRange, StreamPrefix

Slots = Sequence[tuple[int, Conjunction]]  # one for each branch of a selection
MatchedPositions = list[tuple[Block, np.ndarray]]


def kept(pieces: Sequence[BlockRange], slots: Slots) -> MatchedPositions:
    """PSoup-P: the positions kept with the data, cut by the window."""
    return _each(pieces, lambda piece: [piece.block.kept(slot, conjunction) for slot, conjunction in slots])


def looked_up(pieces: Sequence[BlockRange], slots: Slots) -> MatchedPositions:
    """NoMat: evaluate the conjunctions on the tuples of the window."""
    return _each(
        pieces,
        lambda piece: [piece.block.scan(conjunction, piece.low, piece.high) for _, conjunction in slots],
    )


def _each(
    pieces: Sequence[BlockRange], matches: Callable[[BlockRange], list[np.ndarray]]
) -> MatchedPositions:
    matched = []
    for piece in pieces:
        lists = matches(piece)
        positions = lists[0] if len(lists) == 1 else np.concatenate(lists) if lists else NONE
        if not len(positions):
            continue
        if not piece.whole:
            positions = positions[(positions >= piece.low) & (positions < piece.high)]
        if len(lists) > 1:
            positions = np.unique(positions)
        if len(positions):
            matched.append((piece.block, positions))
    return matched


def size(matched: MatchedPositions) -> int:
    """How many tuples were found."""
    return sum(len(positions) for _, positions in matched)


# -- rows


def rows_of(matched: MatchedPositions, items: Sequence[SelectItem], schema: Schema) -> pa.Table:
    """The answer's columns, in the order of the stream's timestamps."""
    order = _order(matched)
    columns, names = [], []
    for item in items:
        assert item.column is not None
        columns.append(take_column(matched, schema, item.column, order))
        names.append(item.name)
    return pa.Table.from_arrays(columns, names=names)


def take_column(
    matched: MatchedPositions, schema: Schema, column: str, order: np.ndarray | None = None
) -> pa.Array:
    """A column's values of the tuples found, in another order if one is given.

    This uses numpy as far as possible. Most Arrow calls let other threads run, and in a driver with busy
    threads every such switch costs up to the interpreter's switch interval.
    """
    type_ = arrow_schema(schema).field(column).type
    if not matched:
        return pa.array([], type_)
    views = [block.values(column) for block, _ in matched]
    fast = views[0][0].dtype != object and not pa.types.is_boolean(type_) and all(v is None for _, v in views)
    if fast:
        parts = [values[positions] for (values, _), (_, positions) in zip(views, matched, strict=True)]
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
        array = pa.array(whole if order is None else whole[order])
        return array if array.type == type_ else array.view(type_)
    chunks = [plain(block.table[column]).take(pa.array(positions)) for block, positions in matched]
    values = pa.concat_arrays(chunks)
    return values if order is None else values.take(pa.array(order))


def bytes_of(matched: MatchedPositions, schema: Schema, columns: Sequence[str]) -> int:
    """What the columns of the tuples found would take; measured before they are copied."""
    rows, total = size(matched), 0
    for name in columns:
        type_ = arrow_schema(schema).field(name).type
        total += 8 * rows
        if pa.types.is_string(type_) or pa.types.is_binary(type_):
            for block, positions in matched:
                lengths = pc.binary_length(plain(block.table[name])).take(pa.array(positions))
                total += pc.sum(lengths).as_py() or 0
    return total


def check_bytes(size: int, most: int) -> None:
    """Refuse an answer that would take too much memory."""
    if size > most:
        raise LimitError(
            f"the answer takes {size >> 20:,} MB",
            expected=f"at most {most >> 20:,} MB",
            hint="select fewer columns, or narrow the query or its window",
        )


def numbers_of(pieces: Sequence[BlockRange]) -> np.ndarray:
    """The numbers of the tuples in some pieces."""
    empty = [np.zeros(0, np.int64)]
    return np.concatenate([p.block.numbers(np.arange(p.low, p.high)) for p in pieces] or empty)


def stamps_of(matched: MatchedPositions) -> np.ndarray:
    """The timestamps of the tuples found."""
    return np.concatenate([b.stamps[p] for b, p in matched]) if matched else np.zeros(0, np.int64)


def _order(matched: MatchedPositions) -> np.ndarray | None:
    """The order that sorts the results of several blocks; None if they are sorted already."""
    if all(a[0].stamps[a[1][-1]] < b[0].stamps[b[1][0]] for a, b in pairwise(matched)):
        return None
    stamps, seqs = stamps_of(matched), np.concatenate([b.seqs[p] for b, p in matched])
    return np.lexsort((seqs, stamps))


def distinct(table: pa.Table) -> pa.Table:
    """Each row once, at its first place; -0.0 equals 0.0, and every NaN equals every other."""
    if not table.num_rows:
        return table
    for i, kind in enumerate(table.schema):
        if pa.types.is_floating(kind.type):
            column, nan = table.column(i), pa.scalar(math.nan, kind.type)
            plain_zero = pc.add(column, pa.scalar(0, kind.type))
            table = table.set_column(i, kind, pc.if_else(pc.is_nan(column), nan, plain_zero))
    grouped = table.group_by(table.column_names, use_threads=False).aggregate([])
    return grouped.select(table.column_names).cast(table.schema)


# -- PSoup-C


@dataclass
class CurrentWindow:
    """The current window of a selection, kept up to date.

    It holds the numbers of its tuples, in no particular order, with their times.
    """

    numbers: np.ndarray
    stamps: np.ndarray

    @staticmethod
    def of(matched: MatchedPositions) -> CurrentWindow:
        empty = [np.zeros(0, np.int64)]
        return CurrentWindow(
            np.concatenate([b.numbers(p) for b, p in matched] or empty),
            np.concatenate([b.stamps[p] for b, p in matched] or empty),
        )

    def where(self, mask: np.ndarray) -> CurrentWindow:
        return self if mask.all() else CurrentWindow(self.numbers[mask], self.stamps[mask])

    def moved(self, more: MatchedPositions, begin: int) -> CurrentWindow:
        """The window with new tuples, without those older than its new begin."""
        old = self.where(self.stamps >= begin)
        if not more:
            return old
        fresh = CurrentWindow.of(more)
        fresh = fresh.where(fresh.stamps >= begin)
        return CurrentWindow(
            np.concatenate([old.numbers, fresh.numbers]), np.concatenate([old.stamps, fresh.stamps])
        )

    def until(self, begin: int, end: int) -> np.ndarray:
        """The numbers of the tuples within the window."""
        return self.where((self.stamps >= begin) & (self.stamps <= end)).numbers

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.stamps.nbytes)


def fetch(
    prefix: StreamPrefix, numbers: np.ndarray, schema: Schema, columns: Sequence[str], most_bytes: int
) -> list[pa.Array]:
    """Columns of the tuples with these numbers, in the same order."""
    parts = prefix.locate(numbers)
    back = np.empty(len(numbers), np.int64)
    at = 0
    for _, _, where in parts:
        back[where] = np.arange(at, at + len(where))
        at += len(where)
    matched = [(block, positions) for block, positions, _ in parts]
    check_bytes(bytes_of(matched, schema, columns), most_bytes)
    straight = bool((back[1:] > back[:-1]).all())
    return [take_column(matched, schema, column, None if straight else back) for column in columns]


# -- aggregates


def summarise(block: Block, positions: np.ndarray, column: str | None) -> Summary:
    """The leaf of a block: the summary of the positions found in it."""
    if column is None or not len(positions):
        return Summary(len(positions))
    values, valid = block.values(column)
    if values.dtype == object or block.schema.type_of(column) not in (*INTEGRAL, "FLOAT", "DOUBLE"):
        return _summary_of_any(block, positions, column)
    chosen = values[positions] if valid is None else values[positions[valid[positions]]]
    if not len(chosen):
        return Summary(len(positions))
    if chosen.dtype.kind == "f":
        wide = chosen.astype(np.float64)
        least = np.fmin.reduce(wide)
        return Summary(len(positions), len(chosen), float(wide.sum()), float(least), float(wide.max()))
    least, most = int(chosen.min()), int(chosen.max())
    small = max(abs(least), abs(most)) < (1 << 62) // max(1, len(chosen))
    total = int(chosen.sum(dtype=np.int64)) if small else sum(int(v) for v in chosen)
    return Summary(len(positions), len(chosen), total, least, most)


def _summary_of_any(block: Block, positions: np.ndarray, column: str) -> Summary:
    chosen = plain(block.table[column]).take(pa.array(positions)).drop_null()
    if not len(chosen):
        return Summary(len(positions))
    if pa.types.is_boolean(chosen.type):
        chosen = chosen.cast(pa.uint8())
    bounds = pc.min_max(chosen)
    least, most = bounds["min"], bounds["max"]
    if pa.types.is_timestamp(chosen.type):
        return Summary(len(positions), len(chosen), 0, least.value, most.value)
    return Summary(len(positions), len(chosen), 0, least.as_py(), most.as_py())


class SharedTree:
    """The ranked tree of one conjunction list and column, shared by all queries that ask for it (P37).

    It is brought up to date when asked.
    """

    def __init__(self, slots: Slots, column: str | None) -> None:
        self.slots, self.column = slots, column
        self.tree = RankedTree()
        self._blocks: list[Block | None] = []
        self._gone = 0  # leaves at the left end whose blocks have left memory

    def over(self, prefix: StreamPrefix, begin: int, end: int) -> Summary:
        """The aggregate of the window, from O(log n) nodes and the pieces at its two edges."""
        self._catch_up(prefix)
        first, last, beside = prefix.whole(begin, end)
        total = self.tree.between(self._gone + first, self._gone + last) if last > first else Summary()
        for block, positions in kept(beside, self.slots):
            total += summarise(block, positions, self.column)
        return total

    def _catch_up(self, prefix: StreamPrefix) -> None:
        blocks, mine = prefix.blocks, self._blocks
        live = mine[self._gone :]
        # Blocks leave at the left and change at the right; identity shows which.
        while live and (not blocks or live[0] is not blocks[0]):
            gone = next((i for i, b in enumerate(live) if blocks and b is blocks[0]), len(live))
            self._gone += gone
            live = live[gone:]
        same = 0
        for one, other in zip(live, blocks, strict=False):
            if one is not other:
                break
            same += 1
        if not same:
            self.tree, self._blocks, self._gone = RankedTree(), [], 0
        self.tree.truncate(self._gone + same)
        del self._blocks[self._gone + same :]
        for block in blocks[same:]:
            self._append(block)
        self._shrink()

    def _append(self, block: Block) -> None:
        positions = kept([BlockRange(block, 0, block.rows)], self.slots)
        self.tree.append(summarise(block, positions[0][1] if positions else NONE, self.column))
        self._blocks.append(block)

    def _shrink(self) -> None:
        """Now and then rebuild the tree from the leaves that stay."""
        if self._gone > 64 and self._gone * 2 > len(self._blocks):
            leaves = [self.tree.between(i, i + 1) for i in range(self._gone, len(self._blocks))]
            self.tree, self._blocks, self._gone = RankedTree(), self._blocks[self._gone :], 0
            for leaf in leaves:
                self.tree.append(leaf)
        elif self._gone:
            self._blocks[: self._gone] = [None] * self._gone  # do not hold evicted blocks


def aggregate_column(summary: Summary, item: SelectItem, type_: str) -> pa.Array:
    """One aggregate as a column with one row."""
    arrow = arrow_schema(Schema.of([("v", type_)]), hidden=False).field(0).type
    match item.aggregate:
        case "COUNT":
            return pa.array([summary.rows if item.column is None else summary.count], pa.int64())
        case "AVG":
            return pa.array([summary.total / summary.count if summary.count else None], pa.float64())
        case "SUM":
            kind = pa.int64() if type_ in INTEGRAL else pa.float64()
            if kind == pa.int64() and not -(1 << 63) <= summary.total < 1 << 63:
                raise QueryError(f"{item.name}: the sum does not fit into 64 bits", found=str(summary.total))
            return pa.array([summary.total if summary.count else None], kind)
        case "MIN" | "MAX":
            value = summary.least if item.aggregate == "MIN" else summary.most
            return (
                pa.array([value if summary.count else None]).cast(arrow)
                if _plain(type_)
                else _typed(value, arrow)
            )
    raise AssertionError(item)


def _plain(type_: str) -> bool:
    return type_ in (*INTEGRAL, "FLOAT", "DOUBLE")


def _typed(value: Value | None, arrow: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(arrow):
        return pa.array([value], pa.int64()).view(arrow)
    return pa.array([value if value is None or not pa.types.is_boolean(arrow) else bool(value)], arrow)
