"""Answers as JSON, made piece by piece.

Python's JSON writer does not let other threads run, so a large answer in one piece would stop the whole
service. A piece is some hundred rows, a few milliseconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time

import pyarrow as pa
import pyarrow.compute as pc

from penstock.standing.deadline import check_time
from penstock.standing.errors import LimitError

JsonValue = None | bool | int | float | str
JsonRow = dict[str, JsonValue]
ArrowValue = JsonValue | bytes | date | datetime | time
"""A value of the types that streams may have."""

_PIECE = 500  # rows


def rows_of(table: pa.Table) -> list[JsonRow]:
    """Rows as JSON values: times as ISO text, NaN and infinities as words.

    >>> rows_of(pa.table({"v": [1.5, float("nan")]}))
    [{'v': 1.5}, {'v': 'NaN'}]
    """
    # Column by column: most columns are JSON already, and then no value is looked at here.
    columns = [_json_column(column) for column in table.columns]
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _json_column(column: pa.ChunkedArray) -> list[JsonValue]:
    values: list[JsonValue] = column.to_pylist()
    kind = column.type
    if pa.types.is_floating(kind):
        ready = pc.all(pc.is_finite(column), min_count=0).as_py()
    else:
        ready = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
    return values if ready else [_json_value(value) for value in values]


def _json_value(value: ArrowValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date | datetime | time) else value


def json_array(table: pa.Table) -> Iterator[bytes]:
    """The rows of a table as one JSON array, in pieces.

    >>> b"".join(json_array(pa.table({"v": [1, 2]})))
    b'[{"v": 1}, {"v": 2}]'
    """
    yield b"["
    for first in range(0, table.num_rows, _PIECE):
        check_time()
        text = json.dumps(rows_of(table.slice(first, _PIECE)))
        yield f"{', ' if first else ''}{text[1:-1]}".encode()
    yield b"]"


def json_object(fields: Mapping[str, object], tables: Mapping[str, pa.Table], most: int) -> list[bytes]:
    """An object of plain fields and of tables, in pieces. Raises LimitError beyond so many bytes."""
    pieces, size = [json.dumps(fields).encode()[:-1]], 0
    for name, table in tables.items():
        pieces.append(f", {json.dumps(name)}: ".encode())
        for piece in json_array(table):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise LimitError(
                    "the answer is too long as JSON",
                    expected=f"at most {most >> 20:,} MB",
                    hint="ask for Arrow, select fewer columns, or narrow the query or its window",
                )
    return [*pieces, b"}"]
