"""The output rows of a closed window: keys, timestamp, then aggregates or what the function gives.

Partials of windows travel as tables: `_window` (its number), the keys, the stamp (`_ts`: the earliest or
latest; `_input`, `_seq`: the least), then the columns of the aggregates.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns import aggregates as agg
from penstock.engine.arrow.columns.columns import concat, empty, integers, to_arrow
from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.engine.arrow.columns.grouping import Groups, codes_of, groups_of
from penstock.engine.arrow.functions import call, table_from
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer, dead_letters
from penstock.engine.arrow.order import INPUT, canonical, merged_schema
from penstock.model.boxes import Latch, Windowed
from penstock.model.expressions.expression import Aggregation, split_aggregates
from penstock.model.types import SEQ, STAMP, Column, Schema, StreamType, arrow_schema

WINDOW, VALUE = "_window", "_value"


class Shaper:
    """The aggregates (or the function) of one windowed box."""

    def __init__(self, node: Windowed | Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.inputs, self.output, self.keys = node, inputs, output, inputs[0].keys
        seen = merged_schema(inputs)
        self.visible = seen if len(inputs) == 1 else Schema((*seen.columns, Column("input", "INT")))
        self._aggregations = [split_aggregates(text, self.visible, self.keys) for _, text in node.aggregates]
        self.slots = agg.slots_of([c for a in self._aggregations for c in a.calls], self.visible)
        self._by_call = {(s.call.function, s.call.argument): s for s in self.slots}
        self._key_columns = tuple(c for c in seen if c.name in self.keys)
        self._measures = [
            (name, compile_arrow(text, self.visible))
            for name, text in {
                s.measure: s.call.argument for s in self.slots if s.measure and s.call.argument
            }.items()
        ]
        self._results = [compile_arrow(a.result, self._result_schema(a)) for a in self._aggregations]
        self._schemas()

    def _result_schema(self, aggregation: Aggregation) -> Schema:
        placeholders = [Column(f"a{i}", c.type) for i, c in enumerate(aggregation.calls)]
        return Schema(self._key_columns).with_columns(placeholders)

    def _schemas(self) -> None:
        keys = [arrow_schema(Schema(self._key_columns), hidden=False).field(key) for key in self.keys]
        window, stamp = (
            pa.field(WINDOW, pa.int64()),
            [pa.field(STAMP, pa.int64()), pa.field(INPUT, pa.int32()), pa.field(SEQ, pa.int64())],
        )
        slots = list(agg.partial_schema(self.slots))
        self.partial_schema = pa.schema([window, *keys, *stamp, *slots])
        self.lifetime_schema = pa.schema([*keys, *slots])
        self.distinct = {
            s.number: agg.distinct_type(s) for s in self.slots if s.call.function == "count_distinct"
        }
        self.distinct_schemas = {
            number: pa.schema([window, *keys, pa.field(VALUE, type_)])
            for number, type_ in self.distinct.items()
        }
        measured = {s.measure: s.argument for s in self.slots if s.measure and s.argument}
        types = arrow_schema(Schema(tuple(Column(n, t) for n, t in measured.items())), hidden=False)
        self.tuple_schema = pa.schema(
            [*arrow_schema(merged_schema(self.inputs)), pa.field(INPUT, pa.int32())]
        )
        self.row_schema = pa.schema([*self.tuple_schema, *types])

    @property
    def needs_order(self) -> bool:
        """first() and last() can only be read off tuples that stand in canonical order."""
        return any(slot.call.function in ("first", "last") for slot in self.slots)

    def measure(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Rows (with `_input`) and the aggregates' arguments; those that fail become dead letters."""
        seen = rows if len(self.inputs) == 1 else rows.append_column("input", rows.column(INPUT))
        seen, measured = seen.select(list(self.visible.names)), []
        failures: dict[int, str] = {}
        for name, evaluate in self._measures:
            values, failed = evaluate(seen)
            failures = {**failed, **failures}
            measured.append((name, values))
        for name, values in measured:
            rows = rows.append_column(name, values)
        return self._without(rows, failures)

    def _without(self, rows: pa.Table, failures: dict[int, str]) -> tuple[pa.Table, pa.Table]:
        if not failures:
            return rows, empty(DEAD_SCHEMA)
        bad = np.zeros(rows.num_rows, bool)
        bad[list(failures)] = True
        reasons = [failures[row] for row in sorted(failures)]
        return rows.filter(pa.array(~bad)), dead_letters(rows.filter(pa.array(bad)), reasons, self.node.name)

    def partial(self, rows: pa.Table, windows: np.ndarray) -> pa.Table:
        """One partial for each window and key of measured rows (in canonical order if `needs_order`)."""
        rows = rows.append_column(WINDOW, pa.array(windows))
        groups = groups_of(codes_of(rows, (WINDOW, *self.keys)))
        return self._reduced(rows, agg.lift(self.slots, rows), groups)

    def merge(self, partials: pa.Table) -> pa.Table:
        """One partial for each window and key out of several."""
        groups = groups_of(codes_of(partials, (WINDOW, *self.keys)))
        if len(groups.starts) == partials.num_rows:
            return partials
        return self._reduced(partials, agg.unpack(self.slots, partials), groups)

    def _reduced(self, rows: pa.Table, columns: dict[str, agg.Values], groups: Groups) -> pa.Table:
        head = rows.select([WINDOW, *self.keys]).take(pa.array(groups.first))
        stamp = [
            pa.array(values, field.type)
            for values, field in zip(self._stamps(rows, groups), self._stamp_fields(), strict=True)
        ]
        arrays = [*head.columns, *stamp, *agg.pack(self.slots, agg.reduce(self.slots, columns, groups))]
        return pa.Table.from_arrays(arrays, schema=self.partial_schema)

    def _stamp_fields(self) -> list[pa.Field]:
        return [self.partial_schema.field(name) for name in (STAMP, INPUT, SEQ)]

    def _stamps(self, rows: pa.Table, groups: Groups) -> list[np.ndarray]:
        """(_ts, _input, _seq) of each group: the earliest or latest time, the least input and number."""
        # The least input and number do not depend on the order in which partials are merged.
        reduce = np.minimum if self.node.stamp == "earliest" else np.maximum
        chosen = {STAMP: reduce, INPUT: np.minimum, SEQ: np.minimum}
        return [
            each.reduceat(integers(rows, name).astype(np.int64)[groups.order], groups.starts)
            for name, each in chosen.items()
        ]

    def distincts(self, rows: pa.Table, windows: np.ndarray) -> dict[int, pa.Table]:
        """For each count(distinct), by its number: the different (window, keys, value), nulls left out."""
        return {number: self._distinct(rows, windows, number) for number in self.distinct}

    def _distinct(self, rows: pa.Table, windows: np.ndarray, number: int) -> pa.Table:
        arrays = [
            pa.array(windows),
            *(rows.column(key) for key in self.keys),
            rows.column(self.slots[number].measure),
        ]
        table = pa.table(arrays, schema=self.distinct_schemas[number])
        table = table.filter(table.column(VALUE).is_valid())
        first = groups_of(codes_of(table, tuple(table.column_names))).first
        # Sorted, to keep the order of arrival.
        return table.take(pa.array(np.sort(first)))

    def counted(self, partials: pa.Table, distincts: dict[int, pa.Table]) -> pa.Table:
        """The partials with the number of different values filled in."""
        names = (WINDOW, *self.keys)
        for number, table in distincts.items():
            # Numbered together, so that a window and key has the same code in both tables.
            both = concat([partials.select(names), table.select(names)], partials.select(names).schema)
            codes = codes_of(both, names, dense=True)
            counts = np.bincount(codes[partials.num_rows :], minlength=codes.max(initial=-1) + 1)
            index = partials.column_names.index(f"s{number}")
            partials = partials.set_column(
                index, partials.field(index), pa.array(counts[codes[: partials.num_rows]])
            )
        return partials

    def emit(self, partials: pa.Table, edges: tuple[int, int] | None) -> Answer:
        """Output rows of closed windows. `edges`: (step, size) of time windows."""
        if not partials.num_rows:
            return Answer(empty(arrow_schema(self.output.schema)), empty(DEAD_SCHEMA))
        columns, failures = self._calls(partials, edges)
        results = []
        for aggregation, evaluate in zip(self._aggregations, self._results, strict=True):
            values, failed = evaluate(self._placeholders(partials, aggregation, columns))
            results.append(values)
            failures = {**failed, **failures}
        head = self._head(partials)
        names, hidden = [name for name, _ in self.node.aggregates], head.select([STAMP, SEQ])
        visible = dict(zip([*head.column_names[:-2], *names], [*head.columns[:-2], *results], strict=True))
        ordered = [*(visible[name] for name in self.output.schema.names), *hidden.columns]
        out = pa.Table.from_arrays(ordered, schema=arrow_schema(self.output.schema))
        return self._answer(out, head, failures)

    def _answer(self, out: pa.Table, head: pa.Table, failures: dict[int, str]) -> Answer:
        if not failures:
            return Answer(canonical(out), empty(DEAD_SCHEMA))
        bad = np.zeros(out.num_rows, bool)
        bad[list(failures)] = True
        letters = dead_letters(
            head.filter(pa.array(bad)), [failures[row] for row in sorted(failures)], self.node.name
        )
        return Answer(canonical(out.filter(pa.array(~bad))), letters)

    def _calls(
        self, partials: pa.Table, edges: tuple[int, int] | None
    ) -> tuple[dict[int, pa.Array], dict[int, str]]:
        step, size = edges or (0, 0)
        start = integers(partials, WINDOW) * step
        unpacked, values = agg.unpack(self.slots, partials), {}
        failures: dict[int, str] = {}
        for slot in self.slots:
            values[slot.number], failed = agg.finish(
                slot, unpacked, {"window_start": start, "window_end": start + size}
            )
            failures = {**failed, **failures}
        return values, failures

    def _placeholders(
        self, partials: pa.Table, aggregation: Aggregation, columns: dict[int, pa.Array]
    ) -> pa.Table:
        arrays = {key.name: partials.column(key.name) for key in self._key_columns}
        arrays |= {
            f"a{i}": columns[self._by_call[c.function, c.argument].number]
            for i, c in enumerate(aggregation.calls)
        }
        # An aggregate without any call (a key alone) still needs the number of rows.
        return pa.table(arrays or {"a": pa.nulls(partials.num_rows, pa.int64())})

    def _head(self, rows: pa.Table) -> pa.Table:
        """Keys, timestamp column, hidden columns."""
        ts = integers(rows, STAMP)
        table = rows.select(list(self.keys))
        if self.output.timestamp is not None:
            table = table.append_column(
                self.output.timestamp, to_arrow(ts, None, pa.timestamp("us", tz="UTC"))
            )
        return table.append_column(STAMP, pa.array(ts)).append_column(SEQ, rows.column(SEQ))

    def apply_function(self, rows: pa.Table, windows: np.ndarray) -> pa.Table:
        """The rows that the box's function gives, called once for each window and key, in canonical order."""
        rows = rows.append_column(WINDOW, pa.array(windows))
        groups = groups_of(codes_of(rows, (WINDOW, *self.keys)))
        stamps = pa.table(dict(zip((STAMP, INPUT, SEQ), self._stamps(rows, groups), strict=True)))
        ordered = rows.take(pa.array(groups.order))
        tables = [
            self._of_window(ordered.slice(start, size), stamps.slice(number, 1))
            for number, (start, size) in enumerate(
                zip(groups.starts.tolist(), groups.sizes.tolist(), strict=True)
            )
        ]
        return canonical(concat(tables, arrow_schema(self.output.schema)))

    def _of_window(self, rows: pa.Table, stamp: pa.Table) -> pa.Table:
        assert self.node.function is not None
        table = rows.select(list(self.visible.names))
        answer = table_from(self.node, call(self.node, self.node.function, table), self.node.produces)
        for key in self.keys:
            stamp = stamp.append_column(key, rows.column(key).slice(0, 1))
        # All rows of a window share its stamp: repeat the one row.
        head = self._head(stamp.take(pa.array(np.zeros(answer.num_rows, np.int64))))
        both = {
            **dict(zip(answer.column_names, answer.columns, strict=True)),
            **dict(zip(head.column_names, head.columns, strict=True)),
        }
        schema = arrow_schema(self.output.schema)
        return pa.Table.from_arrays([both[name] for name in schema.names], schema=schema)
