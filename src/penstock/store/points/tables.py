"""Arrow tables to sorted Parquet files and back: the leaves of Aurora's B-tree (Sect. 4.2), as files.

Rows are sorted by the storage key and cut into files of bounded length. Each file's description has its least
and greatest key and timestamp, so a look-up opens only the files it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.model.types import SEQ, STAMP, Schema, arrow_schema
from penstock.store import durable
from penstock.store.errors import StoreError
from penstock.store.points.manifest import ENTRY, DataFile
from penstock.store.points.ranges import Bound, plain

FILE_ROWS = 1 << 16
_LONGEST_KEY = 256


def stored_schema(schema: Schema) -> pa.Schema:
    """The columns of a data file: visible ones, `_ts`, `_seq`, and `_entry`, the train of each row."""
    return arrow_schema(schema).append(pa.field(ENTRY, pa.int64()))


def conform(table: pa.Table, wanted: pa.Schema, name: str) -> pa.Table:
    """Select exactly these columns and types, or raise an error that names what is missing."""
    if table.schema.equals(wanted):
        return table
    missing = [column for column in wanted.names if column not in table.column_names]
    if missing:
        raise StoreError(
            f"connection point '{name}': the train lacks column '{missing[0]}'",
            found=", ".join(table.column_names),
            expected=", ".join(wanted.names),
        )
    try:
        return table.select(wanted.names).cast(wanted)
    except pa.ArrowInvalid as error:
        raise StoreError(
            f"connection point '{name}': the train has other types", found=str(error), expected=str(wanted)
        ) from None


def sort(table: pa.Table, key: str) -> pa.Table:
    """Sort by key, then canonically: the same rows give the same file, in whatever order they came."""
    if key == STAMP and _in_order(table):
        return table
    first = [key, STAMP, SEQ] if key != STAMP else [STAMP, SEQ]
    names = [*first, *(name for name in table.column_names if name not in first)]
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    return table.take(order)


def _in_order(table: pa.Table) -> bool:
    """Whether `_ts`, `_seq` only grow. Trains of a single source arrive sorted, so sorting can be skipped."""
    if table[STAMP].null_count or table[SEQ].null_count:
        return False
    stamps, places = table[STAMP].to_numpy(), table[SEQ].to_numpy()
    later, same = stamps[1:] > stamps[:-1], stamps[1:] == stamps[:-1]
    return bool((later | (same & (places[1:] > places[:-1]))).all())


def write_files(
    directory: Path,
    table: pa.Table,
    key: str,
    stem: Callable[[int], str],
    *,
    rows: int = FILE_ROWS,
    start: int = 0,
    sync: bool = True,
) -> list[DataFile]:
    """Sort the table and write it as files of at most `rows` rows; the caller flushes the directory."""
    ordered = sort(table, key)
    pieces = max(1, -(-ordered.num_rows // rows))
    # Cut equal pieces, instead of full ones and a tiny last one.
    step = -(-ordered.num_rows // pieces) if ordered.num_rows else 1
    cuts = range(0, ordered.num_rows, step)
    return [
        _write(directory, ordered.slice(at, step), key, stem(start + n), sync) for n, at in enumerate(cuts)
    ]


def _write(directory: Path, table: pa.Table, key: str, stem: str, sync: bool) -> DataFile:
    data = encode(table)
    crc = durable.checksum(data)
    # The checksum is in the name, so a replay that differs cannot overwrite what was committed.
    file = describe(table, key, f"{stem}-{crc:08x}.parquet", len(data), crc)
    durable.write_bytes(directory / file.name, data, sync=sync, sync_parent=False)
    return file


def encode(table: pa.Table) -> memoryview:
    """The table as the bytes of a Parquet file; equal tables give equal bytes."""
    sink = pa.BufferOutputStream()
    # Dictionaries pay off for columns that repeat (text, entry) and cost time for the others.
    often = [
        field.name for field in table.schema if not pa.types.is_integer(field.type) or field.name == ENTRY
    ]
    pq.write_table(table, sink, compression="snappy", use_dictionary=often)
    return memoryview(sink.getvalue())


def describe(table: pa.Table, key: str, name: str, size: int, crc: int) -> DataFile:
    """The manifest's description of a file."""
    stamps, entries = pc.min_max(table[STAMP]), pc.min_max(table[ENTRY])
    least, greatest = _key_bounds(table[key])
    return DataFile(
        name=name,
        rows=table.num_rows,
        bytes=size,
        crc=crc,
        first=entries["min"].as_py(),
        last=entries["max"].as_py(),
        min_ts=stamps["min"].as_py(),
        max_ts=stamps["max"].as_py(),
        keys=table.num_rows - table[key].null_count,
        min_key=least,
        max_key=greatest,
    )


def _key_bounds(column: pa.ChunkedArray) -> tuple[Bound, Bound]:
    bounds = pc.min_max(column)
    least, greatest = _plain(bounds["min"]), _plain(bounds["max"])
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        # Spark sorts NaN above every number, but min_max skips it.
        only_nan = least is None or least != least  # noqa: PLR0124 - only NaN differs from itself
        least, greatest = (float("inf") if only_nan else least), float("inf")
    if isinstance(greatest, str) and len(greatest) > _LONGEST_KEY:
        greatest = None
    return (least[:_LONGEST_KEY] if isinstance(least, str) else least), greatest


def _plain(value: pa.Scalar) -> Bound:
    # Use Arrow's own integers: years beyond Python's datetime are legal timestamps.
    if pa.types.is_timestamp(value.type):
        return value.value if value.is_valid else None
    return plain(value.as_py())


def read_files(
    directory: Path,
    files: Iterable[DataFile],
    first: int,
    last: int,
    schema: pa.Schema,
    columns: list[str] | None = None,
) -> Iterator[pa.Table]:
    """The rows of entries first..last, file by file, each checked against its length and checksum."""
    names = columns if columns is not None else schema.names
    for file in files:
        data = durable.read_checked(directory / file.name, file.bytes, file.crc)
        whole = first <= file.first and file.last <= last
        wanted = names if whole or ENTRY in names else [*names, ENTRY]
        table = pq.read_table(pa.BufferReader(data), columns=wanted, use_threads=False)
        yield table if whole else table.filter(_within(table[ENTRY], first, last)).select(names)


def _within(column: pa.ChunkedArray, first: int, last: int) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
