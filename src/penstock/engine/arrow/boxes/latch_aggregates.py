"""Latch with aggregates: like Tumble, but each answer covers all tuples so far (Aurora, Sect. 2.1; A12)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.boxes.count_windows import CountWindows
from penstock.engine.arrow.boxes.function_windows import KeptWindows
from penstock.engine.arrow.boxes.window_rows import VALUE, WINDOW, Shaper
from penstock.engine.arrow.boxes.windows import TimeWindows
from penstock.engine.arrow.columns.aggregates import pack, partial_schema, reduce, unpack
from penstock.engine.arrow.columns.columns import concat
from penstock.engine.arrow.columns.grouping import codes_of, groups_of
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer
from penstock.engine.arrow.state import KeyedTable, Parts
from penstock.model.boxes import Latch
from penstock.model.types import StreamType


class Lifetime(Parts):
    """Partials of all windows of a key so far, merged window after window."""

    def __init__(self, shaper: Shaper) -> None:
        self.shaper = shaper
        self.totals = KeyedTable(shaper.lifetime_schema, shaper.keys)
        self.distincts = {
            number: KeyedTable(schema.remove(0), (*shaper.keys, VALUE))
            for number, schema in shaper.distinct_schemas.items()
        }
        super().__init__(totals=self.totals, **{f"distinct{n}": table for n, table in self.distincts.items()})

    def cover(self, partials: pa.Table, distincts: dict[int, pa.Table]) -> pa.Table:
        """The partials of closed windows, extended to all earlier windows of their key."""
        partials = partials.take(pc.sort_indices(partials.column(WINDOW)))
        rounds = groups_of(codes_of(partials, self.shaper.keys)).ranks()
        of_values = {n: self._rounds_of(table, partials, rounds) for n, table in distincts.items()}
        covered = []
        # One round for each window that a key closes in this train: as a rule there is one.
        for turn in range(int(rounds.max(initial=-1)) + 1):
            now = partials.filter(pa.array(rounds == turn))
            values = {n: table.filter(pa.array(of_values[n] == turn)) for n, table in distincts.items()}
            covered.append(self._covered(self._with_new(now, values)))
        return concat(covered, self.shaper.partial_schema)

    def _rounds_of(self, values: pa.Table, partials: pa.Table, rounds: np.ndarray) -> np.ndarray:
        """The round of the window and key of each distinct value."""
        names = (WINDOW, *self.shaper.keys)
        both = pa.concat_tables([partials.select(names), values.select(names)])
        codes = codes_of(both, names, dense=True)
        by_code = np.zeros(len(codes) + 1, np.int64)
        by_code[codes[: partials.num_rows]] = rounds
        of_values: np.ndarray = by_code[codes[partials.num_rows :]]
        return of_values

    def _with_new(self, partials: pa.Table, values: dict[int, pa.Table]) -> pa.Table:
        """Count only values that no window of the key has had before."""
        new = {n: table.filter(pa.array(self.distincts[n].lookup(table) < 0)) for n, table in values.items()}
        for number, table in new.items():
            self.distincts[number].upsert(table)
        return self.shaper.counted(partials, new)

    def _covered(self, partials: pa.Table) -> pa.Table:
        slots, at = self.shaper.slots, self.totals.lookup(partials)
        names = self.shaper.lifetime_schema.names
        both = concat([self.totals.take(at[at >= 0]), partials.select(names)], self.shaper.lifetime_schema)
        # A total has the number of its partial and stands in front of it: first() keeps the older value.
        groups = groups_of(np.concatenate([np.flatnonzero(at >= 0), np.arange(partials.num_rows)]))
        columns = pack(slots, reduce(slots, unpack(slots, both), groups))
        head = partials.select(
            [name for name in partials.column_names if name not in partial_schema(slots).names]
        )
        totals = pa.Table.from_arrays([*head.columns, *columns], schema=self.shaper.partial_schema)
        self.totals.upsert(totals.select(names))
        return totals


class LatchTimes(Parts):
    """Aggregates over all tuples so far, given at the end of each window of time that has any."""

    def __init__(self, node: Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.shaper = Shaper(node, inputs, output)
        self.windows = (KeptWindows if self.shaper.needs_order else TimeWindows)(node, inputs, output)
        self.lifetime = Lifetime(self.shaper)
        super().__init__(windows=self.windows, lifetime=self.lifetime)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of tuples."""
        dead = self.windows.keep(inputs)
        partials = self.lifetime.cover(*self.windows.closing(horizons, final=final))
        answer = self.shaper.emit(partials, self.windows.spans.edges)
        return Answer(answer.out, concat([dead, answer.dead], DEAD_SCHEMA))


class LatchCounts(Parts):
    """Aggregates over all tuples so far, given after every so many tuples of a key."""

    def __init__(self, node: Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.windows = CountWindows(node, inputs, output)
        self.lifetime = Lifetime(self.windows.shaper)
        super().__init__(windows=self.windows, lifetime=self.lifetime)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of tuples."""
        rows, windows, dead = self.windows.complete(inputs, horizons, final=final)
        shaper = self.windows.shaper
        partials = self.lifetime.cover(shaper.partial(rows, windows), shaper.distincts(rows, windows))
        answer = shaper.emit(partials, None)
        return Answer(answer.out, concat([dead, answer.dead], DEAD_SCHEMA))
