"""Canonical order, and the buffer in which tuples wait for it.

Ordered boxes take tuples in the order (_ts, input, _seq, then the visible values) whatever the cutting into
trains: a tuple is released once nothing smaller can still come. With m the smallest horizon and j the first
input that has it, these are the tuples with _ts < m, and at m itself those of inputs before j, and of j if it
is in arrival order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.columns.columns import concat, empty, integers
from penstock.engine.arrow.logic import DEAD_SCHEMA, MIN, late_letters
from penstock.engine.arrow.state import Buffer, Numbers, Parts
from penstock.model.types import SEQ, STAMP, Schema, StreamType, arrow_schema

INPUT = "_input"


def canonical(rows: pa.Table) -> pa.Table:
    """The rows in canonical order; a table with several inputs has the column `_input`."""
    if rows.num_rows < 2:
        return rows
    keys = [integers(rows, STAMP), integers(rows, SEQ)]
    if INPUT in rows.column_names:
        keys.insert(1, integers(rows, INPUT))
    order = _order(keys)
    if _ties(keys, order):
        # _seq is unique within a source, so this is only for merged or windowed streams.
        order = pc.sort_indices(*_sortable(rows))
    return rows if order is None else rows.take(pa.array(order) if isinstance(order, np.ndarray) else order)


def _order(keys: list[np.ndarray]) -> np.ndarray | None:
    """Sorting indices; None if the rows are sorted already."""
    # Trains mostly arrive in order, and this check is linear.
    if _is_sorted(keys):
        return None
    packed = _packed(keys)
    # lexsort takes the main key last. argsort need not be stable: `canonical` looks at ties itself.
    return np.lexsort(keys[::-1]) if packed is None else np.argsort(packed)


def _is_sorted(keys: list[np.ndarray]) -> bool:
    """Equal neighbours count as sorted; `_ties` looks at those."""
    less = np.zeros(len(keys[0]) - 1, bool)
    equal = ~less
    for key in keys:
        less |= equal & (key[:-1] < key[1:])
        equal &= key[:-1] == key[1:]
    return bool((less | equal).all())


def _packed(keys: list[np.ndarray]) -> np.ndarray | None:
    """All keys in one int64 if their ranges allow: sorting one array is several times faster."""
    packed, bits = np.zeros(len(keys[0]), np.int64), 0
    for key in keys:
        # As Python integers: the distance between two int64 may not fit an int64.
        low, high = int(key.min()), int(key.max())
        width = (high - low).bit_length()
        bits += width
        # Stay clear of the sign bit.
        if bits > 62:
            return None
        packed = (packed << width) | (key - low)
    return packed


def _ties(keys: list[np.ndarray], order: np.ndarray | None) -> bool:
    same = np.ones(len(keys[0]) - 1, bool)
    for key in keys:
        ranked = key if order is None else key[order]
        same &= ranked[:-1] == ranked[1:]
    return bool(same.any())


def _sortable(rows: pa.Table) -> tuple[pa.Table, list[tuple[str, str]]]:
    """A table that Arrow can sort, and its sort keys: booleans as numbers, nulls first."""
    hidden = [name for name in (STAMP, INPUT, SEQ) if name in rows.column_names]
    columns = {}
    for name in [*hidden, *(name for name in rows.column_names if name not in hidden)]:
        column = rows.column(name)
        if column.null_count:
            # Arrow sorts nulls last. A column of 0 and 1 in front puts them first, as Spark does.
            columns[f"{name} is known"] = column.is_valid().cast(pa.int8())
        columns[name] = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
    return pa.table(columns), [(name, "ascending") for name in columns]


def merged_schema(inputs: list[StreamType]) -> Schema:
    """The columns of all inputs, by name; a tuple of an input that lacks one has null there."""
    # Reversed: where inputs share a name, the column of the first input stays.
    columns = {column.name: column for stream in reversed(inputs) for column in stream.schema}
    order = dict.fromkeys(column.name for stream in inputs for column in stream.schema)
    return Schema(tuple(columns[name] for name in order))


def merge(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """The tuples of all inputs in one table with the column `_input`."""
    return concat([_widened(table, number, schema) for number, table in enumerate(tables)], schema)


def _widened(table: pa.Table, number: int, schema: pa.Schema) -> pa.Table:
    count = table.num_rows
    columns = []
    for field in schema:
        if field.name == INPUT:
            columns.append(pa.array(np.full(count, number, np.int32)))
        elif field.name in table.column_names:
            columns.append(table.column(field.name))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


class Gate:
    """Refuses tuples behind a horizon on which the box has acted: an idle input came back too late."""

    def __init__(self, box: str, inputs: int) -> None:
        self.box, self.acted = box, Numbers(*[MIN] * inputs)

    def admit(self, tables: list[pa.Table]) -> tuple[list[pa.Table], pa.Table]:
        """The tuples in time, and the dead letters of the late ones."""
        late = [
            integers(table, STAMP) < acted for table, acted in zip(tables, self.acted.values, strict=True)
        ]
        # Nearly always no tuple is late: hand the tables on uncopied.
        if not any(mask.any() for mask in late):
            return tables, empty(DEAD_SCHEMA)
        rows = [table.filter(pa.array(mask)) for table, mask in zip(tables, late, strict=True)]
        letters = [
            late_letters(table, acted, self.box) for table, acted in zip(rows, self.acted.values, strict=True)
        ]
        in_time = [table.filter(pa.array(~mask)) for table, mask in zip(tables, late, strict=True)]
        return in_time, concat(letters, DEAD_SCHEMA)

    def act(self, horizons: tuple[int, ...]) -> tuple[int, ...]:
        """Note the horizons of this train. They never step back, even when an idle input wakes up."""
        self.acted.values = tuple(max(pair) for pair in zip(self.acted.values, horizons, strict=True))
        return self.acted.values


class Reorder(Parts):
    """Takes trains of one or several inputs, gives tuples in canonical order, each once."""

    def __init__(self, box: str, inputs: list[StreamType]) -> None:
        self.inputs = inputs
        self.schema = arrow_schema(merged_schema(inputs)).append(pa.field(INPUT, pa.int32()))
        self.waiting, self.gate = Buffer(self.schema), Gate(box, len(inputs))
        super().__init__(waiting=self.waiting, acted=self.gate.acted)

    def release(
        self, tables: list[pa.Table], horizons: tuple[int, ...], *, final: bool
    ) -> tuple[pa.Table, pa.Table]:
        """What may go now, in canonical order, with the column `_input`; and letters of late tuples."""
        in_time, dead = self.gate.admit(tables)
        came = merge(in_time, self.schema)
        rows = concat([self.waiting.rows, came], self.schema)
        reached = self.gate.act(horizons)
        # Waiting rows come first in `rows`, so the first part of the mask is about them.
        ready = np.ones(rows.num_rows, bool) if final else self._ready(rows, reached)
        before = len(self.waiting)
        self.waiting.drop(ready[:before])
        wait = ~ready[before:]
        # Append only what came now: rows that waited before are in the state already.
        if wait.any():
            self.waiting.append(canonical(came.filter(pa.array(wait))))
        return canonical(rows if ready.all() else rows.filter(pa.array(ready))), dead

    def _ready(self, rows: pa.Table, horizons: tuple[int, ...]) -> np.ndarray:
        # The least horizon, and the first input that has it.
        low, first = min(zip(horizons, range(len(horizons)), strict=True))
        ts, source = integers(rows, STAMP), integers(rows, INPUT)
        # At `low` itself, inputs before `first` have gone past. `first` may still send tuples with this time:
        # they sort behind its earlier ones only if it is in arrival order.
        settled = source <= first if self.inputs[first].arrival_order else source < first
        ready: np.ndarray = (ts < low) | ((ts == low) & settled)
        return ready
