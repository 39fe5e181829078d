"""Row groups of a Parquet file into tuples: what cannot be read is refused, and the rest comes through.

A row group with broken pages is refused as a whole, since nobody knows where its rows begin. A row whose
value does not fit the source's type is refused alone. Times in nanoseconds, as pandas writes them, are cut to
microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.connectors.contract import Decoded
from penstock.connectors.tables import NOTHING_REFUSED, joined, raw_start, refused_rows, with_seq
from penstock.model.types import Schema, arrow_schema

FIRST_MICRO, LAST_MICRO = -62_135_596_800_000_000, 253_402_300_799_999_999
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Years 1 to 9999: what a Python datetime can hold, and what texts of times can say."""


def read_groups(file: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]) -> pa.Table:
    """Read some columns of row groups."""
    # The reader takes a dot for a path into a struct, so it cannot choose such columns.
    columns = None if any("." in name for name in names) else list(names)
    table = file.read_row_groups(list(groups), columns=columns).select(list(names))
    if table.num_rows != _rows(file, groups):
        raise ValueError(f"{table.num_rows:,} rows instead of {_rows(file, groups):,}")
    return table


def _rows(file: pq.ParquetFile, groups: Sequence[int]) -> int:
    return sum(file.metadata.row_group(group).num_rows for group in groups)


def decode_groups(file: pq.ParquetFile, groups: Sequence[int], schema: Schema, first: int) -> Decoded:
    """The tuples of row groups; `first` is the `_seq` of their first row."""
    if not groups:
        return Decoded(_empty(schema), NOTHING_REFUSED)
    try:
        return decode_table(read_groups(file, groups, schema.names), schema, first)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file itself: nothing is known about its rows
        if len(groups) == 1:
            return _refused_group(file, groups[0], schema, first, error)
    half = len(groups) // 2
    front, back = groups[:half], groups[half:]
    later = first + _rows(file, front)
    return joined([decode_groups(file, front, schema, first), decode_groups(file, back, schema, later)])


def _refused_group(file: pq.ParquetFile, group: int, schema: Schema, first: int, error: Exception) -> Decoded:
    rows = _rows(file, [group])
    why = (str(error).splitlines() or [type(error).__name__])[0][:300]
    reason = f"malformed: the row group cannot be read: {why}"
    refused = refused_rows([(f"row group {group}", reason, first)], tuples=rows)
    return Decoded(_empty(schema), refused if rows else NOTHING_REFUSED)


def decode_table(table: pa.Table, schema: Schema, first: int) -> Decoded:
    """Cast to the source's types; rows whose values do not fit are refused."""
    types = arrow_schema(schema, hidden=False)
    try:
        return _in_range(_cast(table, types), first)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        if table.num_rows == 1:
            reason = f"malformed: {str(error).splitlines()[0][:300]}"
            return Decoded(_empty(schema), refused_rows([(_shown(table), reason, first)]))
        if not table.num_rows:
            return Decoded(_empty(schema), NOTHING_REFUSED)
    half = table.num_rows // 2
    halves = (
        decode_table(table.slice(0, half), schema, first),
        decode_table(table.slice(half), schema, first + half),
    )
    return joined(halves)


def _cast(table: pa.Table, types: pa.Schema) -> pa.Table:
    columns = []
    for field in types:
        column = table.column(field.name)
        # Only a time in nanoseconds may lose digits. Others would overflow into another time.
        cut = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
        columns.append(column.cast(field.type, safe=not cut))
        if pa.types.is_string(field.type):
            columns[-1].validate(full=True)  # the reader does not look whether a text is UTF-8
    return pa.Table.from_arrays(columns, schema=types)


def _in_range(table: pa.Table, first: int) -> Decoded:
    """Without the rows that have a time or date beyond the years 1 to 9999."""
    places = np.arange(first, first + table.num_rows)
    bad, reasons = _beyond(table)
    if not bad.any():
        return Decoded(with_seq(table, places), NOTHING_REFUSED)
    rows = np.flatnonzero(bad)
    letters = ((_shown(table.slice(row, 1)), reasons[row], first + row) for row in rows.tolist())
    kept = table.filter(pa.array(~bad))
    return Decoded(with_seq(kept, places[~bad]), refused_rows(letters))


def _beyond(table: pa.Table) -> tuple[np.ndarray, dict[int, str]]:
    bad, reasons = np.zeros(table.num_rows, np.bool_), dict[int, str]()
    for field, column in zip(table.schema, table.columns, strict=True):
        limits = time_limits(field.type)
        if limits is None or not table.num_rows:
            continue
        numbers = column.cast(pa.int64() if pa.types.is_timestamp(field.type) else pa.int32())
        extent = pc.min_max(numbers)
        if extent["min"].as_py() is None or (
            extent["min"].as_py() >= limits[0] and extent["max"].as_py() <= limits[1]
        ):
            continue
        outside = pc.fill_null(pc.or_(pc.less(numbers, limits[0]), pc.greater(numbers, limits[1])), False)
        for row in np.flatnonzero(outside.to_numpy()).tolist():
            bad[row] = True
            reasons.setdefault(row, f"malformed: column '{field.name}': beyond the years 1 to 9999")
    return bad, reasons


def time_limits(type_: pa.DataType) -> tuple[int, int] | None:
    """The least and greatest number that a time or date may be; None for other types."""
    if pa.types.is_timestamp(type_):
        return FIRST_MICRO, LAST_MICRO
    return (FIRST_DAY, LAST_DAY) if pa.types.is_date(type_) else None


def _shown(row: pa.Table) -> str:
    """One row as text, by Arrow: Python has no dates beyond the year 9999."""
    cells = []
    for name, column in zip(row.column_names, row.columns, strict=True):
        cells.append(f"{name}={_cell(column)}")
    return raw_start(", ".join(cells))


def _cell(column: pa.ChunkedArray) -> str:
    type_ = column.type
    if pa.types.is_timestamp(type_) or pa.types.is_date32(type_):
        column = column.cast(pa.int64() if pa.types.is_timestamp(type_) else pa.int32())
        return f"{column[0].as_py()} ({type_})"
    if pa.types.is_string(type_):
        data = column.cast(pa.binary())[0].as_py()
        return repr(None if data is None else data.decode("utf-8", "replace"))
    return repr(column[0].as_py())


def _empty(schema: Schema) -> pa.Table:
    return with_seq(arrow_schema(schema, hidden=False).empty_table(), np.zeros(0, np.int64))
