"""What the footer of a Parquet file tells about its rows, before any of them is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pyarrow.parquet as pq

from penstock.model.types import Schema


def unpacked_bytes(footer: pq.FileMetaData) -> int:
    """The unpacked size of a file's rows."""
    return sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))


def has_nanoseconds(footer: pq.FileMetaData) -> bool:
    """Whether any column holds times in nanoseconds."""
    columns = (footer.schema.column(i) for i in range(footer.num_columns))
    return any("nanoseconds" in str(column.logical_type) for column in columns)


def time_extent(footer: pq.FileMetaData, column: str | None) -> tuple[int | None, int | None, int | None]:
    """The smallest and largest time in a file, and how many rows have none.

    All None if the footer does not say.
    """
    least: list[int] = []
    latest: list[int] = []
    nulls = 0
    for stats, rows in _statistics(footer, column) if column else ():
        if stats is None or stats.null_count is None:
            return None, None, None
        nulls += stats.null_count
        if stats.null_count == rows:
            continue
        if not stats.has_min_max:
            return None, None, None
        try:
            least.append(_micros(stats.min))
            latest.append(_micros(stats.max))
        except (OverflowError, ValueError):
            return None, None, None  # beyond the years of a Python datetime
    return min(least, default=None), max(latest, default=None), nulls


def times_in_range(footer: pq.FileMetaData, schema: Schema) -> bool:
    """Whether the footer shows that every time and date of the source's columns is of the years 1 to 9999."""
    times = [column.name for column in schema if column.type in ("TIMESTAMP", "DATE")]
    return all(_in_range(stats, rows) for name in times for stats, rows in _statistics(footer, name))


def _in_range(stats: pq.Statistics | None, rows: int) -> bool:
    if stats is None:
        return False
    if stats.null_count == rows:
        return True
    try:
        # Python's dates hold these years and no others.
        return bool(stats.has_min_max) and isinstance(stats.min, date) and isinstance(stats.max, date)
    except (OverflowError, ValueError):
        return False


def _statistics(footer: pq.FileMetaData, column: str) -> Iterator[tuple[pq.Statistics | None, int]]:
    """Those of the column in each row group, with the number of rows."""
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        chunks = [group.column(j) for j in range(group.num_columns)]
        chunk = next((chunk for chunk in chunks if chunk.path_in_schema == column), None)
        yield (None if chunk is None else chunk.statistics), group.num_rows


def _micros(time: datetime | int) -> int:
    if not isinstance(time, datetime):
        return int(time)
    in_utc = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (in_utc - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def groups_within(footer: pq.FileMetaData, first: int, rows: int, size: int) -> tuple[int, int, int]:
    """Row groups from `first` that hold at most so many rows and bytes, but at least one group.

    Returns the group after the last one, and the rows and bytes of all.
    """
    group, row_count, byte_count = first, 0, 0
    while group < footer.num_row_groups:
        metadata = footer.row_group(group)
        more_rows, more_bytes = row_count + metadata.num_rows, byte_count + metadata.total_byte_size
        if row_count and (more_rows > rows or more_bytes > size):
            break
        group, row_count, byte_count = group + 1, more_rows, more_bytes
    return group, row_count, byte_count
