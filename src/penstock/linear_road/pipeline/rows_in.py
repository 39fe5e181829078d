"""From the bytes of a delivered second to columns; rows that break the format are refused (shared page, "Input").

Idea: one compiled pass reads, judges and packs. A file holds the rows that arrived in one second, so the rules that look at the rows
before and after come down to one comparison: the rows of a second that keep to the format are those whose Time it is. A Time
below was passed on late, one above had leapt ahead; the driver cannot have delivered it otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from penstock.linear_road.csv_rows import FIELDS, Array, _integer
from penstock.linear_road.refusals import REASONS, _field_reason

SCHEMA = (
    "Second TIMESTAMP, Type INT, Time INT, VID INT, Spd INT, XWay INT, Lane INT, Dir INT, Seg INT, Pos INT, "
    "QID INT, Sinit INT, Send INT, DOW INT, TOD INT, Day INT"
)
"""The fifteen fields of a row, and the second in which it was delivered."""

NAMES = (
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
_BACK, _LEAPS, _REPEATED = 18, 19, 20
_COMMA, _NEWLINE = 44, 10
_SHORTEST = 2 * FIELDS  # bytes of a row of fifteen digits
_REPORT_FIELDS, _TAIL = 9, 18  # a report's own fields; the bytes of the others, all -1
_SECOND = 1_000_000
UTC = pa.timestamp("us", tz="UTC")


def decode(chunk: Any, at: int) -> tuple[dict[str, Any], Array, list[str]]:
    r"""The rows of a delivered file as columns, and which lines were refused, and why.

    >>> columns, lines, reasons = decode(b"0,5,7,30,0,1,0,1,5300,-1,-1,-1,-1,-1,-1\nnonsense\n", 5)
    >>> columns["VID"].tolist(), lines.tolist(), reasons
    ([7], [1], ['not 15 integers'])
    """
    text = np.frombuffer(chunk, np.uint8)
    if len(text) and text[-1] != _NEWLINE:
        text = np.append(text, np.uint8(_NEWLINE))
    kept, columns, verdicts = _columns(text, at, len(text) // _SHORTEST + 16)
    if kept < 0:  # so many short lines are no rows; count them
        kept, columns, verdicts = _columns(text, at, int(np.count_nonzero(text == _NEWLINE)))
    lines = np.flatnonzero(verdicts) if kept < len(verdicts) else np.zeros(0, np.int64)
    made: dict[str, Any] = {"Second": pa.array(np.full(kept, at * _SECOND, np.int64)).view(UTC)}
    made |= {name: columns[i, :kept] for i, name in enumerate(NAMES)}
    return made, lines, [REASONS[code] for code in verdicts[lines]]


def _columns(text: Array, at: int, room: int) -> tuple[int, Array, Array]:
    """(rows kept, columns, verdict on each line); -1 rows: there was not room for so many lines."""
    columns = np.empty((FIELDS, room), np.int32)
    columns[_REPORT_FIELDS:] = -1
    verdicts = np.zeros(room, np.int8)
    seen = np.full(2 * _power_of_two(room), -1, np.int64)
    kept, lines = _decode(text, at, columns, verdicts, seen)
    return kept, columns, verdicts[:lines]


def _power_of_two(count: int) -> int:
    return 1 << max(4, int(count - 1).bit_length()) if count else 16


@njit(cache=True, nogil=True)
def _decode(text: Array, at: int, columns: Array, verdicts: Array, seen: Array) -> tuple[int, int]:
    i, kept, line = 0, 0, 0
    row = np.full(FIELDS, -1, np.int32)
    while i < len(text):
        if line == len(verdicts):
            return -1, line
        following = _quick_report(text, i, at, row)
        if following > 0:
            if _again(row, seen):
                verdicts[line] = _REPEATED
            else:
                for f in range(_REPORT_FIELDS):
                    columns[f, kept] = row[f]
                kept += 1
            i = following
        else:
            i, verdicts[line] = _careful(text, i, at, row, seen)
            if verdicts[line] == 0:
                for f in range(FIELDS):
                    columns[f, kept] = row[f]
                kept += 1
        line += 1
    return kept, line


@njit(cache=True, nogil=True)
def _quick_report(text: Array, i: int, at: int, row: Array) -> int:
    """Read a sound report in its usual spelling: nine numbers of digits alone, then six times -1.

    Where it ends; 0: the careful reader must look at it.
    """
    if i + _TAIL + 2 * _REPORT_FIELDS > len(text) or text[i] != 48 or text[i + 1] != _COMMA:
        return 0
    row[0] = 0
    i += 2
    for field in range(1, _REPORT_FIELDS):
        number = 0
        first = i
        digit = text[i] - np.uint8(48)
        while digit < 10:
            number = number * 10 + digit
            i += 1
            digit = text[i] - np.uint8(48)
        if text[i] != _COMMA or i == first or i > first + 9:
            return 0
        row[field] = number
        i += 1
    if i + _TAIL > len(text) or row[1] != at or row[3] > 100 or row[5] > 4 or row[6] > 1 or row[7] > 99:
        return 0
    if not 5280 * row[7] <= row[8] < 5280 * row[7] + 5280:
        return 0
    for k in range(0, _TAIL, 3):
        if text[i + k] != 45 or text[i + k + 1] != 49:
            return 0
    for k in range(2, _TAIL - 1, 3):
        if text[i + k] != _COMMA:
            return 0
    return i + _TAIL if text[i + _TAIL - 1] == _NEWLINE else 0


@njit(cache=True, nogil=True)
def _careful(text: Array, i: int, at: int, row: Array, seen: Array) -> tuple[int, int]:
    """Read any line: where the next one starts, and the verdict on this one."""
    field = 0
    good = True
    while good:
        number, i, good = _integer(text, i)
        good = good and field < FIELDS
        if good:
            row[field] = number
            field += 1
            if text[i] != _COMMA:
                break
            i += 1
    whole = good and field == FIELDS and text[i] == _NEWLINE
    while text[i] != _NEWLINE:
        i += 1
    return i + 1, _verdict(row, at, seen) if whole else 1


@njit(cache=True, nogil=True)
def _verdict(row: Array, at: int, seen: Array) -> int:
    reason = _field_reason(row)
    if reason != 0:
        return reason
    if row[1] != at:
        return _BACK if row[1] < at else _LEAPS
    if row[0] == 0 and _again(row, seen):
        return _REPEATED
    return 0


@njit(cache=True, nogil=True)
def _again(row: Array, seen: Array) -> bool:
    """Whether this vehicle, expressway and direction has reported in this second already; notes it if not."""
    key = (np.int64(row[2]) << 32) | (np.int64(row[4]) << 1) | np.int64(row[6])
    slot = ((key ^ (key >> 32)) * np.int64(-7046029254386353131) >> 20) & (len(seen) - 1)
    while seen[slot] != -1:
        if seen[slot] == key:
            return True
        slot = (slot + 1) & (len(seen) - 1)
    seen[slot] = key
    return False
