"""Calls a user's function: its answer has the declared columns, or is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.model.boxes import Node
from penstock.model.errors import NetworkError, PenstockError, one_line, raised_at
from penstock.model.types import Schema, arrow_schema
from penstock.model.user_functions import Function


def call(node: Node, function: Function, *arguments: object) -> Any:
    """Call a user's function; if it fails, the error names the box and the function."""
    try:
        return function.call(*arguments)
    except PenstockError:
        raise
    except Exception as error:
        raise function_error(node, function, error) from error


def function_error(node: Node, function: Function, error: Exception) -> NetworkError:
    """A user's function failed: where in the user's code, and with what."""
    where = raised_at(error)
    return NetworkError(
        f"function {function.name} failed: {one_line(error)}",
        box=node.name,
        where=node.where,
        found=f"{type(error).__name__} at {where}" if where.file else type(error).__name__,
        hint="a function that keeps state or works on windows must cope with what it gets",
    )


def table_from(node: Node, answer: object, schema: Schema) -> pa.Table:
    """The answer of a function (a table, batch or dict of columns) with exactly the declared columns."""
    table = pa.table(answer) if isinstance(answer, dict) else answer
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise wrong(node, type(answer).__name__, "a table, a record batch or a dict of columns")
    if any(name not in table.column_names for name in schema.names):
        raise wrong(node, f"columns {', '.join(table.column_names)}", f"columns {', '.join(schema.names)}")
    wanted, declared = arrow_schema(schema, hidden=False), table.select(list(schema.names))
    try:
        return declared if declared.schema.equals(wanted) else declared.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise wrong(node, f"columns that do not fit: {error}", schema.ddl()) from error


def same_length(node: Node, rows: int, tuples: int) -> None:
    """A function that makes no timestamps must answer each tuple with one row, or they would be lost."""
    if rows != tuples:
        raise wrong(node, f"{rows} rows", f"{tuples}: one row for each tuple")


def wrong(node: Node, found: str, expected: str) -> NetworkError:
    """The function's answer is not what the box declares."""
    return NetworkError(
        "its function gave something else than declared",
        box=node.name,
        where=node.where,
        found=found,
        expected=expected,
    )
