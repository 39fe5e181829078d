"""From the bytes of a delivered second to columns; rows that break the format are refused.

Meaning: docs/linear-road-semantics.md, "Input". Idea: one compiled pass reads, judges and packs. A file holds
the rows that arrived in one second, so the rules about earlier and later rows become one comparison: a row
keeps to the format only if its Time is that second. A smaller Time was passed on late, a larger one had leapt
ahead. The driver cannot have delivered it otherwise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from penstock.linear_road.rows.arrays import Bools, Bytes, Codes, Int32s, Int64s
from penstock.linear_road.rows.csv_rows import (
    DIR_FIELD,
    FIELDS,
    LANE_FIELD,
    POS_FIELD,
    SEG_FIELD,
    SPD_FIELD,
    TIME_FIELD,
    TYPE_FIELD,
    VID_FIELD,
    XWAY_FIELD,
    integer,
)
from penstock.linear_road.rows.fields import COLUMNS, EXIT_LANE, FEET_PER_SEGMENT, POSITION_REPORT, SEGMENTS
from penstock.linear_road.rows.refusals import REASONS, field_reason

SCHEMA = (
    "Second TIMESTAMP, Type INT, Time INT, VID INT, Spd INT, XWay INT, Lane INT, Dir INT, Seg INT, Pos INT, "
    "QID INT, Sinit INT, Send INT, DOW INT, TOD INT, Day INT"
)
"""The fifteen fields of a row, and the second in which it was delivered."""

_BACK, _LEAPS, _REPEATED = 18, 19, 20
_COMMA, _NEWLINE, _MINUS, _ZERO, _ONE = 44, 10, 45, 48, 49
_TOP_SPEED = 100
_MOST_DIGITS = 9
"""So many digits always fit 32 bits; longer numbers are left to the careful reader."""
_SHORTEST = 2 * FIELDS  # bytes of a row of fifteen digits
_REPORT_FIELDS, _TAIL = 9, 18  # a report's own fields; the bytes of the others, all -1
_SECOND = 1_000_000
UTC = pa.timestamp("us", tz="UTC")
_Filter = npt.NDArray[np.uint64]


def decode(chunk: bytes | memoryview, at: int) -> tuple[dict[str, Int32s | pa.Array], Int64s, list[str]]:
    r"""Decode a delivered file into columns, and list which lines were refused, and why.

    >>> columns, lines, reasons = decode(b"0,5,7,30,0,1,0,1,5300,-1,-1,-1,-1,-1,-1\nnonsense\n", 5)
    >>> columns["VID"].tolist(), lines.tolist(), reasons
    ([7], [1], ['not 15 integers'])
    """
    text = np.frombuffer(chunk, np.uint8)
    if len(text) and text[-1] != _NEWLINE:
        text = np.append(text, np.uint8(_NEWLINE))
    kept, columns, verdicts = _columns(text, at, len(text) // _SHORTEST + 16)
    if kept < 0:  # so many short lines cannot be rows; count them
        kept, columns, verdicts = _columns(text, at, int(np.count_nonzero(text == _NEWLINE)))
    lines = np.flatnonzero(verdicts) if kept < len(verdicts) else np.zeros(0, np.int64)
    arrays: dict[str, Int32s | pa.Array] = {
        "Second": pa.array(np.full(kept, at * _SECOND, np.int64)).view(UTC)
    }
    arrays |= {name: columns[i, :kept] for i, name in enumerate(COLUMNS)}
    return arrays, lines, [REASONS[code] for code in verdicts[lines]]


def _columns(text: Bytes, at: int, room: int) -> tuple[int, Int32s, Codes]:
    """(rows kept, columns, verdict on each line); -1 rows: too many lines for the room."""
    columns = np.empty((FIELDS, room), np.int32)
    columns[_REPORT_FIELDS:] = -1
    verdicts = np.zeros(room, np.int8)
    # A filter that fits into the nearest cache. A vehicle it has not seen has not reported; the few others
    # are checked again.
    seen, again = np.zeros(_power_of_two(room) // 8, np.uint64), np.empty(room, np.int64)
    kept, lines, doubtful = _decode(text, at, columns, verdicts, seen, again)
    if doubtful > 0:
        kept = _without_repeated(columns, kept, verdicts[:lines], again[:doubtful])
    return kept, columns, verdicts[:lines]


def _without_repeated(columns: Int32s, kept: int, verdicts: Codes, doubtful: Int64s) -> int:
    """Refuse the reports that repeat an earlier one; returns how many rows are left."""
    slots = np.full(4 * _power_of_two(len(doubtful)), -1, np.int64)
    repeated = _repeated(columns, kept, doubtful, slots, np.zeros(kept, np.bool_))
    if not repeated.any():
        return kept
    verdicts[np.flatnonzero(verdicts == 0)[repeated]] = _REPEATED
    left = np.flatnonzero(~repeated)
    columns[:, : len(left)] = columns[:, left]
    return len(left)


def _power_of_two(count: int) -> int:
    return 1 << max(4, int(count - 1).bit_length()) if count else 16


@njit(cache=True, nogil=True)
def _decode(
    text: Bytes, at: int, columns: Int32s, verdicts: Codes, seen: _Filter, again: Int64s
) -> tuple[int, int, int]:
    i, kept, line, doubtful = 0, 0, 0, 0
    row = np.full(FIELDS, -1, np.int32)
    while i < len(text):
        if line == len(verdicts):
            return -1, line, 0
        following = _quick_report(text, i, at, row)
        fields = _REPORT_FIELDS
        if following > 0:
            i = following
        else:
            i, verdicts[line] = _careful(text, i, at, row)
            fields = FIELDS
        if verdicts[line] == 0:
            if row[TYPE_FIELD] == POSITION_REPORT and _noted(row, seen):
                again[doubtful] = kept
                doubtful += 1
            for f in range(fields):
                columns[f, kept] = row[f]
            kept += 1
        line += 1
    return kept, line, doubtful


@njit(cache=True, nogil=True)
def _quick_report(text: Bytes, i: int, at: int, row: Int32s) -> int:
    """Read a sound report in its usual spelling: nine numbers of digits alone, then six times -1.

    Returns where it ends; 0 if the careful reader must look at it.
    """
    if i + _TAIL + 2 * _REPORT_FIELDS > len(text) or text[i] != _ZERO or text[i + 1] != _COMMA:
        return 0
    row[TYPE_FIELD] = POSITION_REPORT
    i += 2
    for field in range(1, _REPORT_FIELDS):
        number = 0
        first = i
        digit = text[i] - np.uint8(_ZERO)
        while digit < 10:
            number = number * 10 + digit
            i += 1
            digit = text[i] - np.uint8(_ZERO)
        if text[i] != _COMMA or i == first or i > first + _MOST_DIGITS:
            return 0
        row[field] = number
        i += 1
    if i + _TAIL > len(text) or row[TIME_FIELD] != at or row[SPD_FIELD] > _TOP_SPEED:
        return 0
    if row[LANE_FIELD] > EXIT_LANE or row[DIR_FIELD] > 1 or row[SEG_FIELD] >= SEGMENTS:
        return 0
    begin = FEET_PER_SEGMENT * row[SEG_FIELD]
    if not begin <= row[POS_FIELD] < begin + FEET_PER_SEGMENT:
        return 0
    # The bytes of `-1` first, then the commas between: two plain loops that the compiler unrolls.
    for k in range(0, _TAIL, 3):
        if text[i + k] != _MINUS or text[i + k + 1] != _ONE:
            return 0
    for k in range(2, _TAIL - 1, 3):
        if text[i + k] != _COMMA:
            return 0
    return i + _TAIL if text[i + _TAIL - 1] == _NEWLINE else 0


@njit(cache=True, nogil=True)
def _careful(text: Bytes, i: int, at: int, row: Int32s) -> tuple[int, int]:
    """Read any line; returns where the next one starts, and the verdict on this one."""
    field = 0
    good = True
    while good:
        number, i, good = integer(text, i)
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
    return i + 1, _verdict(row, at) if whole else 1


@njit(cache=True, nogil=True)
def _verdict(row: Int32s, at: int) -> int:
    reason = field_reason(row)
    if reason == 0 and row[TIME_FIELD] != at:
        return _BACK if row[TIME_FIELD] < at else _LEAPS
    return reason


@njit(cache=True, nogil=True, inline="always")
def _key(vid: int, xway: int, direction: int) -> np.int64:
    return (np.int64(vid) << 32) | (np.int64(xway) << 1) | np.int64(direction)


@njit(cache=True, nogil=True, inline="always")
def _mixed(key: np.int64) -> np.int64:
    return ((key ^ (key >> 32)) * np.int64(-7046029254386353131)) >> 20


@njit(cache=True, nogil=True)
def _noted(row: Int32s, seen: _Filter) -> bool:
    """Note this vehicle, expressway and direction; returns whether the filter may have seen them before."""
    hashed = _mixed(_key(row[VID_FIELD], row[XWAY_FIELD], row[DIR_FIELD])) & (64 * len(seen) - 1)
    bit = np.uint64(1) << np.uint64(hashed & 63)
    word = seen[hashed >> 6]
    seen[hashed >> 6] = word | bit
    return bool(word & bit)


@njit(cache=True, nogil=True)
def _repeated(columns: Int32s, kept: int, doubtful: Int64s, slots: Int64s, repeated: Bools) -> Bools:
    """Which kept rows are repeated reports of a vehicle, expressway and direction."""
    size = len(slots)
    first = np.full(size, -1, np.int64)
    for row in doubtful:
        key = _key(columns[VID_FIELD, row], columns[XWAY_FIELD, row], columns[DIR_FIELD, row])
        slot = _mixed(key) & (size - 1)
        while slots[slot] not in (-1, key):
            slot = (slot + 1) & (size - 1)
        slots[slot] = key
    for row in range(kept):
        if columns[TYPE_FIELD, row] == POSITION_REPORT:
            key = _key(columns[VID_FIELD, row], columns[XWAY_FIELD, row], columns[DIR_FIELD, row])
            slot = _mixed(key) & (size - 1)
            while slots[slot] not in (-1, key):
                slot = (slot + 1) & (size - 1)
            if slots[slot] == key:
                repeated[row] = first[slot] >= 0
                first[slot] = row
    return repeated
