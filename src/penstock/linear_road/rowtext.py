"""Rows out of text and parquet files that may hold dirt.

Idea: a numba loop turns a block of text into whole numbers and marks the lines that are not 15 of them, so that a
foreign file of millions of rows is read in seconds and still tells which line is bad. Nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.linear_road.inputs import Input, InputError
from penstock.linear_road.rows import COLUMNS

_BLOCK = 1 << 25
_FIELDS = len(COLUMNS)


@dataclass(frozen=True)
class Block:
    """Some lines of one file: their numbers (from 1), values [line, column], and which are 15 whole numbers."""

    file: Path
    first_line: int
    values: np.ndarray
    whole: np.ndarray
    text: bytes | None
    starts: np.ndarray

    def raw(self, row: int) -> str:
        """The line as it stands in the file."""
        if self.text is None:
            return ",".join(map(str, self.values[row].tolist())) if self.whole[row] else "a row with nulls"
        line = self.text[self.starts[row] : self.starts[row + 1]]
        return line.decode("utf-8", "replace").rstrip("\r\n")


def read_blocks(source: Input) -> Iterator[Block]:
    """All rows of an input, in the order of its files."""
    for file in source.files:
        yield from _parquet_blocks(file) if source.format == "parquet" else _text_blocks(file)


def _text_blocks(file: Path) -> Iterator[Block]:
    line, rest = 1, b""
    with file.open("rb") as stream:
        while piece := stream.read(_BLOCK):
            head, newline, tail = (rest + piece).rpartition(b"\n")
            rest = tail
            if newline:
                block = _parse(file, line, head + newline)
                line += len(block.values)
                yield block
    if rest:
        yield _parse(file, line, rest + b"\n")


def _parse(file: Path, line: int, text: bytes) -> Block:
    buffer = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    starts = np.concatenate([[0], ends + 1])
    values = np.zeros((len(ends), _FIELDS), np.int64)
    whole = np.zeros(len(ends), np.bool_)
    _parse_lines(buffer, starts, values, whole)
    return Block(file, line, values, whole, text, starts)


@numba.njit(cache=True)
def _parse_lines(buffer: Any, starts: Any, values: Any, whole: Any) -> None:
    for row in range(len(whole)):
        whole[row] = _parse_line(buffer, starts[row], starts[row + 1] - 1, values[row])


@numba.njit(cache=True)
def _parse_line(buffer: Any, start: int, end: int, values: Any) -> bool:
    """Parse one line of comma-separated whole numbers; False if it is anything else."""
    field, at = 0, start
    while end > start and buffer[end - 1] == 13:
        end -= 1
    while field < _FIELDS:
        while at < end and buffer[at] == 32:
            at += 1
        negative = at < end and buffer[at] == 45
        at += 1 if negative else 0
        digits, number = 0, 0
        while at < end and 48 <= buffer[at] <= 57:
            number = min(number * 10 + (buffer[at] - 48), 1 << 40)
            digits += 1
            at += 1
        while at < end and buffer[at] == 32:
            at += 1
        if digits == 0:
            return False
        values[field] = -number if negative else number
        field += 1
        if at == end:
            break
        if buffer[at] != 44:
            return False
        at += 1
    # A comma after the fifteenth number leaves `at` at the end as well, hence the look back.
    return field == _FIELDS and at == end and buffer[end - 1] != 44


def _parquet_blocks(file: Path) -> Iterator[Block]:
    try:
        parquet = pq.ParquetFile(file)
    except pa.ArrowException as error:
        raise InputError(f"Input {file} is not a whole parquet file: {error}.") from error
    missing = [name for name in COLUMNS if name not in parquet.schema_arrow.names]
    if missing:
        raise InputError(f"Input {file} has no column {missing[0]}; expected {', '.join(COLUMNS)}.")
    line = 1
    for batch in parquet.iter_batches(batch_size=500_000, columns=list(COLUMNS)):
        values, whole = _numbers(file, batch)
        yield Block(file, line, values, whole, None, np.empty(0, np.int64))
        line += len(values)


def _numbers(file: Path, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    values = np.empty((batch.num_rows, _FIELDS), np.int64)
    whole = np.ones(batch.num_rows, np.bool_)
    for i, name in enumerate(COLUMNS):
        column = batch.column(name)
        if not pa.types.is_integer(column.type):
            raise InputError(f"Column {name} of {file} is {column.type}; expected int32.")
        whole &= np.asarray(column.is_valid())
        values[:, i] = column.fill_null(0)
    return values, whole
