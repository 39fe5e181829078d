"""Decoded tuples get their `_ts`; a tuple without a time is refused here. Late ones: `lateness.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import Decoded
from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.model.boxes import Source
from penstock.model.types import SEQ, STAMP


@dataclass(frozen=True)
class Admitted:
    """Tuples with `_ts` and `_seq`, and the dead letters of the refused ones."""

    tuples: pa.Table
    dead: pa.Table


def stamped(source: Source, decoded: Decoded) -> Admitted:
    """Give each tuple its `_ts`; a source with timestamps refuses a tuple without a time."""
    table, dead = decoded.tuples, _letters(decoded.refused, source.name)
    at = len(source.schema.columns)
    if source.timestamp is None:
        return Admitted(table.add_column(at, STAMP, pa.nulls(table.num_rows, pa.int64())), dead)
    stamps = table.column(source.timestamp).cast(pa.int64())
    table = table.add_column(at, STAMP, stamps)
    if not stamps.null_count:
        return Admitted(table, dead)
    missing = _without_time(table.filter(pc.is_null(stamps)), source.name)
    return Admitted(table.filter(pc.is_valid(stamps)), pa.concat_tables([dead, missing]))


def _letters(refused: pa.Table, source: str) -> pa.Table:
    """Refused rows as dead letters of the source."""
    if not refused.num_rows:
        return DEAD_SCHEMA.empty_table()
    return refused.append_column("box", pa.array([source] * refused.num_rows)).cast(DEAD_SCHEMA)


def _without_time(rows: pa.Table, source: str) -> pa.Table:
    visible = [name for name in rows.column_names if not name.startswith("_")]
    raw = [json.dumps(row, default=str) for row in rows.select(visible).to_pylist()]
    count = rows.num_rows
    columns = [raw, ["timestamp is null"] * count, rows.column(SEQ), [source] * count]
    return pa.table(dict(zip(DEAD_SCHEMA.names, columns, strict=True)), schema=DEAD_SCHEMA)
