"""Flat files to columns: the only part of the validator that looks at bytes.

Idea: what counts as "15 integers" must be exact and fast, and SQL casts are neither (they round 1.5 and
accept 1e3). So a small compiled loop reads whole blocks of lines into columns and reports which lines it
could not read. An integer is an optional sign and digits, with blanks allowed around it. What exceeds 32 bits
reads as `TOO_LARGE`, which no range of the format contains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.arrays import Bools, Bytes, Int32s, Int64s, Ints
from penstock.linear_road.rows.fields import COLUMNS
from penstock.linear_road.rows.inputs import Input

BLOCK_BYTES = 48 << 20
BATCH_ROWS = 1 << 20
TOO_LARGE = -(1 << 31)
_LARGEST = 1 << 40
"""Reading stops to count digits here: no field is that large, and its thousandths must fit 64 bits."""
_NEWLINE, _COMMA, _BLANK, _TAB, _RETURN, _PLUS, _MINUS, _POINT, _ZERO, _NINE = (
    10,
    44,
    32,
    9,
    13,
    43,
    45,
    46,
    48,
    57,
)


@dataclass(frozen=True)
class Position:
    """Between two rows of an input: file number, bytes (csv) or rows (parquet) before, next line."""

    file: int = 0
    offset: int = 0
    line: int = 1


@dataclass(frozen=True)
class Chunk:
    """Some rows of one file: `columns[field, row]`, and which rows were readable."""

    file: Path
    first_line: int
    columns: Int32s
    readable: Bools
    block: bytes | None = None
    starts: Int64s | None = None
    following: Position = Position()
    """Where to continue after this chunk."""

    def raw(self, row: int) -> str:
        """The row as it stood in the file."""
        if self.block is None or self.starts is None:
            return ",".join(str(value) for value in self.columns[:, row])
        line = self.block[self.starts[row] : self.starts[row + 1]]
        return line.decode("utf-8", "replace").rstrip("\r\n")


BEGINNING = Position()


def chunks(source: Input, begin: Position = BEGINNING) -> Iterator[Chunk]:
    """All rows of an input in order from a position on, about a million rows at a time."""
    read = _parquet_chunks if source.format == "parquet" else _csv_chunks
    for number in range(begin.file, len(source.files)):
        position = begin if number == begin.file else Position(number)
        yield from read(source.files[number], position)


def _csv_chunks(file: Path, position: Position) -> Iterator[Chunk]:
    for block in blocks(file, begin=position.offset):
        columns, readable, starts = read_rows(block)
        line, position = position.line, _after(position, len(block), len(readable))
        yield Chunk(file, line, columns, readable, block, starts, position)


def _after(position: Position, length: int, rows: int) -> Position:
    return Position(position.file, position.offset + length, position.line + rows)


def _parquet_chunks(file: Path, position: Position) -> Iterator[Chunk]:
    try:
        for batch in _batches(pq.ParquetFile(file), position.offset):
            columns, readable = _columns(pa.table(batch).select(COLUMNS))
            line, position = position.line, _after(position, len(readable), len(readable))
            yield Chunk(file, line, columns, readable, following=position)
    except (pa.ArrowException, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"input {file} cannot be read as parquet with the columns {COLUMNS}: {reason}"
        ) from error


def _batches(file: pq.ParquetFile, skip: int) -> Iterator[pa.RecordBatch]:
    """The rows of a file after the first `skip`, in batches."""
    for batch in file.iter_batches(BATCH_ROWS, columns=list(COLUMNS)):
        if skip < len(batch):
            yield batch.slice(skip)
        skip = max(0, skip - len(batch))


def _columns(table: pa.Table) -> tuple[Int32s, Bools]:
    readable = np.ones(len(table), dtype=bool)
    columns = np.empty((len(COLUMNS), len(table)), dtype=np.int32)
    for field, name in enumerate(COLUMNS):
        values = table[name].combine_chunks()
        readable &= values.is_valid().to_numpy(zero_copy_only=False)
        # A null has already made its row unreadable, so any number will do in its place.
        columns[field] = values.fill_null(TOO_LARGE).cast(pa.int32()).to_numpy(zero_copy_only=False)
    return columns, readable


def blocks(file: Path, size: int | None = None, begin: int = 0) -> Iterator[bytes]:
    """A file from a byte on, in blocks that end at line ends."""
    size = size or BLOCK_BYTES
    try:
        with file.open("rb") as stream:
            stream.seek(begin)
            rest = b""
            while data := stream.read(size):
                cut = data.rfind(b"\n") + 1
                if cut:
                    yield rest + data[:cut]
                    rest = data[cut:]
                else:
                    # The line is longer than a block: it goes on in the next one.
                    rest += data
            if rest:
                yield rest
    except OSError as error:
        raise InputError(f"file {file} cannot be read: {error.strerror}") from error


def read_rows(block: bytes) -> tuple[Int32s, Bools, Int64s]:
    """Input rows of a block: columns (int32), which lines were readable, where lines start.

    >>> columns, readable, _ = read_rows(b"0,1,2,3,4,5,6,7,8,9,10,11,12,13,-1" + bytes([10]) + b"0,1.5")
    >>> readable.tolist(), columns[:3, 0].tolist(), columns[14, 0].item()
    ([True, False], [0, 1, 2], -1)
    """
    data, lines = _lines(block)
    # Field first: each field is then one stretch of memory, which Arrow takes without a copy.
    values = np.empty((len(COLUMNS), lines), dtype=np.int32)
    counts, starts = _numbers(data, values, decimals=0)
    return values, counts == len(COLUMNS), starts


def read_thousandths(block: bytes, width: int) -> tuple[Int64s, Bytes, Int64s]:
    """Read lines of up to `width` numbers: values in thousandths (int64), counts, where lines start.

    A count of 0 means unreadable. Anything beyond the third decimal counts as a whole thousandth, so that
    rounding never makes a late or wrong answer right.

    >>> values, counts, _ = read_thousandths(b"1,2.0000,2.0005" + bytes([10]) + b"x", 6)
    >>> values[:3, 0].tolist(), counts.tolist()
    ([1000, 2000, 2001], [3, 0])
    """
    data, lines = _lines(block)
    values = np.empty((width, lines), dtype=np.int64)
    counts, starts = _numbers(data, values, decimals=3)
    return values, counts, starts


def _lines(block: bytes) -> tuple[Bytes, int]:
    """A block as bytes, and how many lines it has; the last one need not end."""
    data = np.frombuffer(block, dtype=np.uint8)
    return data, int(np.count_nonzero(data == _NEWLINE)) + (not block.endswith(b"\n"))


def _numbers(data: Bytes, values: Ints, decimals: int) -> tuple[Bytes, Int64s]:
    """Fill values[field, line]; returns how many numbers each line has, and where it starts."""
    lines = values.shape[1]
    counts = np.zeros(lines, dtype=np.uint8)
    starts = np.empty(lines + 1, dtype=np.int64)
    _parse(data, values, counts, starts, decimals)
    return counts, starts


@numba.njit(cache=True, nogil=True, inline="always")
def _digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@numba.njit(cache=True, nogil=True)
def _parse(  # noqa: C901, PLR0912 - one loop for speed
    data: Bytes, values: Ints, counts: Bytes, starts: Int64s, decimals: int
) -> None:
    """Fill values[field, line] and counts[line]; a malformed line keeps count 0.

    One compiled loop: split into functions it takes a quarter longer, even if they are inlined.
    """
    width, end, i = values.shape[0], len(data), 0
    for line in range(values.shape[1]):
        starts[line] = i
        field, good = 0, True
        while good:
            while i < end and (data[i] == _BLANK or data[i] == _TAB):
                i += 1
            negative = i < end and data[i] == _MINUS
            if i < end and (data[i] == _MINUS or data[i] == _PLUS):
                i += 1
            number, first = 0, i
            while i < end and _digit(data[i]):
                # Skip further digits: their value no longer matters, and adding them would overflow.
                if number < _LARGEST:
                    number = number * 10 + data[i] - _ZERO
                i += 1
            good = i > first
            # Thousandths stay whole numbers: floats would not compare exactly with a limit.
            if decimals > 0:
                fraction, beyond = 0, 0
                if i < end and data[i] == _POINT:
                    i += 1
                    while i < end and _digit(data[i]):
                        if fraction < decimals:
                            number = number * 10 + data[i] - _ZERO
                            fraction += 1
                        elif data[i] != _ZERO:
                            beyond = 1
                        i += 1
                while fraction < decimals:
                    number *= 10
                    fraction += 1
                # Round up: cutting off would make an answer that is a hair too late look punctual.
                number += beyond
            # TOO_LARGE has no positive counterpart in 32 bits, so it must not be negated.
            elif number >= 1 << 31:
                number, negative = TOO_LARGE, False
            while i < end and (data[i] == _BLANK or data[i] == _TAB or data[i] == _RETURN):
                i += 1
            # Check before storing: a line may have more fields than fit, and compiled code checks no bounds.
            good = good and field < width
            if good:
                values[field, line] = -number if negative else number
                field += 1
                if i >= end or data[i] == _NEWLINE:
                    counts[line] = field
                    break
                good = data[i] == _COMMA
                i += 1
        # Skip the rest of a malformed line; a good line has been read to its end.
        while i < end and data[i] != _NEWLINE:
            i += 1
        i += 1
    # A last line without a newline ends where the block ends.
    starts[values.shape[1]] = min(i, end)
