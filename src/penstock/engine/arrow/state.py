"""State of a box in one partition, as columns, with change tracking.

Each primitive is at some version b; `delta()` gives only what changed since version b - 1 and `apply(delta)`
brings another copy from b - 1 to b; `snapshot()` and `restore()` carry all of it. A retry or another worker
process therefore reaches the same version from a snapshot and a few small deltas. Tables without rows are
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.engine.arrow.columns.columns import (
    Mask,
    concat,
    dtype_of,
    empty,
    key_values,
    to_arrow,
    to_numpy,
)

Tables = dict[str, pa.Table]


class Versioned(Protocol):
    """Something whose changes can be carried elsewhere."""

    def delta(self) -> Tables: ...
    def apply(self, delta: Mapping[str, pa.Table]) -> None: ...
    def snapshot(self) -> Tables: ...
    def restore(self, snapshot: Mapping[str, pa.Table]) -> None: ...


class Parts:
    """Several states as one; the name of a part stands before its tables ('windows/upserted')."""

    def __init__(self, **parts: Versioned) -> None:
        self.parts = parts

    def delta(self) -> Tables:
        return {
            f"{name}/{key}": table for name, part in self.parts.items() for key, table in part.delta().items()
        }

    def apply(self, delta: Mapping[str, pa.Table]) -> None:
        for name, part in self.parts.items():
            part.apply(_below(delta, name))

    def snapshot(self) -> Tables:
        return {
            f"{name}/{key}": table
            for name, part in self.parts.items()
            for key, table in part.snapshot().items()
        }

    def restore(self, snapshot: Mapping[str, pa.Table]) -> None:
        for name, part in self.parts.items():
            part.restore(_below(snapshot, name))


def _below(tables: Mapping[str, pa.Table], name: str) -> Tables:
    return {key[len(name) + 1 :]: table for key, table in tables.items() if key.startswith(f"{name}/")}


class Interner:
    """Dense numbers for values, in order of first appearance; new values are added without rebuilding it all.

    The values lie in a few hash indexes of growing size (as in a log-structured merge tree): a new batch of
    values is a new small index, merged with its neighbour once they are of like size.
    """

    def __init__(self) -> None:
        self.size = 0
        self._levels: list[tuple[pd.Index, int]] = []  # an index and the number of its first value
        self._null = -1

    def codes(self, values: np.ndarray, valid: Mask, *, add: bool) -> np.ndarray:
        """The number of each value; with `add`, unknown ones get a new number, else -1."""
        if valid is None:
            return self._of(values, add=add)
        codes = np.empty(len(values), np.int64)
        codes[valid] = self._of(values[valid], add=add)
        # All nulls share one number, taken when the first one comes.
        if self._null < 0 and add and not valid.all():
            self._null, self.size = self.size, self.size + 1
        codes[~valid] = self._null
        return codes

    def _of(self, values: np.ndarray, *, add: bool) -> np.ndarray:
        codes = np.full(len(values), -1, np.int64)
        todo: Any = slice(None)  # all values at first, then those that no level knows
        # Only what a level does not know goes on to the next.
        for index, first in self._levels:
            at = index.get_indexer(values[todo])
            codes[todo] = np.where(at < 0, -1, at + first)
            todo = np.flatnonzero(codes < 0)
            if not len(todo):
                return codes
        if add:
            numbers, uniques = pd.factorize(values[todo])
            codes[todo] = numbers + self.size
            self._add(pd.Index(uniques, dtype=values.dtype))
        return codes

    def _add(self, new: pd.Index) -> None:
        first, self.size = self.size, self.size + len(new)
        # Merging levels of like size only, a value moves a logarithmic number of times.
        while self._levels and len(self._levels[-1][0]) < 2 * len(new):
            last, at = self._levels[-1]
            # Numbers run on across levels except where the null took one.
            if at + len(last) != first:
                break
            self._levels.pop()
            new, first = last.append(new), at
        self._levels.append((new, first))


class _Column:
    """One growing column that is changed in place."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type, self.values = type_, np.zeros(0, dtype_of(type_))
        self.valid: Mask = None

    def reserve(self, size: int) -> None:
        if size > len(self.values):
            # At least doubled, so that growing row by row stays linear.
            more = max(size, 2 * len(self.values)) - len(self.values)
            self.values = np.concatenate([self.values, np.zeros(more, self.values.dtype)])
            if self.valid is not None:
                self.valid = np.concatenate([self.valid, np.ones(more, bool)])

    def put(self, rows: np.ndarray, column: pa.ChunkedArray) -> None:
        values, valid = to_numpy(column)
        self.values[rows] = values
        # Most columns never see a null: the mask comes with the first one.
        if valid is not None and self.valid is None:
            self.valid = np.ones(len(self.values), bool)
        if self.valid is not None:
            self.valid[rows] = True if valid is None else valid

    def take(self, rows: np.ndarray) -> pa.Array:
        return to_arrow(self.values[rows], None if self.valid is None else self.valid[rows], self.type)


class KeyedTable:
    """Rows with a unique key of one or several columns (or none: then there is at most one row).

    >>> import pyarrow as pa
    >>> table = KeyedTable(pa.schema([("vid", pa.int64()), ("speed", pa.int64())]), ("vid",))
    >>> _ = table.upsert(pa.table({"vid": [7, 8], "speed": [30, 40]}))
    >>> table.lookup(pa.table({"vid": [8, 9]})).tolist()
    [1, -1]
    """

    def __init__(self, schema: pa.Schema, keys: tuple[str, ...]) -> None:
        self.schema, self.keys = schema, keys
        self._reset()

    def _reset(self) -> None:
        self._columns = {field.name: _Column(field.type) for field in self.schema}
        self._interners = [Interner() for _ in self.keys]
        self._pairs = [Interner() for _ in self.keys[1:]]
        self._alive = np.zeros(0, bool)
        self._size = 0  # rows in use, living or deleted
        self._touched: list[np.ndarray] = []

    def __len__(self) -> int:
        return int(np.count_nonzero(self._alive[: self._size]))

    def lookup(self, keys: pa.Table) -> np.ndarray:
        """The row number of each key of a table that has the key columns; -1: no such row.

        Row numbers hold until the next `delta`, `apply` or `restore`.
        """
        rows = self._rows(keys, add=False)
        if not self._size:
            return np.full(len(rows), -1, np.int64)
        # An unknown key (-1) reads the last row of `_alive`; the first condition rules it out.
        return np.where((rows >= 0) & self._alive[rows], rows, -1)

    def _rows(self, table: pa.Table, *, add: bool) -> np.ndarray:
        if not self.keys:
            return np.zeros(table.num_rows, np.int64)
        codes = [
            interner.codes(*key_values(table.column(name)), add=add)
            for name, interner in zip(self.keys, self._interners, strict=True)
        ]
        rows = codes[0]
        # Several key columns: number the pairs of (number so far, number in the next column).
        for code, pairs in zip(codes[1:], self._pairs, strict=True):
            # An unknown part makes an unknown pair: -1 is never added.
            both = np.where((rows < 0) | (code < 0), -1, (rows << 32) | code)
            rows = pairs.codes(both, None, add=add)
        return rows

    def take(self, rows: np.ndarray, names: tuple[str, ...] | None = None) -> pa.Table:
        """These rows as a table, in this order."""
        fields = [self.schema.field(name) for name in (self.schema.names if names is None else names)]
        arrays = [self._columns[field.name].take(rows) for field in fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)) if fields else pa.table({})

    def values(self, name: str) -> np.ndarray:
        """A column as numpy sees it, by row number (also of deleted rows); to be read only."""
        return self._columns[name].values[: self._size]

    def rows(self) -> np.ndarray:
        """The numbers of all rows."""
        return np.flatnonzero(self._alive[: self._size])

    def table(self) -> pa.Table:
        """All rows."""
        return self.take(self.rows())

    def upsert(self, rows: pa.Table) -> np.ndarray:
        """Insert these rows, or replace those with the same key (the last one wins); their numbers."""
        if not rows.num_rows:
            return np.zeros(0, np.int64)
        at = self._put(rows)
        self._touched.append(at)
        return at

    def _put(self, rows: pa.Table) -> np.ndarray:
        at = self._rows(rows, add=True)
        self._size = max(self._size, int(at.max()) + 1)
        if self._size > len(self._alive):
            self._alive = np.concatenate([self._alive, np.zeros(max(self._size, 64), bool)])
        for name, column in self._columns.items():
            column.reserve(self._size)
            # Where a key comes twice numpy assigns in order, so the last row wins.
            column.put(at, rows.column(name))
        self._alive[at] = True
        return at

    def delete(self, keys: pa.Table) -> None:
        """Delete the rows with these keys, as far as there are any."""
        at = self.lookup(keys)
        self.delete_rows(at[at >= 0])

    def delete_rows(self, rows: np.ndarray) -> None:
        """Delete rows by their numbers."""
        if len(rows):
            self._alive[rows] = False
            self._touched.append(rows)

    def delta(self) -> Tables:
        """`upserted`: rows that are new or different; `deleted`: keys; in the order of the changes."""
        touched = np.concatenate(self._touched) if self._touched else np.zeros(0, np.int64)
        # However often a row changed, it goes once, as it is now. One that came and went goes as deleted,
        # which `apply` passes over.
        touched = pd.unique(touched)
        alive = self._alive[touched]
        gone = self._count(touched[~alive])
        changes = {"upserted": self.take(touched[alive]), "deleted": gone}
        self._touched = []
        self._compact()
        return _filled(changes)

    def _count(self, rows: np.ndarray) -> pa.Table:
        # Without key columns a table of keys would have no way to say that it has a row.
        if self.keys:
            return self.take(rows, self.keys)
        return pa.table({"_all": pa.array(np.zeros(len(rows), np.int8))})

    def apply(self, delta: Mapping[str, pa.Table]) -> None:
        """Bring version b - 1 to b."""
        # A key is in one of the two tables only, so their order does not matter.
        if "deleted" in delta:
            at = self.lookup(delta["deleted"])
            self._alive[at[at >= 0]] = False
        if "upserted" in delta:
            # Not `upsert`: what was applied must not come back in the next delta.
            self._put(delta["upserted"])
        self._compact()

    def snapshot(self) -> Tables:
        """`rows`: all rows."""
        return _filled({"rows": self.table()})

    def restore(self, snapshot: Mapping[str, pa.Table]) -> None:
        """Forget everything and take over a snapshot."""
        self._reset()
        if "rows" in snapshot:
            self._put(snapshot["rows"])

    def _compact(self) -> None:
        """Free deleted rows and their keys once they are the larger part."""
        if self._size > 1024 and self._size > 2 * len(self):
            # The cost is that of the living rows, paid once for at least as many deletions.
            self.restore(self.snapshot())


class Buffer:
    """Rows that wait, in the order in which they were appended."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._take_over(empty(schema))

    def _take_over(self, rows: pa.Table) -> None:
        self.rows = rows
        self._origin = np.arange(rows.num_rows)  # row number in the last version; -1: appended since
        self._base = rows.num_rows

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def append(self, rows: pa.Table) -> None:
        """Add rows at the end."""
        self.rows = concat([self.rows, rows], self.schema)
        self._origin = np.concatenate([self._origin, np.full(rows.num_rows, -1)])

    def drop(self, gone: np.ndarray) -> None:
        """Drop the rows where the mask is true."""
        if gone.any():
            self.rows = empty(self.schema) if gone.all() else self.rows.filter(pa.array(~gone))
            self._origin = self._origin[~gone]

    def delta(self) -> Tables:
        """`dropped`: ranges [start, stop) of places in the last version; `appended`: rows."""
        kept = self._origin >= 0
        gone = np.ones(self._base, bool)
        gone[self._origin[kept]] = False
        # The mask flips where a range starts and where it stops. Mostly the oldest rows go: one range.
        edges = np.flatnonzero(np.diff(gone, prepend=False, append=False))
        new = self.rows if not kept.any() else self.rows.filter(pa.array(~kept))
        self._take_over(self.rows)
        return _filled({"dropped": pa.table({"start": edges[::2], "stop": edges[1::2]}), "appended": new})

    def apply(self, delta: Mapping[str, pa.Table]) -> None:
        """Bring version b - 1 to b."""
        if "dropped" in delta:
            marks = np.zeros(len(self) + 1, np.int64)
            # +1 at each start and -1 at each stop: the running sum is above 0 inside a range.
            marks[to_numpy(delta["dropped"].column("start"))[0]] += 1
            marks[to_numpy(delta["dropped"].column("stop"))[0]] -= 1
            self.drop(np.cumsum(marks)[:-1] > 0)
        if "appended" in delta:
            self.append(delta["appended"])
        self._take_over(self.rows)

    def snapshot(self) -> Tables:
        """`rows`: all rows."""
        return _filled({"rows": self.rows})

    def restore(self, snapshot: Mapping[str, pa.Table]) -> None:
        """Forget everything and take over a snapshot."""
        self._take_over(snapshot.get("rows", empty(self.schema)))


class Numbers:
    """A few whole numbers, such as the horizon on which a box has acted."""

    def __init__(self, *values: int) -> None:
        self._first, self._values, self._changed = values, values, False

    @property
    def values(self) -> tuple[int, ...]:
        return self._values

    @values.setter
    def values(self, values: tuple[int, ...]) -> None:
        self._changed = self._changed or values != self._values
        self._values = values

    def delta(self) -> Tables:
        """`numbers`, if any of them changed."""
        changed, self._changed = self._changed, False
        return self._table() if changed else {}

    def apply(self, delta: Mapping[str, pa.Table]) -> None:
        """Bring version b - 1 to b."""
        if "numbers" in delta:
            self._values = tuple(delta["numbers"].column(0).to_pylist())

    def snapshot(self) -> Tables:
        """`numbers`."""
        return self._table()

    def restore(self, snapshot: Mapping[str, pa.Table]) -> None:
        """Forget everything and take over a snapshot."""
        self._values, self._changed = self._first, False
        self.apply(snapshot)

    def _table(self) -> Tables:
        return {"numbers": pa.table({"number": pa.array(self._values, pa.int64())})}


def _filled(tables: Tables) -> Tables:
    return {name: table for name, table in tables.items() if table.num_rows}
