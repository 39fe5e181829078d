"""ColumnLatch in the reference engine: the user's object itself, fed with tables in order of time."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.local.functions import call, rows_of, table_of, wrong
from penstock.engine.local.rows import Answer, Row, canonical
from penstock.model.boxes import ColumnLatch
from penstock.model.checks.horizons import MIN
from penstock.model.expressions.values import micros
from penstock.model.types import SEQ, STAMP, StreamType
from penstock.model.user_functions import Function

FOREVER = 2**63 - 1


class ColumnLatchLogic:
    """Tuples wait until all inputs are past them; the object holds the state."""

    def __init__(self, node: ColumnLatch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.inputs, self.output = node, inputs, output
        self.logic = call(node, node.logic)
        self.waiting: list[list[Row]] = [[] for _ in inputs]
        self.acted = MIN

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        answer = Answer()
        for waiting, rows in zip(self.waiting, inputs, strict=True):
            answer.dead += [(row, self._late(row)) for row in rows if row[STAMP] < self.acted]
            waiting += [row for row in rows if row[STAMP] >= self.acted]
        self.acted = max(self.acted, min(horizons))
        until = FOREVER if final else self.acted
        # Before the first promise nothing can be released: something smaller may still come.
        if until != MIN:
            tables = [self._release(i, until) for i in range(len(inputs))]
            self._give(self._process(tables, until, final=final), answer)
        return answer

    def _late(self, row: Row) -> str:
        return (
            f"late: timestamp {row[STAMP]} us is behind the horizon {self.acted} us that the box has acted on"
        )

    def _release(self, i: int, until: int) -> pa.Table:
        schema = self.inputs[i].schema
        ready: list[Row] = [row for row in self.waiting[i] if row[STAMP] < until]
        self.waiting[i] = [row for row in self.waiting[i] if row[STAMP] >= until]
        ready.sort(key=lambda row: canonical(row, i, schema.names))
        return table_of(ready, schema)

    def _process(self, tables: list[pa.Table], until: int, *, final: bool) -> object:
        process = Function(self.logic.process, f"{self.node.logic.name}.process")
        return call(self.node, process, tables, until, final)

    def _give(self, given: object, answer: Answer) -> None:
        stamp = str(self.output.timestamp)
        rows = rows_of(self.node, given, self.node.produces)
        nulls = sum(row[stamp] is None for row in rows)
        if nulls:
            raise wrong(self.node, f"{nulls} rows without '{stamp}'", "a time in each row")
        answer.out += [{**row, STAMP: micros(row[stamp]), SEQ: 0} for row in rows]
