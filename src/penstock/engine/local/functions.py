"""The way into a user's function and back: rows become Arrow, its answer becomes rows again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.engine.local.rows import Row, Value
from penstock.model.boxes import Node
from penstock.model.errors import NetworkError
from penstock.model.types import Schema, arrow_schema
from penstock.model.user_functions import Function


def table_of(rows: Iterable[Mapping[str, Value]], schema: Schema) -> pa.Table:
    """Rows as an Arrow table of the visible columns."""
    kept = [{name: row[name] for name in schema.names} for row in rows]
    return pa.Table.from_pylist(kept, schema=arrow_schema(schema, hidden=False))


def chosen(schema: Schema, reads: tuple[str, ...]) -> Schema:
    """The columns that a function over a batch asked for: all, if it named none."""
    return Schema(tuple(column for column in schema if column.name in reads)) if reads else schema


def call(node: Node, function: Function, *arguments: object) -> Any:
    """Call a user's function; if it fails, the error names the box and the function."""
    try:
        return function.call(*arguments)
    except Exception as error:
        raise NetworkError(
            f"function {function.name} failed: {error}",
            box=node.name,
            where=node.where,
            hint="a function with state or windows must cope with what it gets",
        ) from error


def answered(
    node: Node, function: Function, rows: list[Row], schema: Schema
) -> tuple[list[tuple[list[Row], object]], list[tuple[Row, str]]]:
    """The answers of a stateless function: to all rows at once, or one by one if it raises."""
    try:
        return [(rows, function.call(table_of(rows, schema)))], []
    except Exception as error:
        if len(rows) == 1:
            return [], [(rows[0], f"function {function.name} failed: {type(error).__name__}: {error}")]
    parts = [answered(node, function, [row], schema) for row in rows]
    return [piece for pieces, _ in parts for piece in pieces], [
        letter for _, dead in parts for letter in dead
    ]


def rows_of(node: Node, answer: object, schema: Schema) -> list[Row]:
    """The answer of a function (a table, batch or dict of columns) as rows of the declared columns."""
    table = pa.table(answer) if isinstance(answer, dict) else answer
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise wrong(node, type(answer).__name__, "a table, a record batch or a dict of columns")
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise wrong(node, f"columns {', '.join(table.column_names)}", f"columns {', '.join(schema.names)}")
    try:
        rows: list[Row] = (
            table.select(list(schema.names)).cast(arrow_schema(schema, hidden=False)).to_pylist()
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise wrong(node, f"columns that do not fit: {error}", schema.ddl()) from error
    return rows


def booleans_of(node: Node, answer: Any, length: int) -> list[bool | None]:
    """The answer of a predicate function: one boolean for each tuple."""
    values = answer.to_pylist() if hasattr(answer, "to_pylist") else list(answer)
    if len(values) != length:
        raise wrong(node, f"{len(values)} values", f"{length}: one boolean for each tuple")
    return values


def same_length(node: Node, rows: list[Row], length: int) -> None:
    """A function that makes no timestamps must answer each tuple with one row, or they would be lost."""
    if len(rows) != length:
        raise wrong(node, f"{len(rows)} rows", f"{length}: one row for each tuple")


def wrong(node: Node, found: str, expected: str) -> NetworkError:
    """The function's answer is not what the box declares."""
    return NetworkError(
        "its function gave something else than declared",
        box=node.name,
        where=node.where,
        found=found,
        expected=expected,
    )
