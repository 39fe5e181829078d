"""Parquet: whole files where they fit into a train, otherwise runs of row groups.

A train never mixes whole files and row groups, so an engine may read whole files in its own way. A file whose
name Spark would take for a pattern or a URI is always read by its row groups.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
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
)
from penstock.connectors.files.discovery.settling import Signature
from penstock.connectors.files.discovery.source_files import SourceFiles
from penstock.connectors.paths import is_plain, native_file
from penstock.connectors.tables import counted_from, first_seq, location_in
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.types import Schema, arrow_schema
from penstock.store.durable import checksum
from penstock.store.ipc import from_ipc, ipc_bytes

_ROW_BYTES = 20  # the assumed size of a row
_LETTERS = 1000  # at most so many files are refused or reported in a train
_MAGIC = b"PAR1"


@dataclass(frozen=True)
class ParquetPosition(Position):
    """The file to read next, and the row group and the row in it.

    `told`: how many changed files were reported.
    """

    file: int = 0
    group: int = 0
    row: int = 0
    told: int = 0


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
        del source, data  # the footer has told
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
        return ipc_bytes(self._table())

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        return self._decoded(source, from_ipc(data))

    def counted_tuples(self, source: Source) -> tuple[Decoded, int]:
        return self._decoded(source, self._table()), self.rows

    def _table(self) -> pa.Table:
        self.check()
        with native_file(self.path) as opened, pq.ParquetFile(opened) as file:
            table = file.read_row_groups(list(range(self.first, self.last)))
        self.check()
        return table

    def _decoded(self, source: Source, table: pa.Table) -> Decoded:
        types = arrow_schema(source.schema, hidden=False)
        return counted_from(table.select(types.names).cast(types), first_seq(self.file, self.row))


@dataclass(frozen=True)
class WholeParquet(_ParquetSlice):
    """A whole file.

    `least` and `latest`: the range of its times in microseconds. `nulls`: how many rows have no time, or None
    if the footer does not say.
    """

    least: int | None = None
    latest: int | None = None
    nulls: int | None = None

    def read(self) -> bytes:
        self.check()
        data = Path(self.path).read_bytes()
        self.check()
        return data

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        types = arrow_schema(source.schema, hidden=False)
        table = pq.read_table(pa.BufferReader(data), columns=types.names)
        return counted_from(table.select(types.names).cast(types, safe=False), first_seq(self.file))

    def whole_file(self) -> str | None:
        return self.path


@dataclass
class _Cut:
    """A train under construction."""

    at: ParquetPosition
    left: int
    slices: list[WholeParquet | RowGroups] = field(default_factory=list)
    refused: list[RefusedInput] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.left > 0 and len(self.refused) < _LETTERS

    def takes_whole(self, path: str, rows: int) -> bool:
        """Whether the file can be read whole.

        Spark tells files apart by name, so names must differ.
        """
        mixed = any(isinstance(s, RowGroups) or _same_name(s.path, path) for s in self.slices)
        return self.at.group == 0 and rows <= self.left and not mixed and is_plain(path)

    def next_file(self) -> None:
        self.at = ParquetPosition(self.at.file + 1, told=self.at.told)


class ParquetFiles(Input[ParquetPosition]):
    """Cuts Parquet files by their footers.

    A file whose footer cannot be read or does not match is refused.
    """

    def __init__(self, source: Source, directory: Path) -> None:
        self._source = source
        self._files = SourceFiles(source, directory, self._judge, has_footer)
        self._log = self._files.log

    def take(self, position: ParquetPosition | None, limit: int) -> Taken:
        cut = _Cut(position or ParquetPosition(), limit)
        self._log.check(cut.at.file)
        first = cut.at.file
        self._fill(cut, limit)
        if cut.at.file > first and not cut.slices and not cut.refused:
            self._fill(cut, limit)  # the files that were known have changed, and come again as new ones
        return Taken(
            cut.slices,
            cut.at,
            sum(s.rows for s in cut.slices),
            refused=cut.refused,
            more=cut.at.file < len(self._log.known) or cut.at.told < len(self._log.changes),
            waiting=self._files.waiting,
            arrived=self._log.arrived({s.file for s in cut.slices}),
        )

    def _fill(self, cut: _Cut, limit: int) -> None:
        if cut.at.file >= len(self._log.known):
            self._files.look(cut.at.file)
        self._report(cut)
        while cut.open and cut.at.file < len(self._log.known) and self._add(cut, limit):
            pass

    def _report(self, cut: _Cut) -> None:
        """Dead letters about files that have changed since they were read."""
        told = cut.at.told
        for change in self._log.changes[told : told + _LETTERS]:
            cut.refused.append(self._log.letter(change.file, change.reason, change.tuples))
        cut.at = replace(cut.at, told=told + len(cut.refused))

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
        if cut.takes_whole(path, rows):
            extent = _extent(footer, self._source.timestamp)
            cut.slices.append(WholeParquet(path, number, rows, *self._signature(number), *extent))
            cut.left -= rows
            cut.next_file()
            return True
        fits_later = rows <= limit and is_plain(path)
        if cut.slices and (cut.at.group or fits_later or isinstance(cut.slices[-1], WholeParquet)):
            return False  # it fits whole into the next train, or must not be mixed with whole files
        self._add_groups(cut, path, footer)
        return True

    def _add_groups(self, cut: _Cut, path: str, footer: pq.FileMetaData) -> None:
        at = cut.at
        last, count = _groups_within(footer, at.group, cut.left)
        signature = self._signature(at.file)
        cut.slices.append(RowGroups(path, at.file, count, *signature, at.group, last, at.row))
        cut.left -= count
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
            raise RefusedFileError(f"the file cannot be read: {error.strerror}") from None
        if signature != self._log.signatures[at.file]:
            self._changed(at, signature, begun)
        footer = read_footer(path, self._source.schema)
        self._log.was_read(at.file, _content(path))
        return footer

    def _changed(self, at: ParquetPosition, signature: Signature, begun: str) -> None:
        name = self._log.known[at.file].name
        if not at.group:
            if self._log.current.get(name) == at.file:
                self._files.read_anew(name)
            raise _ReadLater
        same = self._log.content.get(at.file) == _content(self._log.path(at.file))
        self._log.has_changed(at.file, signature)
        if not same:
            raise RefusedFileError(f"the file was changed while it was read{begun}")

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
        except (pa.ArrowInvalid, OSError):
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
    except OSError:
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
    except (pa.ArrowInvalid, OSError) as error:
        raise RefusedFileError(f"not a readable Parquet file: {str(error).splitlines()[0]}") from None
    rows = footer.num_rows
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


def _extent(footer: pq.FileMetaData, column: str | None) -> tuple[int | None, int | None, int | None]:
    """The smallest and largest time in a file, and how many rows have none.

    All None if the footer does not say.
    """
    least: list[int] = []
    latest: list[int] = []
    nulls = 0
    for i in range(footer.num_row_groups if column else 0):
        group = footer.row_group(i)
        chunks = [group.column(j) for j in range(group.num_columns)]
        stats = next((chunk.statistics for chunk in chunks if chunk.path_in_schema == column), None)
        if stats is None or stats.null_count is None:
            return None, None, None
        nulls += stats.null_count
        if stats.null_count == group.num_rows:
            continue
        if not stats.has_min_max:
            return None, None, None
        least.append(_micros(stats.min))
        latest.append(_micros(stats.max))
    return min(least, default=None), max(latest, default=None), nulls


def _micros(time: datetime | int) -> int:
    if not isinstance(time, datetime):
        return int(time)
    in_utc = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (in_utc - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _same_name(one: str, other: str) -> bool:
    return one.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]


def _groups_within(footer: pq.FileMetaData, first: int, limit: int) -> tuple[int, int]:
    """Row groups from `first` that hold at most `limit` rows, but at least one group."""
    group, count = first, 0
    while group < footer.num_row_groups:
        rows = footer.row_group(group).num_rows
        if count and count + rows > limit:
            break
        group, count = group + 1, count + rows
    return group, count
