"""Boxes that look at one tuple at a time (Aurora, Sect. 2.1): Filter, Map, Drop, Union, GroupBy (A14-A17)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns.columns import concat, empty, integers, to_numpy
from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.engine.arrow.columns.hashing import drop_hash
from penstock.engine.arrow.functions import same_length, table_from, wrong
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer, dead_letters
from penstock.engine.arrow.state import Parts
from penstock.model.boxes import Drop, Filter, Map, Node
from penstock.model.types import SEQ, StreamType, arrow_schema
from penstock.model.user_functions import Function

Pieces = list[tuple[pa.Table, object]]  # rows, and what a function answered for them


class Pass(Parts):
    """Union and GroupBy: tuples pass, those of the first input first."""

    def __init__(self, _node: Node, _inputs: list[StreamType], output: StreamType) -> None:
        super().__init__()
        self.schema = arrow_schema(output.schema)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        return Answer(concat(inputs, self.schema), empty(DEAD_SCHEMA))


class FilterLogic(Parts):
    """Passes what the predicate says is true; null is not true."""

    def __init__(self, node: Filter, inputs: list[StreamType], output: StreamType) -> None:
        super().__init__()
        self.node, self.visible, self.schema = node, list(inputs[0].schema.names), arrow_schema(output.schema)
        self.predicate = None if node.function else compile_arrow(node.predicate, inputs[0].schema)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        if self.predicate is None:
            return self._by_function(inputs[0])
        values, failures = self.predicate(inputs[0].select(self.visible))
        if failures:
            return _split(inputs[0], _true(*to_numpy(values)), failures, self.node.name)
        return Answer(_passing(inputs[0], values), empty(DEAD_SCHEMA))

    def _by_function(self, rows: pa.Table) -> Answer:
        assert self.node.function is not None
        pieces, dead = answered(self.node, self.node.function, rows, self.visible)
        passing = [
            part.filter(pa.array(_booleans(self.node, answer, part.num_rows))) for part, answer in pieces
        ]
        return Answer(concat(passing, self.schema), dead)


def _passing(rows: pa.Table, mask: pa.BooleanArray) -> pa.Table:
    """The rows whose mask is true; all of them are not copied."""
    return rows if mask.true_count == rows.num_rows else rows.filter(mask)


def _true(values: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
    return values.astype(bool) if valid is None else values.astype(bool) & valid


def _booleans(node: Filter, answer: object, length: int) -> np.ndarray:
    array = answer if isinstance(answer, pa.Array | pa.ChunkedArray) else pa.array(answer, from_pandas=True)
    if len(array) != length:
        raise wrong(node, f"{len(array)} values", f"{length}: one boolean for each tuple")
    if not pa.types.is_boolean(array.type) and not pa.types.is_null(array.type):
        raise wrong(node, f"values of type {array.type}", "booleans")
    return _true(*to_numpy(array.cast(pa.bool_())))


def _split(rows: pa.Table, passing: np.ndarray, failures: dict[int, str], box: str) -> Answer:
    if not failures:
        return Answer(rows if passing.all() else rows.filter(pa.array(passing)), empty(DEAD_SCHEMA))
    bad = sorted(failures)
    passing = passing.copy()
    passing[bad] = False
    letters = dead_letters(rows.take(pa.array(bad)), [failures[row] for row in bad], box)
    return Answer(rows.filter(pa.array(passing)), letters)


class MapLogic(Parts):
    """New columns from old ones; the hidden columns stay."""

    def __init__(self, node: Map, inputs: list[StreamType], output: StreamType) -> None:
        super().__init__()
        self.node, self.visible, self.schema = node, list(inputs[0].schema.names), arrow_schema(output.schema)
        self.columns = [(name, compile_arrow(text, inputs[0].schema)) for name, text in node.columns]

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        return self._by_expressions(inputs[0]) if self.node.function is None else self._by_function(inputs[0])

    def _by_expressions(self, rows: pa.Table) -> Answer:
        seen, new = rows.select(self.visible), {}
        failures: dict[int, str] = {}
        for name, evaluate in self.columns:
            new[name], failed = evaluate(seen)
            failures = {**failed, **failures}
        if not failures:
            return Answer(self._shape(rows, new), empty(DEAD_SCHEMA))
        letters = _split(rows, np.ones(rows.num_rows, bool), failures, self.node.name).dead
        return Answer(
            _split(self._shape(rows, new), np.ones(rows.num_rows, bool), failures, self.node.name).out,
            letters,
        )

    def _by_function(self, rows: pa.Table) -> Answer:
        assert self.node.function is not None
        pieces, dead = answered(self.node, self.node.function, rows, self.visible)
        tables = []
        for part, answer in pieces:
            table = table_from(self.node, answer, self.node.produces)
            same_length(self.node, table.num_rows, part.num_rows)
            tables.append(self._shape(part, dict(zip(table.column_names, table.columns, strict=True))))
        return Answer(concat(tables, self.schema), dead)

    def _shape(self, rows: pa.Table, new: dict[str, pa.ChunkedArray]) -> pa.Table:
        columns = [new[name] if name in new else rows.column(name) for name in self.schema.names]
        return pa.Table.from_arrays(columns, schema=self.schema)


def answered(
    node: Filter | Map, function: Function, rows: pa.Table, visible: list[str]
) -> tuple[Pieces, pa.Table]:
    """The answers of the function, in as few pieces as its failures allow, and the dead letters."""
    visible = [name for name in visible if name in node.reads] if node.reads else visible
    pieces: Pieces = []
    letters: list[pa.Table] = []
    _halve(node, function, rows, (visible, pieces, letters))
    return pieces, concat(letters, DEAD_SCHEMA)


def _halve(
    node: Node, function: Function, rows: pa.Table, so_far: tuple[list[str], Pieces, list[pa.Table]]
) -> None:
    visible, pieces, letters = so_far
    if not rows.num_rows:
        return
    try:
        pieces.append((rows, function.call(rows.select(visible))))
    except Exception as error:
        if rows.num_rows == 1:
            reason = f"function {function.name} failed: {type(error).__name__}: {error}"
            letters.append(dead_letters(rows, [reason], node.name))
            return
        # Halving reaches k bad tuples among n with about k * log(n) calls.
        middle = rows.num_rows // 2
        _halve(node, function, rows.slice(0, middle), so_far)
        _halve(node, function, rows.slice(middle), so_far)


class DropLogic(Parts):
    """Drops by a hash of name, seed and `_seq`, so a replay loses the same tuples. `rate` may change."""

    def __init__(self, node: Drop, _inputs: list[StreamType], _output: StreamType) -> None:
        super().__init__()
        self.lot, self.rate = node.lot, node.rate

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        del horizons, final
        bar = round(self.rate * 1_000_000)
        kept = drop_hash(self.lot, integers(inputs[0], SEQ)) % np.uint64(1_000_000) >= bar
        return Answer(inputs[0].filter(pa.array(kept)), empty(DEAD_SCHEMA))
