"""Rows that are lines of text: each becomes a tuple, or is refused with its text and the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from penstock.connectors.contract import Decoded
from penstock.connectors.tables import Refusal, raw_start, refused_rows, with_seq
from penstock.connectors.values import Value, from_json
from penstock.model.formats.time_patterns import TimePattern
from penstock.model.types import Schema, arrow_schema

_REASON = 300
_NEWLINE = 10
RowValues = Sequence[Value]
LineReader = Callable[[str], RowValues]
"""The values of a line; ValueError says why it is no row."""


def count_lines(data: bytes, comment: bytes = b"") -> int:
    r"""Count the lines that are rows: not those that are empty or comments.

    >>> count_lines(b"1,a\n\n2,b\r\n\r\n# no row\n3,c", b"#")
    3
    """
    ends = np.frombuffer(data, np.uint8) == _NEWLINE
    lines = int(np.count_nonzero(ends)) + (0 if data.endswith(b"\n") or not data else 1)
    maybe_blank = data[:1] in (b"\n", b"\r") or (b"\r" in data and b"\n\r" in data)
    if comment or maybe_blank or (ends[1:] & ends[:-1]).any():
        return lines - len(_blank_or(comment).findall(data))
    return lines


@cache
def _blank_or(comment: bytes) -> re.Pattern[bytes]:
    """Finds empty lines and comments, each up to its end."""
    no_row = rb"\r?" + (rb"|" + re.escape(comment) + rb"[^\n]*" if comment else b"")
    return re.compile(rb"^(?:" + no_row + rb")(?:\n|(?<=[^\n])\Z)", re.MULTILINE)


def decode_lines(
    schema: Schema, lines: Sequence[bytes], first: int, read: LineReader, comment: bytes = b""
) -> Decoded:
    """Read line by line. Empty lines and comments are not rows, but they count as lines."""
    rows: list[RowValues] = []
    numbers: list[int] = []
    refused: list[Refusal] = []
    for number, line in enumerate(lines, first):
        stripped = line.removesuffix(b"\r")
        if not stripped or (comment and stripped.startswith(comment)):
            continue
        try:
            # Invalid UTF-8 is refused by the columns that hold it: others of the line may be ignored.
            rows.append(read(stripped.decode("utf-8", "surrogateescape")))
            numbers.append(number)
        except (ValueError, OverflowError, RecursionError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeError) else str(error)
            refused.append((raw_start(stripped), f"malformed: {_bounded(reason)}", number))
    return Decoded(with_seq(_table(schema, rows), np.array(numbers, np.int64)), refused_rows(refused))


def _bounded(reason: str) -> str:
    """A reason quotes the value it is about, which may be long."""
    return reason if len(reason) <= _REASON else f"{reason[:_REASON]}..."


def _table(schema: Schema, rows: Sequence[RowValues]) -> pa.Table:
    types = arrow_schema(schema, hidden=False)
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(types)]
    return pa.Table.from_arrays(columns, schema=types) if columns else types.empty_table()


def json_object_reader(schema: Schema, pattern: TimePattern | None) -> LineReader:
    """Read lines that are JSON objects; a missing member is null."""

    def read(text: str) -> RowValues:
        row = json.loads(text)
        if not isinstance(row, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004 - a row is refused, no caller is at fault
        return [from_json(row.get(c.name), c.type, c.name, pattern) for c in schema]

    return read


def json_row_reader(schema: Schema) -> LineReader:
    """Read lines that are JSON objects, or lists with a value for each column."""

    def read(text: str) -> RowValues:
        row = json.loads(text)
        if isinstance(row, dict):
            return [from_json(row.get(c.name), c.type, c.name) for c in schema]
        if not isinstance(row, list) or len(row) != len(schema.columns):
            raise ValueError(f"expected a dict or {len(schema.columns)} values")
        return [from_json(value, c.type, c.name) for value, c in zip(row, schema, strict=True)]

    return read
