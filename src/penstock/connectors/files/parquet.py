"""Parquet: whole files where they fit into a train, otherwise runs of row groups.

A train never mixes whole files and row groups, so an engine may read whole files in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.contract import Decoded, Input, Location, Position, RefusedInput, Slice, Taken
from penstock.connectors.files.file_log import FileLog
from penstock.connectors.tables import counted_from, first_seq, location_in
from penstock.model.boxes import Source
from penstock.model.formats.files import Files
from penstock.model.types import Schema, arrow_schema
from penstock.store.ipc import from_ipc, ipc_bytes

_ROW_BYTES = 20  # the assumed size of a row


@dataclass(frozen=True)
class ParquetPosition(Position):
    """The file to read next, and the row group and the row in it."""

    file: int = 0
    group: int = 0
    row: int = 0


@dataclass(frozen=True)
class RowGroups(Slice):
    """The row groups from `first` up to `last` (not included) of a file.

    `row` is the place of their first row.
    """

    path: str
    file: int
    first: int
    last: int
    row: int
    rows: int

    def read(self) -> bytes:
        return ipc_bytes(self._table())

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        return self._decoded(source, from_ipc(data))

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        del source, data  # the footer has told
        return self.rows

    def counted_tuples(self, source: Source) -> tuple[Decoded, int]:
        return self._decoded(source, self._table()), self.rows

    def location(self, seq: int) -> Location | None:
        return location_in(self.path, self.file, seq)

    def _table(self) -> pa.Table:
        with pq.ParquetFile(self.path) as file:
            return file.read_row_groups(list(range(self.first, self.last)))

    def _decoded(self, source: Source, table: pa.Table) -> Decoded:
        types = arrow_schema(source.schema, hidden=False)
        return counted_from(table.select(types.names).cast(types), first_seq(self.file, self.row))

    def weight(self) -> int:
        return self.rows * _ROW_BYTES


@dataclass(frozen=True)
class WholeParquet(Slice):
    """A whole file.

    `least` and `latest`: the range of its times in microseconds. `nulls`: how many rows have no time, or None
    if the footer does not say.
    """

    path: str
    file: int
    rows: int
    least: int | None = None
    latest: int | None = None
    nulls: int | None = None

    def read(self) -> bytes:
        return Path(self.path).read_bytes()

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        types = arrow_schema(source.schema, hidden=False)
        table = pq.read_table(pa.BufferReader(data), columns=types.names)
        return counted_from(table.select(types.names).cast(types, safe=False), first_seq(self.file))

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        del source, data  # the footer has told
        return self.rows

    def location(self, seq: int) -> Location | None:
        return location_in(self.path, self.file, seq)

    def weight(self) -> int:
        return self.rows * _ROW_BYTES

    def whole_file(self) -> str | None:
        return self.path


@dataclass
class _Cut:
    """A train under construction."""

    at: ParquetPosition
    left: int
    slices: list[WholeParquet | RowGroups] = field(default_factory=list)
    refused: list[RefusedInput] = field(default_factory=list)

    def takes_whole(self, path: str, rows: int) -> bool:
        """Whether the file can be read whole.

        Spark tells files apart by name, so names must differ.
        """
        mixed = any(isinstance(s, RowGroups) or _same_name(s.path, path) for s in self.slices)
        return self.at.group == 0 and rows <= self.left and not mixed

    def refuse(self, path: str, reason: str, rows: int = 1) -> None:
        """Refuse the whole file; if nobody knows how many rows it has, it counts as one."""
        offset = first_seq(self.at.file)
        self.refused.append({"raw": path, "reason": reason, "offset": offset, "tuples": rows, "file": path})
        self.next_file()

    def next_file(self) -> None:
        self.at = ParquetPosition(self.at.file + 1)


class ParquetFiles(Input[ParquetPosition]):
    """Cuts Parquet files by their footers.

    A file whose footer cannot be read or does not match is refused.
    """

    def __init__(self, source: Source, directory: Path) -> None:
        assert isinstance(source.format, Files)
        self._source, self._log = source, FileLog(source.format.path, directory)

    def take(self, position: ParquetPosition | None, limit: int) -> Taken:
        cut = _Cut(position or ParquetPosition(), limit)
        if cut.at.file >= len(self._log.known):
            self._log.discover()
        while cut.left > 0 and cut.at.file < len(self._log.known) and self._add(cut, limit):
            pass
        return Taken(
            cut.slices,
            cut.at,
            sum(s.rows for s in cut.slices),
            refused=cut.refused,
            more=cut.at.file < len(self._log.known),
            arrived=self._log.arrived(s.file for s in cut.slices),
        )

    def _add(self, cut: _Cut, limit: int) -> bool:
        """Take the next piece or refuse the file. False: it belongs to the next train."""
        number, path = cut.at.file, self._log.known[cut.at.file].path
        try:
            footer, columns = _footer(path)
            misfit = _misfit(columns, self._source.schema)
        except (pa.ArrowInvalid, OSError) as error:
            cut.refuse(path, f"not a readable Parquet file: {str(error).splitlines()[0]}")
            return True
        if misfit is not None:
            cut.refuse(path, misfit, footer.num_rows)
            return True
        rows = footer.num_rows - cut.at.row
        if cut.takes_whole(path, rows):
            cut.slices.append(WholeParquet(path, number, rows, *_extent(footer, self._source.timestamp)))
            cut.left -= rows
            cut.next_file()
            return True
        if cut.slices and (cut.at.group or rows <= limit or isinstance(cut.slices[-1], WholeParquet)):
            return False  # it fits whole into the next train, or must not be mixed with whole files
        self._add_groups(cut, path, footer)
        return True

    def _add_groups(self, cut: _Cut, path: str, footer: pq.FileMetaData) -> None:
        at = cut.at
        last, count = _groups_within(footer, at.group, cut.left)
        cut.slices.append(RowGroups(path, at.file, at.group, last, at.row, count))
        cut.left -= count
        cut.at = ParquetPosition(at.file, last, at.row + count)
        if last >= footer.num_row_groups:
            cut.next_file()


def _footer(path: str) -> tuple[pq.FileMetaData, pa.Schema]:
    with pq.ParquetFile(path) as file:
        return file.metadata, file.schema_arrow


def rows_now(path: str) -> int:
    """The number of rows that a file's footer shows at this moment."""
    return int(pq.read_metadata(path).num_rows)


def _misfit(columns: pa.Schema, schema: Schema) -> str | None:
    """Why a file with these columns cannot be read as the source's; None if it can."""
    missing = [c.name for c in schema if c.name not in columns.names]
    if missing:
        return f"the file lacks the column '{missing[0]}'; it has: {', '.join(columns.names)}"
    for wanted in arrow_schema(schema, hidden=False):
        have = columns.field(wanted.name).type
        if have != wanted.type and not _reads_as(have, wanted.type):
            return f"column '{wanted.name}' is {have}, expected {wanted.type}"
    return None


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
