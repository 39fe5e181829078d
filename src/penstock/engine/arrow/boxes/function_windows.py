"""Windows of time that keep their tuples, for user functions (A09), first() and last().

A function wants a window as a table in canonical order, so nothing can be aggregated beforehand.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.boxes.window_rows import Shaper
from penstock.engine.arrow.columns.columns import concat, integers
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer
from penstock.engine.arrow.order import Gate, canonical, merge
from penstock.engine.arrow.state import Buffer, Parts
from penstock.engine.arrow.valves import windows_told
from penstock.engine.arrow.window_spans import Spans
from penstock.engine.contract.valve import Valve
from penstock.model.boxes import Latch, Windowed
from penstock.model.types import STAMP, StreamType


class KeptWindows(Parts):
    """Tuples wait until every window that has them is closed."""

    def __init__(self, node: Windowed | Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.shaper, self.spans = node, Shaper(node, inputs, output), Spans.of(node)
        self.gate, self.kept = Gate(node.name, len(inputs)), Buffer(self.shaper.row_schema)
        self.choosing: tuple[Valve, ...] = ()  # what the ticket says about windows that are not to be told
        super().__init__(acted=self.gate.acted, kept=self.kept)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of tuples."""
        dead = self.keep(inputs)
        rows, windows = self.closing_rows(horizons, final=final)
        if self.choosing:
            told = windows_told(self.choosing, windows)
            rows, windows = rows.filter(pa.array(told)), windows[told]
        if self.node.function is not None:
            return Answer(self.shaper.apply_function(rows, windows), dead)
        partials, distincts = self._aggregated(rows, windows)
        answer = self.shaper.emit(self.shaper.counted(partials, distincts), self.spans.edges)
        return Answer(answer.out, concat([dead, answer.dead], DEAD_SCHEMA))

    def keep(self, inputs: list[pa.Table]) -> pa.Table:
        """Keep the tuples that are in time and inside a window; the dead letters of the others."""
        in_time, late = self.gate.admit(inputs)
        rows, failed = self.shaper.measure(canonical(merge(in_time, self.shaper.tuple_schema)))
        self.kept.append(rows.filter(pa.array(self.spans.inside(integers(rows, STAMP)))))
        return concat([late, failed], DEAD_SCHEMA)

    def closing_rows(self, horizons: tuple[int, ...], *, final: bool) -> tuple[pa.Table, np.ndarray]:
        """The tuples of the closing windows, in canonical order, and the window of each."""
        since = min(self.gate.acted.values)
        until = min(self.gate.act(horizons))
        bound = None if final else until
        which, _ = self.spans.of_times(integers(self.kept.rows, STAMP), since, bound)
        # Sort only what a closing window needs: the other tuples stay where they are.
        needed = canonical(self.kept.rows.take(pa.array(pa.array(which).unique())))
        which, windows = self.spans.of_times(integers(needed, STAMP), since, bound)
        self.kept.drop(self.spans.done_times(integers(self.kept.rows, STAMP), bound))
        return needed.take(pa.array(which)), windows

    def closing(self, horizons: tuple[int, ...], *, final: bool) -> tuple[pa.Table, dict[int, pa.Table]]:
        """As `TimeWindows.closing`."""
        return self._aggregated(*self.closing_rows(horizons, final=final))

    def _aggregated(self, rows: pa.Table, windows: np.ndarray) -> tuple[pa.Table, dict[int, pa.Table]]:
        return self.shaper.partial(rows, windows), self.shaper.distincts(rows, windows)
