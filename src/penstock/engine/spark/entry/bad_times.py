"""Tuples of Parquet files that are late or have no time: the driver finds them if the footers show any.

A dead letter shows its whole tuple. Looking for such tuples inside Spark would cost every tuple all its
columns and a step outside the generated code. The footers tell which files have any. Of those the driver
reads the time column, and whole tuples only for the letters. This pays off while they are few.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.connectors.files.parquet import WholeParquet
from penstock.connectors.tables import first_seq
from penstock.engine.arrow.logic import DEAD_SCHEMA, dead_letters
from penstock.engine.spark.entry.lateness import late_reason
from penstock.model.boxes import Source
from penstock.model.types import SEQ, STAMP, arrow_schema

FEW = 10_000
"""The driver looks up at most this many bad tuples of a train. If there are more, Spark finds them."""


def footers_tell(slices: Sequence[WholeParquet]) -> bool:
    """True if every file's footer gives its number of null timestamps, its earliest and its latest one."""
    return all(s.nulls is not None for s in slices)


def all_in_time(slice_: WholeParquet, horizon: int) -> bool:
    """Whether its footer proves that every tuple has a time and none is late."""
    return not slice_.nulls and (slice_.least is None or slice_.least >= horizon)


def bad_times(source: Source, slices: Sequence[WholeParquet], horizon: int) -> pa.Table | None:
    """The dead letters of these files; None if there are too many, or a column's name prevents it."""
    if any("." in c.name for c in source.schema):
        return None  # the Parquet reader takes a dot for a path into a struct
    tables = [DEAD_SCHEMA.empty_table()]
    left = FEW
    for slice_ in slices:
        if not all_in_time(slice_, horizon):
            letters = _letters(source, slice_, horizon, left)
            if letters is None:
                return None
            tables.append(letters)
            left -= letters.num_rows
    return pa.concat_tables(tables)


def _letters(source: Source, slice_: WholeParquet, horizon: int, most: int) -> pa.Table | None:
    tables = [DEAD_SCHEMA.empty_table()]
    seq = first_seq(slice_.file)
    with pq.ParquetFile(slice_.path) as file:
        for group in range(file.num_row_groups):
            stamps = _stamps(file.read_row_group(group, columns=[source.timestamp]).column(0))
            bad = pc.fill_null(pc.less(stamps, horizon), True)
            most -= pc.sum(bad).as_py() or 0
            if most < 0:
                return None
            if pc.any(bad).as_py():
                rows = file.read_row_group(group, columns=[c.name for c in source.schema]).filter(bad)
                at = pc.indices_nonzero(bad).cast(pa.int64())
                tables.append(_as_letters(source, rows, stamps.filter(bad), pc.add(at, seq), horizon))
            seq += len(stamps)
    return pa.concat_tables(tables)


def _stamps(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())


def _as_letters(
    source: Source, rows: pa.Table, stamps: pa.ChunkedArray, seqs: pa.Array, horizon: int
) -> pa.Table:
    types = arrow_schema(source.schema, hidden=False)
    rows = (
        rows.select(types.names).cast(types, safe=False).append_column(STAMP, stamps).append_column(SEQ, seqs)
    )
    reasons = ["timestamp is null" if ts is None else late_reason(ts, horizon) for ts in stamps.to_pylist()]
    return dead_letters(rows, reasons, source.name)
