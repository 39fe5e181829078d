"""Read an input as blocks of whole seconds; every row is judged, none is lost.

Idea: three steps, each a generator over blocks of rows. Files become raw blocks (text or columns). A raw
block is judged as soon as the row after it is known, because only that row shows a leap in time. Judged rows
are cut where a second ends. A block records where in the input it started, so that a long step can resume
there after a crash.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Bools, Bytes, Codes, Int32s, Int64s
from penstock.linear_road.rows.fields import COLUMNS
from penstock.linear_road.rows.inputs import Input
from penstock.linear_road.rows.refusals import EXPECTED, REASONS, Seen, refuse, refuse_alone

CHUNK_BYTES = 32 << 20
CHUNK_ROWS = 500_000
_SHOWN = 80
_ArrayT = TypeVar("_ArrayT", Codes, Int32s)


@dataclass(frozen=True)
class Rows:
    """A block of rows: numbers, their original text (None from parquet), and the verdict on each.

    `origin` is where each row starts in the whole input: bytes for csv, rows for parquet, counted over all
    files. `following` is where the row after this block starts.
    """

    values: Int32s
    whole: Bools
    origin: Int64s
    following: int
    text: Bytes | None = None
    starts: Int64s | None = None
    reasons: Codes | None = None
    seconds: Int32s | None = None

    def __len__(self) -> int:
        return len(self.values)

    def cut(self, begin: int, end: int) -> Rows:
        """The rows begin..end-1."""
        text = starts = None
        if self.text is not None and self.starts is not None:
            text = self.text[self.starts[begin] : self.starts[end]]
            starts = self.starts[begin : end + 1] - self.starts[begin]
        return Rows(
            self.values[begin:end],
            self.whole[begin:end],
            self.origin[begin:end],
            int(self.origin[end]) if end < len(self) else self.following,
            text,
            starts,
            None if self.reasons is None else self.reasons[begin:end],
            None if self.seconds is None else self.seconds[begin:end],
        )

    def rendered(self) -> tuple[Bytes, Int64s]:
        """The rows as text, and where each starts: the original bytes, or the numbers written out."""
        if self.text is None or self.starts is None:
            return csv_rows.render(self.values)
        return self.text, self.starts

    def raw(self, i: int) -> str:
        """One row as it stands in its file."""
        if self.text is None or self.starts is None:
            return ",".join(map(str, self.values[i].tolist())) if self.whole[i] else "a row with empty values"
        return (
            self.text[self.starts[i] : self.starts[i + 1]].tobytes().decode("utf-8", "replace").rstrip("\r\n")
        )

    def accepted(self) -> Int32s:
        """The values of the rows that keep to the format."""
        return self.values if self.reasons is None else self.values[self.reasons == 0]


def seconds_of(source: Input, *, origin: int = 0, last: int = -1) -> Iterator[Rows]:
    """Read an input as blocks of whole seconds in order.

    `origin` and `last` resume where an earlier reading stopped. Every row of the input is in exactly one
    block. Refused rows carry their reason and belong to the second they came in.
    """
    # The last Time is memory enough to resume: blocks end with a second, so no report of an earlier block can
    # be repeated.
    seen = Seen(last)
    held: Rows | None = None
    undecided: Rows | None = None
    for raw in _raw_blocks(source, origin):
        undecided = _join(undecided, raw)
        held, undecided = _decide(held, undecided, seen, final=False)
        # Hold the last second back: the next block may bring more of it.
        begin = _last_second_starts(held)
        if begin:
            yield held.cut(0, begin)
            held = held.cut(begin, len(held))
    if undecided is not None:
        held, _ = _decide(held, undecided, seen, final=True)
    if held is not None and len(held):
        yield held


@dataclass(frozen=True)
class RefusedRow:
    """One refused row: where it stands, why, and its text."""

    file: str
    line: int
    why: str
    raw: str


def refused_rows(source: Input, rows: Rows, most: int) -> list[RefusedRow]:
    """The first refused rows of a block, up to a limit."""
    assert rows.reasons is not None
    return [_refused(source, rows, int(i)) for i in np.flatnonzero(rows.reasons)[:most]]


def _refused(source: Input, rows: Rows, i: int) -> RefusedRow:
    assert rows.reasons is not None
    file, line = _file_and_line(source, int(rows.origin[i]))
    return RefusedRow(file.name, line, REASONS[int(rows.reasons[i])], rows.raw(i))


def refused_error(source: Input, rows: Rows, hint: str) -> InputError:
    """The error about the first refused row of a block: where, why, what was found and what was expected."""
    assert rows.reasons is not None
    (row,) = refused_rows(source, rows, 1)
    code = int(rows.reasons[rows.reasons > 0][0])
    return InputError(
        f"input {source.path}: row {row.line} of {row.file} breaks the format: {row.why}",
        found=repr(row.raw[:_SHOWN]),
        expected=EXPECTED.get(code, ""),
        hint=hint,
    )


def _decide(held: Rows | None, undecided: Rows, seen: Seen, *, final: bool) -> tuple[Rows, Rows]:
    """Judge what can be judged now.

    That is all rows before the last one that can be "the next row", or all rows if nothing follows.
    """
    alone = refuse_alone(undecided.values, undecided.whole)
    # The last row that is valid by itself cannot be judged yet: its next row is not known.
    count = len(undecided) if final else int(np.max(np.flatnonzero(alone == 0), initial=0))
    reasons, seconds = refuse(undecided.values, alone, count, seen)
    decided = replace(undecided.cut(0, count), reasons=reasons, seconds=seconds)
    joined = _join(held, decided)
    return _with_first_second(joined, final=final), undecided.cut(count, len(undecided))


def _with_first_second(rows: Rows, *, final: bool) -> Rows:
    """Put refused rows before the first accepted one into the first second; they have none of their own.

    If no row of an input is accepted, that is second 0.
    """
    assert rows.seconds is not None
    if not len(rows) or rows.seconds[0] >= 0 or (rows.seconds[-1] < 0 and not final):
        return rows
    accepted = rows.seconds[rows.seconds >= 0]
    first = accepted[0] if len(accepted) else 0
    return replace(rows, seconds=np.where(rows.seconds < 0, first, rows.seconds).astype(np.int32))


def _last_second_starts(rows: Rows) -> int:
    assert rows.seconds is not None
    if not len(rows) or rows.seconds[-1] < 0:
        return 0
    return int(np.searchsorted(rows.seconds, rows.seconds[-1]))


def _join(first: Rows | None, second: Rows) -> Rows:
    if first is None or not len(first):
        return second
    if not len(second):
        return first
    text = starts = None
    if first.text is not None and second.text is not None:
        assert first.starts is not None
        assert second.starts is not None
        text = np.concatenate([first.text, second.text])
        # `starts` has one more entry than there are rows: the end of the text.
        starts = np.concatenate([first.starts[:-1], second.starts + first.starts[-1]])
    return Rows(
        np.concatenate([first.values, second.values]),
        np.concatenate([first.whole, second.whole]),
        np.concatenate([first.origin, second.origin]),
        second.following,
        text,
        starts,
        _join_arrays(first.reasons, second.reasons),
        _join_arrays(first.seconds, second.seconds),
    )


def _join_arrays(first: _ArrayT | None, second: _ArrayT | None) -> _ArrayT | None:
    return None if first is None or second is None else np.concatenate([first, second])


def _raw_blocks(source: Input, origin: int) -> Iterator[Rows]:
    blocks = _csv_blocks if source.format == "csv" else _parquet_blocks
    base = 0
    for file in source.files:
        size = _size(source, file)
        if base + size > origin:
            yield from blocks(file, base, max(0, origin - base))
        base += size


def size_of(source: Input) -> int:
    """The length of an input in the units of `Rows.origin`, for progress bars."""
    return sum(_size(source, file) for file in source.files)


def _size(source: Input, file: Path) -> int:
    return file.stat().st_size if source.format == "csv" else int(_open_parquet(file).metadata.num_rows)


def _csv_blocks(file: Path, base: int, skip: int) -> Iterator[Rows]:
    position, tail = skip, b""
    with file.open("rb") as stream:
        stream.seek(skip)
        while chunk := stream.read(CHUNK_BYTES):
            data = tail + chunk
            end = data.rfind(b"\n") + 1
            tail = data[end:]
            if end:
                yield _parsed(data[:end], base + position, base + position + end)
                position += end
    if tail:
        # A last line without a newline is a row like any other.
        yield _parsed(tail + b"\n", base + position, base + position + len(tail))


def _parsed(data: bytes, at: int, following: int) -> Rows:
    text = np.frombuffer(data, np.uint8)
    values, whole, starts = csv_rows.parse(text)
    return Rows(values, whole, starts[:-1] + at, following, text, starts)


def _parquet_blocks(file: Path, base: int, skip: int) -> Iterator[Rows]:
    at = 0
    for batch in _open_parquet(file).iter_batches(CHUNK_ROWS, columns=list(COLUMNS)):
        values, whole = _matrix(batch, file)
        # Batches cannot be skipped unread, so those before the origin are read and dropped.
        begin = max(0, skip - at)
        if begin < len(values):
            origin = np.arange(base + at + begin, base + at + len(values), dtype=np.int64)
            yield Rows(values[begin:], whole[begin:], origin, base + at + len(values))
        at += len(values)


def _open_parquet(file: Path) -> pq.ParquetFile:
    try:
        parquet = pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"input {file} cannot be read as parquet: {_first_line(error)}") from error
    lacking = [name for name in COLUMNS if name not in parquet.schema_arrow.names]
    if lacking:
        raise InputError(f"input {file} lacks the column {lacking[0]}", expected=", ".join(COLUMNS))
    return parquet


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _matrix(batch: pa.RecordBatch, file: Path) -> tuple[Int32s, Bools]:
    """The numbers of a batch, and which rows have all fifteen."""
    values = np.empty((batch.num_rows, len(COLUMNS)), np.int32)
    whole = np.ones(batch.num_rows, np.bool_)
    for j, name in enumerate(COLUMNS):
        column = batch.column(name)
        whole &= column.is_valid().to_numpy(zero_copy_only=False)
        try:
            values[:, j] = column.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        except pa.ArrowException as error:
            raise InputError(
                f"input {file} has a column {name} that is not whole numbers: {_first_line(error)}"
            ) from error
    values[~whole] = -1
    return values, whole


def lines_of(source: Input, origins: Int64s) -> list[tuple[str, int]]:
    """The file name and the 1-based line (row, for parquet) of each offset in an input, in one pass."""
    names_and_lines: dict[int, tuple[str, int]] = {}
    base = 0
    for file in source.files:
        size = _size(source, file)
        inside = np.unique(origins[(origins >= base) & (origins < base + size)]) - base
        lines = inside + 1 if source.format == "parquet" else _line_numbers(file, inside)
        names_and_lines |= {
            int(base + at): (file.name, int(line)) for at, line in zip(inside, lines, strict=True)
        }
        base += size
    return [names_and_lines[origin] for origin in origins.tolist()]


def _line_numbers(file: Path, offsets: Int64s) -> Int64s:
    """The 1-based lines that start at these bytes of a file, given in order."""
    if not len(offsets):
        return offsets
    # Cut at regular distances, so that no piece is large.
    cuts = np.union1d(offsets, np.arange(0, int(offsets[-1]) + 1, CHUNK_BYTES))
    text = np.memmap(file, np.uint8, mode="r")
    pieces = [int(np.count_nonzero(text[a:b] == ord("\n"))) for a, b in itertools.pairwise(cuts.tolist())]
    lines = np.concatenate([[1], np.cumsum(pieces, dtype=np.int64) + 1])
    return np.asarray(lines[np.searchsorted(cuts, offsets)])


def _file_and_line(source: Input, origin: int) -> tuple[Path, int]:
    """The file and the 1-based line (row, for parquet) of an offset in the whole input."""
    for file in source.files:
        size = _size(source, file)
        if origin < size:
            return file, origin + 1 if source.format == "parquet" else _lines_before(file, origin) + 1
        origin -= size
    raise AssertionError(origin)


def _lines_before(file: Path, end: int) -> int:
    lines = 0
    with file.open("rb") as stream:
        while end > 0 and (chunk := stream.read(min(CHUNK_BYTES, end))):
            lines += chunk.count(b"\n")
            end -= len(chunk)
    return lines
