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
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from penstock.linear_road.rows.fields import COLUMNS, PARQUET_SCHEMA
from penstock.linear_road.rows.inputs import Format
from penstock.linear_road.traffic.direction import Direction
from penstock.linear_road.traffic.finished_directions import Part
from penstock.store.durable import whole_file

ROWS_PER_FILE = 2_000_000
# Columns with few values shrink to almost nothing. A dictionary of positions or vehicles would only cost
# time.
_FEW_VALUES = [name for name in COLUMNS if name not in {"Time", "VID", "Pos", "QID"}]


@dataclass(frozen=True)
class Slice:
    """The seconds start..end-1 as one file."""

    start: int
    end: int

    def file_name(self, form: Format) -> str:
        """The name of its file; names sort by time."""
        return f"rows-{self.start:05d}-{self.end - 1:05d}.{form}"


def cut(rows_by_second: np.ndarray, most: int = ROWS_PER_FILE) -> tuple[Slice, ...]:
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
    slices, start = [], 0
    while start < seconds:
        fits = int(np.searchsorted(before, before[start] + most, side="right")) - 1
        end = seconds if fits >= seconds else max(fits // step * step, start + step)
        slices.append(Slice(start, end))
        start = end
    return tuple(slices)


def merge(
    span: Slice, directions: Sequence[Direction], parts: Sequence[Part], vids: Sequence[np.ndarray]
) -> np.ndarray:
    """The rows of a slice as an array [column, row]."""
    counts = np.sum([part.counts[span.start : span.end].sum(axis=1) for part in parts], axis=0)
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
        _place(
            rows, slots, span.start, np.asarray(reports), names, direction.xway, direction.dir, fields, qids
        )
    return rows


@numba.njit(cache=True, error_model="numpy")
def _place(
    rows: Any, slots: Any, start: int, reports: Any, vids: Any, xway: int, way: int, fields: Any, qids: Any
) -> None:
    """Write the reports of one direction, and their requests, to the next free rows of their second."""
    asked = 0
    sinit, send, dow, tod, day = fields
    for i in range(len(reports)):
        report = reports[i]
        vid, second = vids[report.trip], report.time - start
        row = slots[second]
        rows[0, row], rows[1, row], rows[2, row] = 0, report.time, vid
        rows[3, row], rows[4, row], rows[5, row], rows[6, row] = report.speed, xway, report.lane, way
        rows[7, row], rows[8, row] = report.pos // 5280, report.pos
        if report.request > 0:
            row += 1
            rows[0, row], rows[1, row], rows[2, row] = report.request, report.time, vid
            rows[9, row] = qids[0] + asked * qids[1]
            if report.request > 2:
                rows[4, row] = xway
            if report.request == 3:
                rows[14, row] = day[asked]
            if report.request == 4:
                rows[10, row], rows[11, row] = sinit[asked], send[asked]
                rows[12, row], rows[13, row] = dow[asked], tod[asked]
            asked += 1
        slots[second] = row + 1


def _column(values: np.ndarray) -> pa.Array:
    # Read straight from memory: `pa.array` would import pandas first, which costs more than writing a short
    # run.
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


def write_rows(rows: np.ndarray, final: Path, form: Format) -> None:
    """Write merged rows as csv without header or as parquet; the file appears when complete."""
    table = pa.Table.from_arrays([_column(values) for values in rows], schema=PARQUET_SCHEMA)
    with whole_file(final) as path:
        if form == "parquet":
            pq.write_table(
                table, path, use_dictionary=_FEW_VALUES, compression="zstd", row_group_size=500_000
            )
        else:
            pa_csv.write_csv(table, path, pa_csv.WriteOptions(include_header=False))
