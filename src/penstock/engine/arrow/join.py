"""Join: pairs of tuples whose distance in time is within a bound (Aurora, Sect. 2.1; A18).

One side is sorted by key and time; for each tuple of the other, two binary searches give the stretch of its partners:
never the cross product of a key. A pair is given as soon as both are there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns import concat, empty, integers, to_numpy
from penstock.engine.arrow.expressions import compile_arrow
from penstock.engine.arrow.grouping import codes_of
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer, dead_letters
from penstock.engine.arrow.order import Gate, canonical
from penstock.engine.arrow.state import Buffer, Parts
from penstock.model.boxes import Join
from penstock.model.stream_types import join_names
from penstock.model.types import SEQ, STAMP, StreamType, arrow_schema


class JoinLogic(Parts):
    """Keeps the tuples of each side as long as a partner may come."""

    def __init__(self, node: Join, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.output, self.gate = node, output, Gate(node.name, 2)
        self.schema = arrow_schema(output.schema)
        self.names = join_names(node, inputs[0].schema, inputs[1].schema)
        self.predicate = compile_arrow(node.predicate, output.schema) if node.predicate else None
        self.left, self.right = (Buffer(arrow_schema(stream.schema)) for stream in inputs)
        super().__init__(acted=self.gate.acted, left=self.left, right=self.right)

    def process(self, inputs: list[Any], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of each side."""
        in_time, late = self.gate.admit(inputs)
        left, right = (canonical(rows) for rows in in_time)
        old = self.left.rows
        self.right.append(right)
        pairs = concat([self._pairs(left, self.right.rows), self._pairs(old, right)], self.schema)
        self.left.append(left)
        out, failed = self._passing(pairs)
        self._expire(self.gate.act(horizons), final=final)
        return Answer(canonical(out), concat([late, failed], DEAD_SCHEMA))

    def _pairs(self, left: Any, right: Any) -> Any:
        if not left.num_rows or not right.num_rows:
            return empty(self.schema)
        one, other = self._matches(left, right)
        pair = left.take(pa.array(one))
        partner = right.take(pa.array(other))
        ts = np.minimum(integers(pair, STAMP), integers(partner, STAMP))
        columns = [pair.column(name) for name in pair.column_names if name not in (STAMP, SEQ)]
        columns += [partner.column(name) for name, _ in self.names]
        return pa.Table.from_arrays([*columns, pa.array(ts), pair.column(SEQ)], schema=self.schema)

    def _matches(self, left: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of all pairs with equal keys, near enough in time."""
        codes, known = self._codes(left, right)
        mine, theirs = np.flatnonzero(known[: left.num_rows]), np.flatnonzero(known[left.num_rows :])
        times, rank = np.unique(integers(right, STAMP)[theirs], return_inverse=True)
        # key and rank in time as one number: one sort, two binary searches
        step = len(times) + 1
        place = codes[left.num_rows :][theirs] * step + rank
        order = np.argsort(place, kind="stable")
        base, ts = codes[: left.num_rows][mine] * step, integers(left, STAMP)[mine]
        after, before = self.node.within
        first = np.searchsorted(place[order], base + np.searchsorted(times, ts - before, "left"))
        last = np.searchsorted(place[order], base + np.searchsorted(times, ts + after, "right"))
        counts = last - first
        one = np.repeat(np.arange(len(mine)), counts)
        steps = np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts)
        return mine[one], theirs[order[first[one] + steps]]

    def _codes(self, left: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
        """A number for the key of each row of both sides, and whether no part of it is null."""
        columns, known = {}, np.ones(left.num_rows + right.num_rows, bool)
        for place, (a, b) in enumerate(self.node.on):
            column = _both(left.column(a), right.column(b))
            columns[str(place)] = column
            known &= column.is_valid().to_numpy(zero_copy_only=False)
        table = pa.table(columns) if columns else pa.table({"_": np.zeros(len(known), np.int8)})
        return codes_of(table, tuple(columns), dense=True), known

    def _passing(self, pairs: Any) -> tuple[Any, Any]:
        """Pairs for which the predicate is true, and the dead letters of those where it fails."""
        if self.predicate is None or not pairs.num_rows:
            return pairs, empty(DEAD_SCHEMA)
        values, failures = self.predicate(pairs.select(list(self.output.schema.names)))
        bad = sorted(failures)
        letters = dead_letters(
            pairs.take(pa.array(bad, pa.int64())), [failures[row] for row in bad], self.node.name
        )
        passing = values.fill_null(False).to_numpy(zero_copy_only=False).copy()
        passing[bad] = False
        return pairs.filter(pa.array(passing)), letters

    def _expire(self, horizons: tuple[int, ...], *, final: bool) -> None:
        after, before = self.node.within
        for buffer, reach, horizon in ((self.left, after, horizons[1]), (self.right, before, horizons[0])):
            ts = integers(buffer.rows, STAMP)
            buffer.drop(np.ones(len(ts), bool) if final else ts + reach < horizon)


def _both(left: Any, right: Any) -> Any:
    """Two key columns as one; numbers of different types are compared as whole numbers, else as doubles."""
    if left.type == right.type:
        return pa.concat_arrays([*left.chunks, *right.chunks])
    whole = pa.types.is_integer(left.type) and pa.types.is_integer(right.type)
    type_ = pa.int64() if whole else pa.float64()
    return pa.concat_arrays([_as(left, type_), _as(right, type_)])


def _as(column: Any, type_: Any) -> Any:
    values, valid = to_numpy(column)
    return pa.array(
        values.astype(type_.to_pandas_dtype()), type=type_, mask=None if valid is None else ~valid
    )
