"""Tuples as JSON: visible columns in order, the stamp apart; values that JSON lacks become texts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.model.types import SEQ, STAMP
from penstock.standing.serving.json_rows import rows_of

_HIDDEN = (STAMP, SEQ, "_entry")
_LONGEST = 1_000  # characters of one text


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The tuples; `_ts` is seconds since 1970.

    >>> json_rows(pa.table({"v": [1], "_ts": [2_500_000], "_seq": [7]}))
    [{'v': 1, '_ts': 2.5}]
    """
    visible = table.select([name for name in table.column_names if name not in _HIDDEN])
    stamps = table.column(STAMP).to_pylist() if STAMP in table.column_names else [None] * table.num_rows
    rows = rows_of(visible) if visible.num_columns else [{} for _ in stamps]
    return [
        {**{name: _short(value) for name, value in row.items()}, STAMP: None if ts is None else ts / 1e6}
        for row, ts in zip(rows, stamps, strict=True)
    ]


def _short(value: Any) -> Any:
    return value[:_LONGEST] + "…" if isinstance(value, str) and len(value) > _LONGEST else value
