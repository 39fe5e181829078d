"""Boxes that look at one tuple at a time (Aurora, Sect. 2.1): Filter, Map, Drop, Union, GroupBy, others."""

from __future__ import annotations

import struct

import xxhash

from penstock.engine.local.expressions.evaluate import ExpressionFailure, compile_row
from penstock.engine.local.functions import answered, booleans_of, chosen, rows_of, same_length
from penstock.engine.local.rows import Answer, Row
from penstock.model.boxes import Drop, Filter, Map
from penstock.model.types import SEQ, STAMP, StreamType


class Pass:
    """Union, GroupBy, connection points, views and outputs: tuples pass, those of the first input first."""

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        return Answer([row for rows in inputs for row in rows])


class FilterLogic:
    """Passes what the predicate says is true; null is not true."""

    def __init__(self, node: Filter, inputs: list[StreamType]) -> None:
        self.node, self.schema = node, inputs[0].schema
        self.predicate = None if node.function else compile_row(node.predicate, self.schema)

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        return self._by_function(inputs[0]) if self.predicate is None else self._by_expression(inputs[0])

    def _by_function(self, rows: list[Row]) -> Answer:
        # A function need not cope with an empty table.
        if not rows or self.node.function is None:
            return Answer()
        pieces, dead = answered(self.node, self.node.function, rows, chosen(self.schema, self.node.reads))
        passing = []
        for part, answer in pieces:
            passes = booleans_of(self.node, answer, len(part))
            passing += [row for row, true in zip(part, passes, strict=True) if true]
        return Answer(passing, dead)

    def _by_expression(self, rows: list[Row]) -> Answer:
        answer = Answer()
        for row in rows:
            try:
                if self.predicate is not None and self.predicate(row):
                    answer.out.append(row)
            except ExpressionFailure as failure:
                answer.dead.append((row, str(failure)))
        return answer


class MapLogic:
    """New columns from old ones; the hidden columns stay."""

    def __init__(self, node: Map, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.schema, self.output = node, inputs[0].schema, output.schema
        self.columns = [(name, compile_row(text, self.schema)) for name, text in node.columns]

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        return self._by_expressions(inputs[0]) if self.node.function is None else self._by_function(inputs[0])

    def _by_function(self, rows: list[Row]) -> Answer:
        if not rows or self.node.function is None:
            return Answer()
        pieces, dead = answered(self.node, self.node.function, rows, chosen(self.schema, self.node.reads))
        out = []
        for part, answer in pieces:
            new = rows_of(self.node, answer, self.node.produces)
            same_length(self.node, new, len(part))
            out += [self._shape(row, columns) for row, columns in zip(part, new, strict=True)]
        return Answer(out, dead)

    def _by_expressions(self, rows: list[Row]) -> Answer:
        answer = Answer()
        for row in rows:
            try:
                new = {name: value(row) for name, value in self.columns}
            except ExpressionFailure as failure:
                answer.dead.append((row, str(failure)))
            else:
                answer.out.append(self._shape(row, new))
        return answer

    def _shape(self, row: Row, new: Row) -> Row:
        shaped = {name: new[name] if name in new else row[name] for name in self.output.names}
        return {**shaped, STAMP: row[STAMP], SEQ: row[SEQ]}


class DropLogic:
    """Drops by a hash of name, seed and `_seq`: a replayed train loses the same tuples."""

    def __init__(self, node: Drop) -> None:
        self.lot, self.rate = node.lot, node.rate

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        # Whole millionths, not fractions: all engines must decide alike.
        bar = round(self.rate * 1_000_000)
        return Answer([row for row in inputs[0] if drop_hash(self.lot, row[SEQ]) % 1_000_000 >= bar])


def drop_hash(seed: int, seq: int) -> int:
    """Spark's `xxhash64(cast(seed as bigint), _seq)` as unsigned.

    Spark hashes several values in turn; each hash is the seed of the next.

    >>> drop_hash(0, 1)
    8281773146650252936
    """
    return _hash_long(seq, _hash_long(seed, 42))


def _hash_long(value: int, seed: int) -> int:
    return int(xxhash.xxh64_intdigest(struct.pack("<q", value), seed=seed))
