"""Tumble and Slide over time: aggregates of closed windows (Aurora, Sect. 2.1; A09-A11).

A window closes when no tuple can enter it any more.

Time is cut into panes (the greatest common divisor of step and size; for Tumble a pane is the window), each
tuple falls in one pane, and the state holds one partial for each pane and key. A window is the merge of its
panes, so a tuple is aggregated once however many windows it lies in.

An engine that can aggregate by itself calls `merge` with partials of its own instead of `process`'s
`partial`: columns `_window` (pane: floor(_ts / pane), BIGINT), the keys, `_ts` (the smallest; latest: the
largest), `_input` (INT, 0), `_seq` (the smallest), then those of `aggregates.py`. Values of count(distinct)
go in a table for each such call: `_window`, keys, `_value`, not null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.boxes.function_windows import KeptWindows
from penstock.engine.arrow.boxes.window_rows import VALUE, WINDOW, Shaper
from penstock.engine.arrow.columns.columns import concat, integers
from penstock.engine.arrow.columns.grouping import codes_of, groups_of
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer, Logic
from penstock.engine.arrow.order import Gate, canonical, merge
from penstock.engine.arrow.state import KeyedTable, Parts
from penstock.engine.arrow.valves import windows_told
from penstock.engine.arrow.window_spans import Spans
from penstock.engine.contract.valve import Valve
from penstock.model.boxes import Latch, Windowed
from penstock.model.types import STAMP, StreamType


def time_windows(node: Windowed, inputs: list[StreamType], output: StreamType) -> Logic:
    """Windows with first() or last() keep their tuples; all others keep partials."""
    if node.function is not None or Shaper(node, inputs, output).needs_order:
        return KeptWindows(node, inputs, output)
    return TimeWindows(node, inputs, output)


class Panes(Parts):
    """Partials by pane and key, and the values seen by each count(distinct)."""

    def __init__(self, shaper: Shaper, spans: Spans) -> None:
        self.shaper, self.spans = shaper, spans
        self.table = KeyedTable(shaper.partial_schema, (WINDOW, *shaper.keys))
        self.distincts = {
            number: KeyedTable(schema, (WINDOW, *shaper.keys, VALUE))
            for number, schema in shaper.distinct_schemas.items()
        }
        super().__init__(panes=self.table, **{f"distinct{n}": table for n, table in self.distincts.items()})

    def add(self, partials: pa.Table, distincts: dict[int, pa.Table]) -> None:
        """Merge partials of a train into the state."""
        at = self.table.lookup(partials)
        # Only the panes that the train touches are read and written, so the delta stays small.
        known = self.table.take(at[at >= 0])
        self.table.upsert(self.shaper.merge(concat([known, partials], self.shaper.partial_schema)))
        for number, values in distincts.items():
            new = self.distincts[number].lookup(values) < 0
            self.distincts[number].upsert(values.filter(pa.array(new)))

    def close(self, since: int, until: int | None) -> tuple[pa.Table, dict[int, pa.Table]]:
        """Partials and distinct values of windows with since < end <= until (None: all); done panes go."""
        partials = self._expanded(self.table, since, until)
        distincts = {number: self._expanded(table, since, until) for number, table in self.distincts.items()}
        for table in (self.table, *self.distincts.values()):
            rows = table.rows()
            table.delete_rows(rows[self.spans.done(table.values(WINDOW)[rows], until)])
        return self.shaper.merge(partials), {n: _unique(table) for n, table in distincts.items()}

    def _expanded(self, table: KeyedTable, since: int, until: int | None) -> pa.Table:
        """Each pane once for each of its windows that closes now, `_window` being the window."""
        rows = table.rows()
        which, windows = self.spans.of_panes(table.values(WINDOW)[rows], since, until)
        panes = table.take(rows[which])
        return panes.set_column(0, panes.field(0), pa.array(windows))


def _unique(table: pa.Table) -> pa.Table:
    first = groups_of(codes_of(table, tuple(table.column_names))).first
    return table if len(first) == table.num_rows else table.take(pa.array(np.sort(first)))


class TimeWindows(Parts):
    """Aggregates over windows of time, aligned to 1970 UTC."""

    def __init__(self, node: Windowed | Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.shaper, self.spans = node, Shaper(node, inputs, output), Spans.of(node)
        self.gate, self.panes = Gate(node.name, len(inputs)), Panes(self.shaper, self.spans)
        self.choosing: tuple[Valve, ...] = ()  # what the ticket says about windows that are not to be told
        super().__init__(acted=self.gate.acted, panes=self.panes)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of tuples."""
        dead = self.keep(inputs)
        answer = self.close(horizons, final=final)
        return Answer(answer.out, concat([dead, answer.dead], DEAD_SCHEMA))

    def keep(self, inputs: list[pa.Table]) -> pa.Table:
        """Take tuples into the state; the dead letters of the others."""
        partials, distincts, dead = self.partial(inputs)
        self.merge(partials, distincts)
        return dead

    def partial(self, inputs: list[pa.Table]) -> tuple[pa.Table, dict[int, pa.Table], pa.Table]:
        """Partials of these tuples by pane and key, the values of each count(distinct), and dead letters."""
        in_time, late = self.gate.admit(inputs)
        rows = canonical(merge(in_time, self.shaper.tuple_schema))
        rows, failed = self.shaper.measure(rows)
        rows = rows.filter(pa.array(self.spans.inside(integers(rows, STAMP))))
        panes = self.spans.pane(integers(rows, STAMP))
        partials, distincts = self.shaper.partial(rows, panes), self.shaper.distincts(rows, panes)
        return partials, distincts, concat([late, failed], DEAD_SCHEMA)

    def merge(self, partials: pa.Table, distincts: dict[int, pa.Table] | None = None) -> None:
        """Merge partials into the state; there may be several for one pane and key."""
        self.panes.add(self.shaper.merge(partials), distincts or {})

    def close(self, horizons: tuple[int, ...], *, final: bool) -> Answer:
        """The rows of all windows that close at these horizons."""
        partials, distincts = self.closing(horizons, final=final)
        if self.choosing:
            told = windows_told(self.choosing, integers(partials, WINDOW))
            partials = partials.filter(pa.array(told))
        return self.shaper.emit(self.shaper.counted(partials, distincts), self.spans.edges)

    def closing(self, horizons: tuple[int, ...], *, final: bool) -> tuple[pa.Table, dict[int, pa.Table]]:
        """Their partials and distinct values."""
        since = min(self.gate.acted.values)
        until = min(self.gate.act(horizons))
        return self.panes.close(since, None if final else until)
