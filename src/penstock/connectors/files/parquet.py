"""Parquet: whole files where they fit into a train, otherwise runs of row groups.

A train never mixes whole files and row groups, so an engine may read whole files in its own way. A file whose
name Spark would take for a pattern or a URI is always read by its row groups.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.contract import (
    Decoded,
    Input,
    Location,
    Position,
    RefusedInput,
    Slice,
    SliceChangedError,
    SliceGoneError,
    Taken,
    TicketPart,
    Unread,
    Waiting,
)
from penstock.connectors.files.discovery.backlog import Backlog
from penstock.connectors.files.discovery.settling import Signature
from penstock.connectors.files.discovery.source_files import SourceFiles
from penstock.connectors.files.parquet_decode import decode_groups, decode_table
from penstock.connectors.files.parquet_footer import (
    groups_within,
    has_nanoseconds,
    time_extent,
    times_in_range,
    unpacked_bytes,
)
from penstock.connectors.paths import is_plain, is_resource_shortage, native_file
from penstock.connectors.tables import first_seq, location_in
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.types import Schema, arrow_schema
from penstock.store.durable import checksum
from penstock.store.ipc import from_ipc, ipc_bytes

READER = {"coerce_int96_timestamp_unit": "us"}
_ROW_BYTES = 20  # the assumed size of a row
_LETTERS = 1000  # at most so many files are refused or reported in a train
_MAGIC = b"PAR1"


@dataclass(frozen=True)
class ParquetPosition(Position):
    """The file to read next, and the row group and the row in it.

    `reported`: how many changed files were reported.
    """

    file: int = 0
    group: int = 0
    row: int = 0
    reported: int = 0


@dataclass(frozen=True)
class _ParquetSlice(Slice):
    """A file, or a part of it, as it was when the ticket was written: `size` and `mtime`, in nanoseconds."""

    path: str
    file: int
    rows: int
    size: int = -1
    mtime: int = -1

    def check(self) -> None:
        try:
            signature = Signature.of(os.stat(self.path))  # noqa: PTH116 - the path may be any text
        except FileNotFoundError:
            raise SliceGoneError(self.path, tuples=self.rows) from None
        if self.size >= 0 and signature != Signature(self.size, self.mtime):
            reason = "the file was changed after it was seen and before it was read"
            raise SliceChangedError(self.path, reason, tuples=self.rows)

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        del source, data  # the footer says so
        return self.rows

    def location(self, seq: int) -> Location | None:
        return location_in(self.path, self.file, seq)

    def weight(self) -> int:
        return self.rows * _ROW_BYTES


@dataclass(frozen=True)
class RowGroups(_ParquetSlice):
    """The row groups from `first` up to `last` (not included) of a file.

    `row` is the place of their first row.
    """

    first: int = 0
    last: int = 0
    row: int = 0

    def read(self) -> bytes:
        with self._opened() as file:
            return ipc_bytes(file.read_row_groups(list(range(self.first, self.last))))

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        return decode_table(from_ipc(data), source.schema, first_seq(self.file, self.row))

    def counted_tuples(self, source: Source) -> tuple[Decoded, int]:
        with self._opened() as file:
            groups = range(self.first, self.last)
            return decode_groups(file, groups, source.schema, first_seq(self.file, self.row)), self.rows

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        self.check()
        with native_file(self.path) as opened, pq.ParquetFile(opened, **READER) as file:
            yield file
        self.check()


@dataclass(frozen=True)
class WholeParquet(_ParquetSlice):
    """A whole file.

    `least` and `latest`: the range of its times in microseconds. `nulls`: how many rows have no time, or None
    if the footer does not say. `in_range`: the footer shows that every time and date is of the years 1 to
    9999.
    """

    least: int | None = None
    latest: int | None = None
    nulls: int | None = None
    in_range: bool = True

    def as_groups(self) -> RowGroups:
        """The same rows, to be read by their row groups."""
        with native_file(self.path) as opened:
            last = pq.read_metadata(opened).num_row_groups
        return RowGroups(self.path, self.file, self.rows, self.size, self.mtime, 0, last, 0)

    def read(self) -> bytes:
        self.check()
        data = Path(self.path).read_bytes()
        self.check()
        return data

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        with pq.ParquetFile(pa.BufferReader(data), **READER) as file:
            groups = range(file.num_row_groups)
            return decode_groups(file, groups, source.schema, first_seq(self.file))

    def unread(self) -> Unread:
        return Unread(first_seq(self.file), self.rows, self.latest)

    def whole_file(self) -> str | None:
        return self.path


@dataclass
class _Cut:
    """A train under construction."""

    at: ParquetPosition
    left: int
    bytes_left: int
    slices: list[WholeParquet | RowGroups] = field(default_factory=list)
    refused: list[RefusedInput] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.left > 0 and self.bytes_left > 0 and len(self.refused) < _LETTERS

    def takes_whole(self, path: str, rows: int, footer: pq.FileMetaData) -> bool:
        """Whether the file can be read whole, by Spark's own reader: it tells files apart by their names."""
        mixed = any(isinstance(s, RowGroups) or _same_name(s.path, path) for s in self.slices)
        fits = rows <= self.left and unpacked_bytes(footer) <= self.bytes_left
        return self.at.group == 0 and fits and not mixed and _spark_reads(path, footer)

    def next_file(self) -> None:
        self.at = ParquetPosition(self.at.file + 1, reported=self.at.reported)


class ParquetFiles(Input[ParquetPosition]):
    """Cuts Parquet files by their footers. `max_bytes` are unpacked ones.

    A file whose footer cannot be read or does not match is refused.
    """

    def __init__(self, source: Source, directory: Path) -> None:
        self._source = source
        self._files = SourceFiles(source, directory, self._judge, has_footer)
        self._log = self._files.log
        self._backlog = Backlog(self._log)
        self._opened_rows = (-1, 0)  # the file opened last, and its rows

    def take(self, position: ParquetPosition | None, limit: int) -> Taken:
        cut = _Cut(position or ParquetPosition(), limit, self.max_bytes)
        self._log.check(cut.at.file)
        first, start = cut.at.file, self._place(cut.at)
        self._fill(cut, limit)
        if cut.at.file > first and not cut.slices and not cut.refused:
            self._fill(cut, limit)  # the files that were known have changed, and come again as new ones
        self._log.flush()
        rows = sum(s.rows for s in cut.slices)
        self._backlog.read(start, self._place(cut.at), rows)
        return Taken(
            cut.slices,
            cut.at,
            rows,
            refused=cut.refused,
            more=cut.at.file < len(self._log.known) or cut.at.reported < len(self._log.changes),
            waiting=self._files.waiting,
            arrived=self._log.arrived({s.file for s in cut.slices}),
            arrivals=self._log.arrivals((s.file, s.rows) for s in cut.slices),
        )

    def waiting(self, position: ParquetPosition | None) -> Waiting:
        at = position or ParquetPosition()
        self._files.look(at.file)
        return self._backlog.waiting(at.file, self._place(at) - self._log.bytes_before(at.file))

    def _place(self, at: ParquetPosition) -> int:
        """The bytes before a position; inside a file, by the share of its rows."""
        number, rows = self._opened_rows
        share = at.row / rows if at.row and number == at.file and rows else 0.0
        return self._backlog.bytes_before(
            at.file, int(share * self._log.known[at.file].signature.size) if share else 0
        )

    def here(self, piece: TicketPart) -> TicketPart:
        return replace(piece, path=self._log.path(piece.file)) if isinstance(piece, _ParquetSlice) else piece

    def _fill(self, cut: _Cut, limit: int) -> None:
        if cut.at.file >= len(self._log.known):
            self._files.look(cut.at.file)
        self._report(cut)
        while cut.open and cut.at.file < len(self._log.known) and self._add(cut, limit):
            pass

    def _report(self, cut: _Cut) -> None:
        """Dead letters about files that have changed since they were read."""
        reported = cut.at.reported
        for change in self._log.changes[reported : reported + _LETTERS]:
            cut.refused.append(self._log.letter(change.file, change.reason, change.tuples))
        cut.at = replace(cut.at, reported=reported + len(cut.refused))

    def _add(self, cut: _Cut, limit: int) -> bool:
        """Take the next piece or refuse the file. False: it belongs to the next train."""
        number = cut.at.file
        try:
            footer = self._opened(cut.at)
        except _ReadLater:
            cut.next_file()
            return True
        except RefusedFileError as error:
            cut.refused.append(self._log.letter(number, error.problem, error.tuples))
            if not cut.at.group:
                self._log.was_refused(number)
            cut.next_file()
            return True
        path, rows = self._log.path(number), footer.num_rows - cut.at.row
        if cut.takes_whole(path, rows, footer):
            extent = time_extent(footer, self._source.timestamp)
            in_range = times_in_range(footer, self._source.schema)
            cut.slices.append(WholeParquet(path, number, rows, *self._signature(number), *extent, in_range))
            cut.left, cut.bytes_left = cut.left - rows, cut.bytes_left - unpacked_bytes(footer)
            cut.next_file()
            return True
        fits_later = rows <= limit and unpacked_bytes(footer) <= self.max_bytes and _spark_reads(path, footer)
        if cut.slices and (cut.at.group or fits_later or isinstance(cut.slices[-1], WholeParquet)):
            return False  # it fits whole into the next train, or must not be mixed with whole files
        self._add_groups(cut, path, footer)
        return True

    def _add_groups(self, cut: _Cut, path: str, footer: pq.FileMetaData) -> None:
        at = cut.at
        last, count, size = groups_within(footer, at.group, cut.left, cut.bytes_left)
        signature = self._signature(at.file)
        cut.slices.append(RowGroups(path, at.file, count, *signature, at.group, last, at.row))
        cut.left, cut.bytes_left = cut.left - count, cut.bytes_left - size
        cut.at = replace(at, group=last, row=at.row + count)
        if last >= footer.num_row_groups:
            cut.next_file()

    def _opened(self, at: ParquetPosition) -> pq.FileMetaData:
        """The footer of the file, if it is still the one that was seen."""
        path = self._log.path(at.file)
        begun = f"; its first {at.row:,} rows were read, the rest is lost" if at.row else ""
        try:
            signature = Signature.of(os.stat(path))  # noqa: PTH116 - the path may be any text
        except FileNotFoundError:
            raise RefusedFileError(f"the file was deleted before it was read{begun}") from None
        except OSError as error:
            if is_resource_shortage(error):
                raise
            raise RefusedFileError(f"the file cannot be read: {error.strerror}") from None
        content = _content(path)
        if signature != self._log.signatures[at.file]:
            self._changed(at, signature)
        if at.group and content != self._log.content.get(at.file, content):
            # Also if the change is noted already: a process may have died before its letter was in a ticket.
            raise RefusedFileError(f"the file was changed while it was read{begun}")
        footer = read_footer(path, self._source.schema)
        self._opened_rows = at.file, footer.num_rows
        self._log.was_read(at.file, content)
        return footer

    def _changed(self, at: ParquetPosition, signature: Signature) -> None:
        name = self._log.known[at.file].name
        if not at.group:
            if self._log.current.get(name) == at.file:
                self._files.read_anew(name)
            raise _ReadLater
        self._log.has_changed(at.file, signature)

    def _signature(self, number: int) -> tuple[int, int]:
        signature = self._log.signatures[number]
        return signature.size, signature.mtime

    def _judge(self, number: int) -> tuple[str, int]:
        """Whether the file has another footer than the one that was read, and how many rows are not read."""
        path = self._log.path(number)
        if _content(path) == self._log.content.get(number):
            return "", 0
        reason = "the file was changed after it was read; what it holds now is not read"
        try:
            return reason, rows_now(path)
        except (pa.ArrowInvalid, OSError) as error:
            if is_resource_shortage(error):
                raise
            return reason, 1


class RefusedFileError(PenstockError):
    """A file that cannot be read, and how many tuples that concerns; one, if they cannot be counted."""

    def __init__(self, problem: str, tuples: int = 1) -> None:
        super().__init__(problem)
        self.tuples = tuples


class _ReadLater(Exception):  # noqa: N818 - no error
    """The file has changed before any of it was read: it comes again as a new file."""


def has_footer(path: str) -> bool:
    """Whether the file ends as a whole Parquet file does."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path may be any text
            return file.seek(0, os.SEEK_END) > 2 * len(_MAGIC) and _end_of(file) is not None
    except OSError:
        return False


def _end_of(file: BinaryIO) -> bytes | None:
    """The bytes of the footer, if there is one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] not in (_MAGIC, b"PARE") or length + 12 > size:
        return None
    file.seek(size - 8 - length)
    return file.read(length)


def _content(path: str) -> int:
    """A checksum of the footer: it names every part of the file with its place and extent."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path may be any text
            return checksum(_end_of(file) or b"")
    except OSError as error:
        if is_resource_shortage(error):
            raise
        return 0


def rows_now(path: str) -> int:
    """The number of rows that a file's footer shows at this moment."""
    with native_file(path) as opened:
        return int(pq.read_metadata(opened).num_rows)


def read_footer(path: str, schema: Schema) -> pq.FileMetaData:
    """The footer of a file that has the source's columns; RefusedFileError says what is wrong."""
    try:
        with native_file(path) as opened, pq.ParquetFile(opened) as file:
            columns, footer = file.schema_arrow, file.metadata
    except Exception as error:  # a broken footer may raise anything
        if is_resource_shortage(error):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise RefusedFileError(f"not a readable Parquet file: {reason}") from None
    rows = footer.num_rows
    twice = [c.name for c in schema if columns.names.count(c.name) > 1]
    if twice:
        raise RefusedFileError(f"the file has the column '{twice[0]}' more than once", rows)
    missing = [c.name for c in schema if c.name not in columns.names]
    if missing:
        has = ", ".join(columns.names)
        raise RefusedFileError(f"the file lacks the column '{missing[0]}'; it has: {has}", rows)
    for wanted in arrow_schema(schema, hidden=False):
        have = columns.field(wanted.name).type
        if have != wanted.type and not _reads_as(have, wanted.type):
            raise RefusedFileError(f"column '{wanted.name}' is {have}, expected {wanted.type}", rows)
    return footer


def _reads_as(have: pa.DataType, want: pa.DataType) -> bool:
    """The types that Spark's reader accepts for a column without loss."""
    widths: Sequence[pa.DataType] = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    if have in widths and want in widths:
        return widths.index(have) <= widths.index(want)
    return bool(pa.types.is_timestamp(have) and pa.types.is_timestamp(want))


def _spark_reads(path: str, footer: pq.FileMetaData) -> bool:
    """Whether Spark's own reader takes the file: it knows patterns of names, but no nanoseconds."""
    return is_plain(path) and not has_nanoseconds(footer)


def _same_name(one: str, other: str) -> bool:
    return one.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]
