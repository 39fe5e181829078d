"""Resample: actual tuples, and in between synthetic ones on a regular grid (Aurora, Sect. 2.1; A13)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns.columns import concat, integers, to_arrow, to_numpy
from penstock.engine.arrow.columns.grouping import codes_of, groups_of
from penstock.engine.arrow.logic import Answer
from penstock.engine.arrow.order import Reorder, canonical
from penstock.engine.arrow.state import KeyedTable, Parts
from penstock.model.boxes import Resample
from penstock.model.types import SEQ, STAMP, StreamType, arrow_schema


class ResampleLogic(Parts):
    """Remembers the last tuple of each key; a gap longer than the limit stays a gap."""

    def __init__(self, node: Resample, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.output, self.keys = node, output, inputs[0].keys
        self.order = Reorder(node.name, inputs)
        self.row = arrow_schema(inputs[0].schema)
        self.last = KeyedTable(self.row, self.keys)
        super().__init__(order=self.order, last=self.last)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of tuples."""
        released, dead = self.order.release(inputs, horizons, final=final)
        rows = released.select(self.row.names)
        at = np.unique(self.last.lookup(rows))
        known = self.last.take(at[at >= 0])
        both = concat([known, rows], self.row)
        groups = groups_of(codes_of(both, self.keys))
        synthetic = self._between(both, *_neighbours(groups.order, groups.starts))
        self.last.upsert(both.take(pa.array(groups.last)))
        out = [self._actual(rows), synthetic]
        return Answer(canonical(concat(out, arrow_schema(self.output.schema))), dead)

    def _actual(self, rows: pa.Table) -> pa.Table:
        columns = {name: _doubles(rows, name) for name in self.node.columns}
        return self._shape(rows, columns, integers(rows, STAMP), synthetic=False)

    def _between(self, rows: pa.Table, before: np.ndarray, behind: np.ndarray) -> pa.Table:
        """One row for each point of the grid strictly between two neighbours that are near enough."""
        ts = integers(rows, STAMP)
        start, end = ts[before], ts[behind]
        counts = np.where(
            end - start <= self.node.limit, (end - 1) // self.node.every - start // self.node.every, 0
        )
        counts = np.maximum(counts, 0)
        pair = np.repeat(np.arange(len(counts)), counts)
        # 0, 1, 2, ... within the grid points of each pair of neighbours.
        steps = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = (start[pair] // self.node.every + 1 + steps) * self.node.every
        share = (at - start[pair]) / (end[pair] - start[pair])
        columns = {name: _linear(rows, name, before[pair], behind[pair], share) for name in self.node.columns}
        return self._shape(rows.take(pa.array(before[pair])), columns, at, synthetic=True)

    def _shape(
        self, rows: pa.Table, columns: dict[str, pa.Array], at: np.ndarray, *, synthetic: bool
    ) -> pa.Table:
        shaped = {**dict(zip(rows.column_names, rows.columns, strict=True)), **columns}
        shaped["synthetic"] = pa.array(np.full(rows.num_rows, synthetic))
        # An actual tuple keeps its own timestamp column, which a box before may have set apart from `_ts`.
        if synthetic and self.output.timestamp in self.output.schema:
            shaped[str(self.output.timestamp)] = to_arrow(at, None, pa.timestamp("us", tz="UTC"))
        shaped[STAMP], shaped[SEQ] = pa.array(at), rows.column(SEQ)
        schema = arrow_schema(self.output.schema)
        return pa.Table.from_arrays([shaped[name] for name in schema.names], schema=schema)


def _neighbours(order: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that follow each other in a group."""
    first = np.zeros(len(order), bool)
    first[starts] = True
    later = np.flatnonzero(~first)
    return order[later - 1], order[later]


def _doubles(rows: pa.Table, name: str) -> pa.Array:
    values, valid = to_numpy(rows.column(name))
    return to_arrow(values.astype(np.float64), valid, pa.float64())


def _linear(rows: pa.Table, name: str, before: np.ndarray, behind: np.ndarray, share: np.ndarray) -> pa.Array:
    values, valid = to_numpy(rows.column(name))
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        between = wide[before] + (wide[behind] - wide[before]) * share
    return to_arrow(between, None if valid is None else valid[before] & valid[behind], pa.float64())
