"""The pairs of two batches: equal keys, near enough in time, under any predicate (A18, S01, S02).

One side is sorted by key and time; for each tuple of the other, two binary searches give the stretch of its
partners: never the cross product of a key. Candidates are looked at in blocks, and of each only the columns
that the predicate reads: so a window may hold many more candidates than memory, and only pairs that pass are
put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns.columns import concat, empty, integers, to_numpy
from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.engine.arrow.columns.grouping import codes_of
from penstock.engine.arrow.logic import DEAD_SCHEMA, dead_letters
from penstock.model.boxes import Join
from penstock.model.checks.stream_types import join_names
from penstock.model.expressions.expression import columns_of
from penstock.model.types import SEQ, STAMP, StreamType, arrow_schema

BLOCK = 1 << 19  # candidates that are looked at together: their columns stay in the processor's cache


@dataclass(frozen=True)
class JoinedPairs:
    """The pairs, the dead letters of pairs whose predicate failed, and how many candidates were compared."""

    pairs: pa.Table
    dead: pa.Table
    operations: int


class Pairing:
    """Finds pairs; holds no state."""

    def __init__(self, node: Join, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.schema = node, arrow_schema(output.schema)
        self.names = join_names(node, inputs[0].schema, inputs[1].schema)
        self.left = list(inputs[0].schema.names)
        self.predicate = compile_arrow(node.predicate, output.schema) if node.predicate else None
        self.reads = _read_columns(node, list(output.schema.names)) if node.predicate else []

    def find(self, left: pa.Table, right: pa.Table) -> JoinedPairs:
        """All pairs of these tuples."""
        if not left.num_rows or not right.num_rows:
            return JoinedPairs(empty(self.schema), empty(DEAD_SCHEMA), 0)
        pairs, dead, operations = [], [], 0
        for mine, theirs in self._candidates(left, right):
            operations += len(mine)
            one, other, letters = self._passing(left, right, mine, theirs)
            if len(one):
                pairs.append(self._put_together(left, right, one, other))
            if letters is not None:
                dead.append(letters)
        return JoinedPairs(concat(pairs, self.schema), concat(dead, DEAD_SCHEMA), operations)

    def _candidates(self, left: pa.Table, right: pa.Table) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers of pairs with equal keys, near enough in time, block by block."""
        mine, theirs, first, counts = self._stretches(left, right)
        ends = np.cumsum(counts)
        start = 0
        while start < len(mine):
            done = ends[start - 1] if start else 0
            # One tuple at least: it may have more partners than a block holds.
            stop = max(start + 1, int(np.searchsorted(ends, done + BLOCK, "right")))
            size = counts[start:stop]
            one = np.repeat(np.arange(start, stop), size)
            # 0, 1, 2, ... within the partners of each tuple.
            steps = np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
            if len(one):
                yield mine[one], theirs[first[one] + steps]
            start = stop

    def _stretches(
        self, left: pa.Table, right: pa.Table
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Left rows, right rows by key and time, and for each left row its first partner and their number."""
        codes, known = self._codes(left, right)
        # A key with a null equals nothing: such rows take no part.
        mine, theirs = np.flatnonzero(known[: left.num_rows]), np.flatnonzero(known[left.num_rows :])
        times, rank = np.unique(integers(right, STAMP)[theirs], return_inverse=True)
        # Ranks instead of times, so that key and time fit in one int64: one sort, two binary searches.
        step = len(times) + 1
        key_and_time = codes[left.num_rows :][theirs] * step + rank
        order = np.argsort(key_and_time, kind="stable")
        base, ts = codes[: left.num_rows][mine] * step, integers(left, STAMP)[mine]
        after, before = self.node.within
        first = np.searchsorted(key_and_time[order], base + np.searchsorted(times, ts - before, "left"))
        last = np.searchsorted(key_and_time[order], base + np.searchsorted(times, ts + after, "right"))
        return mine, theirs[order], first, last - first

    def _codes(self, left: pa.Table, right: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A number for the key of each row of both sides, and whether no part of it is null."""
        columns, known = {}, np.ones(left.num_rows + right.num_rows, bool)
        for number, (a, b) in enumerate(self.node.on):
            # Numbered together, so that equal keys of both sides get equal numbers.
            column = _both(left.column(a), right.column(b))
            columns[str(number)] = column
            known &= column.is_valid().to_numpy(zero_copy_only=False)
        if not columns:
            return np.zeros(len(known), np.int64), known
        return codes_of(pa.table(columns), tuple(columns), dense=True), known

    def _passing(
        self, left: pa.Table, right: pa.Table, one: np.ndarray, other: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, pa.Table | None]:
        """Candidates for which the predicate is true, and the dead letters of those where it fails."""
        if self.predicate is None:
            return one, other, None
        values, failures = self.predicate(self._read(left, right, one, other))
        passing = values.fill_null(False).to_numpy(zero_copy_only=False)
        letters = None
        if failures:
            bad = np.array(sorted(failures))
            rows = self._put_together(left, right, one[bad], other[bad])
            letters = dead_letters(rows, [failures[row] for row in bad.tolist()], self.node.name)
            passing = passing.copy()
            passing[bad] = False
        kept = np.flatnonzero(passing)
        return one[kept], other[kept], letters

    def _read(self, left: pa.Table, right: pa.Table, one: np.ndarray, other: np.ndarray) -> pa.Table:
        """The columns that the predicate reads, of these candidates."""
        # What is not a column of the right side is one of the left.
        sides = {new: (right, old, other) for old, new in self.names}
        columns = {}
        for name in self.reads:
            table, column, rows = sides.get(name, (left, name, one))
            columns[name] = _take(table.column(column), rows)
        return pa.table(columns)

    def _put_together(self, left: pa.Table, right: pa.Table, one: np.ndarray, other: np.ndarray) -> pa.Table:
        columns = [left.column(name).take(pa.array(one)) for name in self.left]
        columns += [right.column(name).take(pa.array(other)) for name, _ in self.names]
        # A pair is as old as its older tuple, and has the number of the left one.
        ts = np.minimum(integers(left, STAMP)[one], integers(right, STAMP)[other])
        return pa.Table.from_arrays(
            [*columns, pa.array(ts), left.column(SEQ).take(pa.array(one))], schema=self.schema
        )


def _read_columns(node: Join, names: list[str]) -> list[str]:
    """The output columns that the predicate names; SQL does not tell their case apart."""
    known = {name.lower(): name for name in names}
    read = [known[name.lower()] for name in columns_of(node.predicate) if name.lower() in known]
    # A predicate without columns still needs to know how many candidates there are.
    return read or names[:1]


def _take(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray | pa.Array:
    """Like Arrow's take; plain numbers are several times faster by way of numpy."""
    if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        values, _ = to_numpy(column)
        return pa.array(values[rows], type=column.type)
    return column.take(pa.array(rows))


def _both(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """Two key columns as one; numbers of different types are compared as whole numbers, else as doubles."""
    if left.type == right.type:
        return pa.concat_arrays([*left.chunks, *right.chunks])
    whole = pa.types.is_integer(left.type) and pa.types.is_integer(right.type)
    type_ = pa.int64() if whole else pa.float64()
    return pa.concat_arrays([_as(left, type_), _as(right, type_)])


def _as(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    values, valid = to_numpy(column)
    return pa.array(
        values.astype(type_.to_pandas_dtype()), type=type_, mask=None if valid is None else ~valid
    )
