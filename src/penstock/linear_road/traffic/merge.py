"""From directions to files in order of time.

Idea: the parts are cut at the same seconds, and each cut becomes one file that holds all expressways. So the
files in order are the input in order. A file holds at most about two million rows, which bounds memory for
any L. Within a second the directions follow each other, and a request comes directly after the report that
carries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from penstock.linear_road.rows.arrays import Int32s, Int64s, Records
from penstock.linear_road.rows.csv_rows import (
    DAY_FIELD,
    DIR_FIELD,
    DOW_FIELD,
    LANE_FIELD,
    POS_FIELD,
    QID_FIELD,
    SEG_FIELD,
    SEND_FIELD,
    SINIT_FIELD,
    SPD_FIELD,
    TIME_FIELD,
    TOD_FIELD,
    TYPE_FIELD,
    VID_FIELD,
    XWAY_FIELD,
)
from penstock.linear_road.rows.fields import (
    BALANCE,
    COLUMNS,
    DAILY,
    FEET_PER_SEGMENT,
    PARQUET_SCHEMA,
    POSITION_REPORT,
    TRAVEL,
)
from penstock.linear_road.rows.inputs import Format
from penstock.linear_road.traffic.direction import Direction
from penstock.linear_road.traffic.finished_directions import Part
from penstock.store.durable import whole_file

ROWS_PER_FILE = 2_000_000
# Columns with few values shrink to almost nothing. A dictionary of positions or vehicles would only cost
# time.
_FEW_VALUES = [name for name in COLUMNS if name not in {"Time", "VID", "Pos", "QID"}]

_Requests = tuple[Int32s, Int32s, Int32s, Int32s, Int32s]
_OfDirection = tuple[tuple[int, int], _Requests, tuple[int, int]]
"""(expressway, direction), the fields of the requests, (first QID, step of QIDs): a plain tuple, because
compiled code takes no dataclass.
"""


@dataclass(frozen=True)
class Slice:
    """The seconds start..end-1 as one file."""

    start: int
    end: int

    def file_name(self, form: Format) -> str:
        """The name of its file; names sort by time."""
        return f"rows-{self.start:05d}-{self.end - 1:05d}.{form}"


def cut(rows_by_second: Int64s, most: int = ROWS_PER_FILE) -> tuple[Slice, ...]:
    """Cut the run into slices of at most `most` rows, at whole minutes if these fit.

    A single second may hold more.

    >>> [(s.start, s.end) for s in cut(np.full(240, 10), most=1500)]
    [(0, 120), (120, 240)]
    >>> [(s.start, s.end) for s in cut(np.full(4, 10), most=20)]
    [(0, 2), (2, 4)]
    """
    seconds = len(rows_by_second)
    before = np.concatenate([[0], np.cumsum(rows_by_second)])
    minutes = np.append(np.arange(0, seconds, 60), seconds)
    step = 60 if np.diff(before[minutes]).max() <= most else 1
    # Whole minutes make file names easy to read; a crowded run is cut at any second.
    slices, start = [], 0
    while start < seconds:
        fits = int(np.searchsorted(before, before[start] + most, side="right")) - 1
        end = seconds if fits >= seconds else max(fits // step * step, start + step)
        slices.append(Slice(start, end))
        start = end
    return tuple(slices)


def merge(
    span: Slice, directions: Sequence[Direction], parts: Sequence[Part], vids: Sequence[Int32s]
) -> Int32s:
    """The rows of a slice as an array [column, row]."""
    counts = np.sum([part.counts[span.start : span.end].sum(axis=1) for part in parts], axis=0)
    # The next free row of each second. A direction moves them on for the directions after it.
    slots = np.concatenate([[0], np.cumsum(counts)])
    rows = np.full((len(COLUMNS), int(slots[-1])), -1, np.int32)
    for unit, (direction, part, names) in enumerate(zip(directions, parts, vids, strict=True)):
        reports = part.reports[part.reports_before[span.start] : part.reports_before[span.end]]
        asked = part.requests_before[span.start]
        asks = part.requests
        fields = (asks.sinit[asked:], asks.send[asked:], asks.dow[asked:], asks.tod[asked:], asks.day[asked:])
        # Request numbers interleave the directions, which makes them unique and dense for any number of
        # directions.
        qids = (asked * len(parts) + unit, len(parts))
        road = (direction.xway, direction.dir)
        _write_direction(rows, slots, span.start, np.asarray(reports), names, (road, fields, qids))
    return rows


@numba.njit(cache=True, error_model="numpy")
def _write_direction(
    rows: Int32s, slots: Int64s, start: int, reports: Records, vids: Int32s, of_direction: _OfDirection
) -> None:
    """Write the reports of one direction, and their requests, to the next free rows of their second."""
    asked = 0
    (xway, way), (sinit, send, dow, tod, day), (first_qid, qid_step) = of_direction
    for i in range(len(reports)):
        report = reports[i]
        vid, second = vids[report.trip], report.time - start
        row = slots[second]
        rows[TYPE_FIELD, row], rows[TIME_FIELD, row] = POSITION_REPORT, report.time
        rows[VID_FIELD, row], rows[SPD_FIELD, row] = vid, report.speed
        rows[XWAY_FIELD, row], rows[LANE_FIELD, row], rows[DIR_FIELD, row] = xway, report.lane, way
        rows[SEG_FIELD, row], rows[POS_FIELD, row] = report.pos // FEET_PER_SEGMENT, report.pos
        if report.request > 0:
            row += 1
            rows[TYPE_FIELD, row], rows[TIME_FIELD, row] = report.request, report.time
            rows[VID_FIELD, row], rows[QID_FIELD, row] = vid, first_qid + asked * qid_step
            # A balance is the vehicle's own. The other requests name an expressway.
            if report.request > BALANCE:
                rows[XWAY_FIELD, row] = xway
            if report.request == DAILY:
                rows[DAY_FIELD, row] = day[asked]
            if report.request == TRAVEL:
                rows[SINIT_FIELD, row], rows[SEND_FIELD, row] = sinit[asked], send[asked]
                rows[DOW_FIELD, row], rows[TOD_FIELD, row] = dow[asked], tod[asked]
            asked += 1
        slots[second] = row + 1


def _column(values: Int32s) -> pa.Array:
    # Read straight from memory: `pa.array` would import pandas first, which costs more than writing a short
    # run.
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


def write_rows(rows: Int32s, final: Path, form: Format) -> None:
    """Write merged rows as csv without header or as parquet; the file appears when complete."""
    table = pa.Table.from_arrays([_column(values) for values in rows], schema=PARQUET_SCHEMA)
    with whole_file(final) as path:
        if form == "parquet":
            pq.write_table(
                table, path, use_dictionary=_FEW_VALUES, compression="zstd", row_group_size=500_000
            )
        else:
            pa_csv.write_csv(table, path, pa_csv.WriteOptions(include_header=False))
