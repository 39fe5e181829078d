"""The input row of Linear Road: fifteen whole numbers, unused fields -1.

Idea: one place names the columns and their order, so that every tool of the kit (generator, history,
driver, validator) reads and writes the same row. Arasu et al., "Linear Road", VLDB 2004, section 3.1.2.
"""

from __future__ import annotations

import pyarrow as pa

COLUMNS: tuple[str, ...] = (
    "Type",
    "Time",
    "VID",
    "Spd",
    "XWay",
    "Lane",
    "Dir",
    "Seg",
    "Pos",
    "QID",
    "Sinit",
    "Send",
    "DOW",
    "TOD",
    "Day",
)
"""The fields of an input row, in the order of the flat file."""

PARQUET_SCHEMA = pa.schema([(name, pa.int32()) for name in COLUMNS])
"""The same fields as a columnar schema: all int32."""

POSITION_REPORT, BALANCE, DAILY, TRAVEL = 0, 2, 3, 4
"""The input types: position report, and requests for balance, daily expenditure and travel time."""

TYPES: tuple[int, ...] = (POSITION_REPORT, BALANCE, DAILY, TRAVEL)

SEGMENTS = 100
FEET_PER_SEGMENT = 5280
ENTRANCE_LANE, EXIT_LANE = 0, 4
REPORT_EVERY = 30
"""Seconds between two reports of a vehicle."""
