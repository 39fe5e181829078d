"""Decoded tuples get their `_ts`; a tuple without a time is refused here. Late ones: `lateness.py`."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import Decoded
from penstock.engine.arrow.logic import DEAD_SCHEMA, dead_letters
from penstock.model.boxes import Source
from penstock.model.types import STAMP


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
    timeless = table.filter(pc.is_null(stamps))
    missing = dead_letters(timeless, ["timestamp is null"] * timeless.num_rows, source.name)
    return Admitted(table.filter(pc.is_valid(stamps)), pa.concat_tables([dead, missing]))


def _letters(refused: pa.Table, source: str) -> pa.Table:
    """Refused rows as dead letters of the source."""
    if not refused.num_rows:
        return DEAD_SCHEMA.empty_table()
    boxes = pa.array([source] * refused.num_rows)
    return refused.append_column("box", boxes).select(DEAD_SCHEMA.names).cast(DEAD_SCHEMA)
