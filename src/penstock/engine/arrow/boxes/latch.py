"""Latch with a function: state that is kept for ever, per key (Aurora, Sect. 2.1; A12).

The one vectorised way to keep state: tuples in canonical order and the state of their keys in, answers and
the changed state out.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.engine.arrow.columns.columns import concat, empty, one_array
from penstock.engine.arrow.functions import call, same_length, table_from, wrong
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer, dead_letters
from penstock.engine.arrow.order import INPUT, Reorder
from penstock.engine.arrow.state import KeyedTable, Parts
from penstock.model.boxes import Latch
from penstock.model.types import SEQ, STAMP, Column, Schema, StreamType, arrow_schema


class LatchFunction(Parts):
    """A user's function with keyed state."""

    def __init__(self, node: Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.inputs, self.output = node, inputs, output
        self.order = Reorder(node.name, inputs)
        key_columns = [Column(key, inputs[0].schema.type_of(key)) for key in inputs[0].keys]
        self.row = Schema((*key_columns, *node.state.columns))
        self.state = KeyedTable(arrow_schema(self.row, hidden=False), inputs[0].keys)
        super().__init__(order=self.order, state=self.state)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Release what is in order, let the function work on it, keep what it changed."""
        rows, dead = self.order.release(inputs, horizons, final=final)
        if not rows.num_rows:
            return Answer(arrow_schema(self.output.schema).empty_table(), dead)
        out, changed = self._call(self._batch(rows), self._state_of(rows))
        self.state.upsert(changed)
        out, unstamped = self._stamped(out, rows)
        return Answer(out, concat([dead, unstamped], DEAD_SCHEMA))

    def _batch(self, rows: pa.Table) -> pa.Table:
        """What the function sees: visible columns, and which input a tuple came by if there are several."""
        visible = [name for name in rows.column_names if name not in (STAMP, SEQ, INPUT)]
        batch = rows.select(visible)
        return batch if len(self.inputs) == 1 else batch.append_column("input", rows.column(INPUT))

    def _state_of(self, rows: pa.Table) -> pa.Table:
        """The state rows of the batch's keys, each once, in the order in which the keys first come."""
        at = pd.unique(self.state.lookup(rows))
        return self.state.take(at[at >= 0])

    def _call(self, batch: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        assert self.node.function is not None
        answer = call(self.node, self.node.function, batch, state)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise wrong(self.node, type(answer).__name__, "a pair: (batch, changed state rows)")
        return table_from(self.node, answer[0], self.node.produces), table_from(
            self.node, answer[1], self.row
        )

    def _stamped(self, out: pa.Table, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Timestamps from the function if it makes them, else those of the tuples, one for one."""
        if self.output.timestamp not in self.node.produces:
            same_length(self.node, out.num_rows, rows.num_rows)
            kept = out.append_column(STAMP, rows.column(STAMP)).append_column(SEQ, rows.column(SEQ))
            return kept, empty(DEAD_SCHEMA)
        # Only the function knows which tuple a row comes from, so no `_seq` can be carried over.
        stamp = one_array(out.column(self.output.timestamp))
        stamped = out.append_column(STAMP, stamp.view(pa.int64())).append_column(
            SEQ, pa.array(np.zeros(len(stamp), np.int64))
        )
        if not stamp.null_count:
            return stamped, empty(DEAD_SCHEMA)
        lost = stamped.filter(stamp.is_null())
        letters = dead_letters(lost, ["timestamp is null"] * lost.num_rows, self.node.name)
        return stamped.filter(stamp.is_valid()), letters
