"""The answer of a kept selection (PSoup-P, P19): from all posting lists to columns, without a Python loop.

An invocation is short, but a service under load has busy threads beside it. At each call and each turn of the
interpreter it may have to wait. So what a window needs of its blocks is noted once for each train, as
addresses, and a query's own part is three compiled loops. Columns with nulls, texts and truth values take the
plain path, `results.rows_of`, to the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import carray, njit, types  # type: ignore[attr-defined]  # mypy cannot read its __all__
from numba.core import cgutils
from numba.extending import intrinsic

from penstock.model.types import Schema, arrow_schema
from penstock.standing.language.query import Conjunction, SelectItem
from penstock.standing.language.windows import Last, Window
from penstock.standing.stems.block import Matches
from penstock.standing.stems.data_stem import BlockRange, StreamPrefix

# What is noted of a block.
_ROWS, _SLOTS, _STARTS, _CONJUNCTIONS, _POSITIONS, _STAMPS, _LOW, _HIGH = range(8)
# A list of positions in it.
_ADDRESS, _BEGIN, _END = range(3)


@dataclass(frozen=True)
class WindowMatches:
    """What a query finds in a window."""

    lists: np.ndarray
    count: int
    ordered: bool
    alive: list[np.ndarray]  # keeps lists alive while their addresses are in use


@dataclass(frozen=True)
class _PlainColumn:
    """Where the values of a column of plain numbers lie in each block, and their types."""

    addresses: np.ndarray
    kind: npt.DTypeLike
    type: pa.DataType


class WindowGather:
    """What queries with the same window need of a prefix; it holds the arrays whose addresses it notes."""

    def __init__(self, pieces: Sequence[BlockRange]) -> None:
        self.pieces = pieces
        self._lists = [piece.block.matches for piece in pieces]
        self.notes = np.array([_noted(p, m) for p, m in zip(pieces, self._lists, strict=True)], np.int64)
        self._dense = [(b, m) for b, m in enumerate(self._lists) if m is not None and m.bitmaps]
        self._columns: dict[str, _PlainColumn | None] = {}
        self._held: list[np.ndarray] = []

    def find(self, slot: int, conjunction: Conjunction) -> WindowMatches:
        """The tuples of the window that a conjunction matches."""
        lists = np.empty((len(self.notes), 3), np.int64)
        alive = []
        unmet = [b for b, matches in self._dense if matches.known.row(slot) in matches.bitmaps]
        if _look_up(self.notes, slot, lists):
            unmet += np.flatnonzero(lists[:, _ADDRESS] == 0).tolist()
        for b in unmet:
            # For a bitmap, or a block older than the query, the block makes or remembers the list.
            positions = self.pieces[b].block.kept(slot, conjunction)
            alive.append(positions)
            lists[b] = _address(positions), 0, len(positions)
        count, ordered = _cut(self.notes, lists)
        return WindowMatches(lists, count, ordered, alive)

    def rows(self, matches: WindowMatches, items: Sequence[SelectItem], schema: Schema) -> pa.Table | None:
        """The answer's columns, in the order of the stream's timestamps.

        None if one of them does not consist of plain numbers.
        """
        columns = [self._column(str(item.column), schema) for item in items]
        if any(column is None for column in columns):
            return None
        order = None if matches.ordered else self._order(matches)
        arrays = []
        for column in columns:
            assert column is not None
            values = self._filled(column.addresses, column.kind, matches)
            array = pa.array(values if order is None else values[order])
            arrays.append(array if array.type == column.type else array.view(column.type))
        return pa.Table.from_arrays(arrays, names=[item.name for item in items])

    def _order(self, matches: WindowMatches) -> np.ndarray:
        blocks = [piece.block for piece in self.pieces]
        stamps, seqs = (
            self._filled(np.array([_address(getattr(b, name)) for b in blocks], np.int64), np.int64, matches)
            for name in ("stamps", "seqs")
        )
        return np.lexsort((seqs, stamps))

    def _filled(self, addresses: np.ndarray, kind: npt.DTypeLike, matches: WindowMatches) -> np.ndarray:
        values = np.empty(matches.count, kind)
        _fill(addresses, self.notes, matches.lists, values.view(f"u{values.itemsize}"))
        return values

    def _column(self, name: str, schema: Schema) -> _PlainColumn | None:
        """A column's addresses and its numpy and Arrow types; None if its values are not plain numbers."""
        if name not in self._columns:
            self._columns[name] = self._noted_column(name, schema)
        return self._columns[name]

    def _noted_column(self, name: str, schema: Schema) -> _PlainColumn | None:
        views = [piece.block.values(name) for piece in self.pieces]
        kind, type_ = views[0][0].dtype, arrow_schema(schema).field(name).type
        if kind.hasobject or pa.types.is_boolean(type_):
            return None
        if any(valid is not None or not values.flags.c_contiguous for values, valid in views):
            return None
        self._held += [values for values, _ in views]
        return _PlainColumn(np.array([_address(values) for values, _ in views], np.int64), kind, type_)


def window_gather(prefix: StreamPrefix, window: Window, now: int) -> WindowGather | None:
    """The notes for a window, made once for all queries that have it; None if it is empty."""
    begin, end = window.span(now)
    key = ("gather", window.begin if isinstance(window.begin, Last) else begin, end)
    return prefix.remembered(key, lambda: _gathered(prefix.within(window, now)))


def _gathered(pieces: Sequence[BlockRange]) -> WindowGather | None:
    return WindowGather(pieces) if pieces else None


def _noted(piece: BlockRange, matches: Matches | None) -> list[int]:
    if matches is None:
        return [0, 0, 0, 0, 0, _address(piece.block.stamps), piece.low, piece.high]
    rows, starts = matches.known.rows, matches.starts
    assert [a.dtype.name for a in (rows, starts, matches.positions)] == ["int32", "uint32", "uint16"]
    return [
        _address(rows),
        len(rows),
        _address(starts),
        len(starts) - 1,
        _address(matches.positions),
        _address(piece.block.stamps),
        piece.low,
        piece.high,
    ]


def _address(values: np.ndarray) -> int:
    return int(values.__array_interface__["data"][0])


# -- compiled; they keep the interpreter, since giving it away costs more than they take


def _pointer(_: Any, address: Any) -> Any:
    """An address as a pointer."""

    def code(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], cgutils.voidptr_t)

    return types.voidptr(address), code


_at: Any = intrinsic(_pointer)


@njit(cache=True)
def _look_up(notes: np.ndarray, slot: int, lists: np.ndarray) -> bool:
    """Find each block's list of a slot: address, start and end.

    Address 0 and True if a block does not know the slot.
    """
    unmet = False
    for b in range(notes.shape[0]):
        row = -1
        if slot < notes[b, _SLOTS]:
            row = carray(_at(notes[b, _ROWS]), (notes[b, _SLOTS],), np.int32)[slot]
        if row < 0 or row >= notes[b, _CONJUNCTIONS]:
            lists[b, _ADDRESS] = 0
            unmet = True
            continue
        starts = carray(_at(notes[b, _STARTS]), (notes[b, _CONJUNCTIONS] + 1,), np.uint32)
        lists[b, _ADDRESS], lists[b, _BEGIN], lists[b, _END] = (
            notes[b, _POSITIONS],
            starts[row],
            starts[row + 1],
        )
    return unmet


@njit(cache=True)
def _cut(notes: np.ndarray, lists: np.ndarray) -> tuple[int, bool]:
    """Narrow the lists, which ascend, to the window.

    Returns how many tuples are left, and whether they are in the order of time.
    """
    total, ordered, last = 0, True, np.int64(0)
    for b in range(notes.shape[0]):
        low, high = lists[b, _BEGIN], lists[b, _END]
        if low == high:
            continue
        positions = carray(_at(lists[b, _ADDRESS]), (high,), np.uint16)
        while low < high and positions[low] < notes[b, _LOW]:
            low += 1
        while low < high and positions[high - 1] >= notes[b, _HIGH]:
            high -= 1
        lists[b, _BEGIN], lists[b, _END] = low, high
        if low < high:
            stamps = carray(_at(notes[b, _STAMPS]), (notes[b, _HIGH],), np.int64)
            ordered = ordered and (total == 0 or last < stamps[positions[low]])
            last = stamps[positions[high - 1]]
            total += high - low
    return total, ordered


@njit(cache=True)
def _fill(addresses: np.ndarray, notes: np.ndarray, lists: np.ndarray, out: np.ndarray) -> None:
    """Copy the values at the positions of all lists."""
    at = 0
    for b in range(notes.shape[0]):
        low, high = lists[b, _BEGIN], lists[b, _END]
        if low < high:
            positions = carray(_at(lists[b, _ADDRESS]), (high,), np.uint16)
            values = carray(_at(addresses[b]), (notes[b, _HIGH],), out.dtype)
            for i in range(low, high):
                out[at] = values[positions[i]]
                at += 1


def compile_loops() -> None:
    """Compile the loops, or load them from the cache, before the first client waits for them."""
    notes, lists = np.zeros((0, 8), np.int64), np.zeros((0, 3), np.int64)
    _look_up(notes, 0, lists)
    _cut(notes, lists)
    for width in (1, 2, 4, 8):
        _fill(notes[:, 0].copy(), notes, lists, np.zeros(0, f"u{width}"))
