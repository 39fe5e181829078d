"""Tumble and Slide over so many tuples of a key, in canonical order (Aurora, Sect. 2.1; A10, A11).

The n-th tuple of a key has place n; window k covers the places [k * every, k * every + size). The state is
how many tuples each key has had, and the tuples that a later window still needs.

The end of input closes windows that are not full yet. If windows take the latest stamp, these get the time of
the end: the boxes downstream have been promised that nothing older comes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.boxes.window_rows import Shaper
from penstock.engine.arrow.columns.columns import concat, integers
from penstock.engine.arrow.columns.grouping import codes_of, groups_of
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer
from penstock.engine.arrow.order import Reorder
from penstock.engine.arrow.state import Buffer, KeyedTable, Parts
from penstock.engine.arrow.window_spans import Spans
from penstock.model.boxes import Latch, Windowed
from penstock.model.durations import Count
from penstock.model.types import STAMP, StreamType

PLACE, SEEN = "_place", "_seen"


def _spans(node: Windowed | Latch) -> Spans:
    every = node.step
    assert isinstance(node.size, Count)
    assert isinstance(every, Count)
    return Spans(node.size.tuples, every.tuples)


class CountWindows(Parts):
    """Aggregates, or a function, over so many tuples of a key."""

    def __init__(self, node: Windowed | Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.shaper, self.spans = node, Shaper(node, inputs, output), _spans(node)
        self.order, keys = Reorder(node.name, inputs), self.shaper.keys
        fields = [self.shaper.partial_schema.field(key) for key in keys]
        self.seen = KeyedTable(pa.schema([*fields, pa.field(SEEN, pa.int64())]), keys)
        self.kept = Buffer(self.shaper.row_schema.append(pa.field(PLACE, pa.int64())))
        super().__init__(order=self.order, seen=self.seen, kept=self.kept)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of tuples."""
        rows, windows, dead = self.complete(inputs, horizons, final=final)
        if self.node.function is not None:
            return Answer(self.shaper.apply_function(rows, windows), dead)
        partials, distincts = self.shaper.partial(rows, windows), self.shaper.distincts(rows, windows)
        answer = self.shaper.emit(self.shaper.counted(partials, distincts), None)
        return Answer(answer.out, concat([dead, answer.dead], DEAD_SCHEMA))

    def complete(
        self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool
    ) -> tuple[pa.Table, np.ndarray, pa.Table]:
        """The tuples of the complete windows, once for each; which window it is; dead letters."""
        released, late = self.order.release(inputs, horizons, final=final)
        rows, failed = self.shaper.measure(released)
        dead = concat([late, failed], DEAD_SCHEMA)
        placed = rows.append_column(PLACE, pa.array(self._places(rows)))
        self.kept.append(placed.filter(pa.array(self.spans.inside(integers(placed, PLACE)))))
        # A window closes in this train if it ends after the count before the train and by the count after it.
        before = self._seen_of(self.kept.rows)
        self._count(rows)
        which, windows = self._due(before, final=final)
        return which, windows, dead

    def _places(self, rows: pa.Table) -> np.ndarray:
        places: np.ndarray = groups_of(codes_of(rows, self.shaper.keys)).ranks() + self._seen_of(rows)
        return places

    def _seen_of(self, rows: pa.Table) -> np.ndarray:
        """How many tuples of each row's key there have been."""
        at = self.seen.lookup(rows)
        counts = self.seen.values(SEEN)
        return np.where(at >= 0, counts[at], 0) if len(counts) else np.zeros(len(at), np.int64)

    def _count(self, rows: pa.Table) -> None:
        groups = groups_of(codes_of(rows, self.shaper.keys))
        keys = rows.select(list(self.shaper.keys)).take(pa.array(groups.first))
        counts = self._seen_of(rows)[groups.first] + groups.sizes
        self.seen.upsert(
            keys.append_column(SEEN, pa.array(counts)) if self.shaper.keys else pa.table({SEEN: counts})
        )

    def _due(self, before: np.ndarray, *, final: bool) -> tuple[pa.Table, np.ndarray]:
        rows = self.kept.rows
        places, seen = integers(rows, PLACE), self._seen_of(rows)
        until = None if final else seen
        # Window 0 is the first: none begins before the first tuple of a key.
        which, windows = self.spans.of_times(places, np.maximum(before, self.spans.size - 1), until)
        due = rows.take(pa.array(which))
        self.kept.drop(self.spans.done_times(places, until))
        if final:
            due = self._stamped_at_end(due, windows * self.spans.every + self.spans.size > seen[which])
            # A later stream starts counting afresh.
            self.seen.delete_rows(self.seen.rows())
        return due, windows

    def _stamped_at_end(self, rows: pa.Table, short: np.ndarray) -> pa.Table:
        """The tuples of windows that the end has cut short get its time, if windows take the latest one."""
        if self.node.stamp == "earliest":
            return rows
        stamps, end = integers(rows, STAMP), min(self.order.gate.acted.values)
        moved = np.where(short, np.maximum(stamps, end), stamps)
        return rows.set_column(rows.schema.get_field_index(STAMP), STAMP, pa.array(moved))
