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
from penstock.linear_road.rows.packed_rows import Columns, PackedRows, is_packed, text_of, unpacked
from penstock.linear_road.rows.refusals import REASONS, field_reason

SCHEMA = (
    "Second TIMESTAMP, Type INT, Time INT, VID INT, Spd INT, XWay INT, Lane INT, Dir INT, Seg INT, Pos INT, "
    "QID INT, Sinit INT, Send INT, DOW INT, TOD INT, Day INT"
)
"""The fifteen fields of a row, and the second in which it was delivered."""

# Indices of `refusals.REASONS`.
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


Arrays = dict[str, Int32s | pa.Array]
Decoded = tuple[Arrays, Int64s, list[str], list[str] | None]
"""Columns; which lines were refused, and why; and their text, if the bytes are no text."""


def decode(chunk: bytes | memoryview, at: int) -> Decoded:
    r"""Decode a delivered file, text or packed, and list which lines were refused, and why.

    >>> columns, lines, reasons, _ = decode(b"0,5,7,30,0,1,0,1,5300,-1,-1,-1,-1,-1,-1\nnonsense\n", 5)
    >>> columns["VID"].tolist(), lines.tolist(), reasons
    ([7], [1], ['not 15 integers'])
    """
    if is_packed(chunk):
        return _decode_packed(unpacked(chunk), at)
    text = np.frombuffer(chunk, np.uint8)
    if len(text) and text[-1] != _NEWLINE:
        text = np.append(text, np.uint8(_NEWLINE))
    kept, columns, verdicts = _columns(text, at, len(text) // _SHORTEST + 16)
    if kept < 0:  # so many short lines cannot be rows; count them
        kept, columns, verdicts = _columns(text, at, int(np.count_nonzero(text == _NEWLINE)))
    return *_judged(kept, columns, verdicts, at), None


def _judged(kept: int, columns: Int32s, verdicts: Codes, at: int) -> tuple[Arrays, Int64s, list[str]]:
    # Nearly always every row is kept. Then there is nothing to search.
    lines = np.flatnonzero(verdicts) if kept < len(verdicts) else np.zeros(0, np.int64)
    arrays: Arrays = {"Second": pa.array(np.full(kept, at * _SECOND, np.int64)).view(UTC)}
    arrays |= {name: columns[i, :kept] for i, name in enumerate(COLUMNS)}
    return arrays, lines, [REASONS[code] for code in verdicts[lines]]


def _decode_packed(rows: PackedRows, at: int) -> Decoded:
    columns, verdicts, seen, again = _room(rows.rows)
    kept, doubtful = rows.rows, -1
    if not len(rows.lines):
        # Column by column is several times faster than row by row, and nearly every second is sound.
        _widen(rows, columns, at)
        doubtful = _check_all(rows.columns, at, seen, again)
    if doubtful < 0:
        # The fast way may have filled the filter, and put fields of requests where rows now move up.
        seen[:], columns[_REPORT_FIELDS:] = 0, -1
        kept, doubtful = _unpack(rows.columns, rows.lines, rows.text, at, columns, verdicts, seen, again)
    if doubtful > 0:
        kept = _without_repeated(columns, kept, verdicts, again[:doubtful])
    arrays, lines, reasons = _judged(kept, columns, verdicts, at)
    return arrays, lines, reasons, text_of(rows, lines, at) if len(lines) else []


def _columns(text: Bytes, at: int, room: int) -> tuple[int, Int32s, Codes]:
    """(rows kept, columns, verdict on each line); -1 rows: too many lines for the room."""
    columns, verdicts, seen, again = _room(room)
    kept, lines, doubtful = _decode(text, at, columns, verdicts, seen, again)
    if doubtful > 0:
        kept = _without_repeated(columns, kept, verdicts[:lines], again[:doubtful])
    return kept, columns, verdicts[:lines]


def _widen(rows: PackedRows, columns: Int32s, at: int) -> None:
    columns[TYPE_FIELD], columns[TIME_FIELD], columns[VID_FIELD] = rows.kind, at, rows.vid
    columns[SPD_FIELD], columns[XWAY_FIELD], columns[LANE_FIELD] = rows.spd, rows.xway, rows.lane
    columns[DIR_FIELD], columns[SEG_FIELD], columns[POS_FIELD] = rows.way, rows.seg, rows.pos
    columns[_REPORT_FIELDS:, np.flatnonzero(rows.kind != POSITION_REPORT)] = rows.requests.T


def _room(rows: int) -> tuple[Int32s, Codes, _Filter, Int64s]:
    """Columns and verdicts to fill, and a filter with the rows on which it was not sure."""
    columns = np.empty((FIELDS, rows), np.int32)
    columns[_REPORT_FIELDS:] = -1
    # A filter that fits into the nearest cache. A vehicle it has not seen has not reported; the few others
    # are checked again.
    seen, again = np.zeros(_power_of_two(rows) // 8, np.uint64), np.empty(rows, np.int64)
    return columns, np.zeros(rows, np.int8), seen, again


def _without_repeated(columns: Int32s, kept: int, verdicts: Codes, doubtful: Int64s) -> int:
    """Refuse the reports that repeat an earlier one; returns how many rows are left."""
    slots = np.full(4 * _power_of_two(len(doubtful)), -1, np.int64)
    repeated = _repeated(columns, kept, doubtful, slots, np.zeros(kept, np.bool_))
    if not repeated.any():
        return kept
    # Kept rows are the lines with verdict 0, in their order. That leads from a row back to its line.
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
        # Nearly all rows are plain position reports: parse those without any branch for other types.
        following = _quick_report(text, i, at, row)
        fields = _REPORT_FIELDS
        if following > 0:
            i = following
        else:
            i, verdicts[line] = _careful(text, i, at, row)
            fields = FIELDS
        if verdicts[line] == 0:
            if row[TYPE_FIELD] == POSITION_REPORT and _noted(
                row[VID_FIELD], row[XWAY_FIELD], row[DIR_FIELD], seen
            ):
                again[doubtful] = kept
                doubtful += 1
            for f in range(fields):
                columns[f, kept] = row[f]
            kept += 1
        line += 1
    return kept, line, doubtful


@njit(cache=True, nogil=True)
def _check_all(packed: Columns, at: int, seen: _Filter, again: Int64s) -> int:
    """Note every report in the filter; returns the number of doubtful ones, -1 if any row is refused."""
    vid, pos, requests, xway, spd, kind, lane, way, seg = packed
    asked = doubtful = 0
    row = np.full(FIELDS, -1, np.int32)
    row[TIME_FIELD] = at
    for i in range(len(vid)):
        if kind[i] == POSITION_REPORT:
            # One bad row is enough to give up: `_unpack` then judges all rows one by one.
            if not _in_range(vid[i], spd[i], xway[i], lane[i], way[i], seg[i], pos[i]):
                return -1
            if _noted(vid[i], xway[i], way[i], seen):
                again[doubtful] = i
                doubtful += 1
            continue
        row[TYPE_FIELD], row[VID_FIELD], row[SPD_FIELD], row[XWAY_FIELD] = kind[i], vid[i], spd[i], xway[i]
        row[LANE_FIELD], row[DIR_FIELD], row[SEG_FIELD], row[POS_FIELD] = lane[i], way[i], seg[i], pos[i]
        for f in range(FIELDS - _REPORT_FIELDS):
            row[_REPORT_FIELDS + f] = requests[asked, f]
        asked += 1
        if _verdict(row, at) != 0:
            return -1
    return doubtful


@njit(cache=True, nogil=True)
def _unpack(
    packed: Columns,
    lines: Int32s,
    text: Bytes,
    at: int,
    columns: Int32s,
    verdicts: Codes,
    seen: _Filter,
    again: Int64s,
) -> tuple[int, int]:
    """The same as `_decode` for packed rows: most are sound reports, whose numbers are only copied."""
    vid, pos, requests, xway, spd, kind, lane, way, seg = packed
    i = kept = doubtful = p = asked = t = 0
    row = np.full(FIELDS, -1, np.int32)
    row[TIME_FIELD] = at
    for line in range(len(verdicts)):
        fields = FIELDS
        # Rows that could not be packed travel as text and keep their line among the packed ones.
        if t < len(lines) and lines[t] == line:
            i, verdicts[line] = _careful(text, i, at, row)
            t += 1
        else:
            row[TYPE_FIELD], row[TIME_FIELD], row[VID_FIELD], row[SPD_FIELD] = kind[p], at, vid[p], spd[p]
            row[XWAY_FIELD], row[LANE_FIELD], row[DIR_FIELD] = xway[p], lane[p], way[p]
            row[SEG_FIELD], row[POS_FIELD] = seg[p], pos[p]
            if kind[p] == POSITION_REPORT:
                fields = _REPORT_FIELDS
                row[_REPORT_FIELDS:] = -1  # a request before it has left its own numbers there
            else:
                row[_REPORT_FIELDS:] = requests[asked]
                asked += 1
            if fields == FIELDS or not _sound_report(row):
                verdicts[line] = _verdict(row, at)
            p += 1
        if verdicts[line] == 0:
            if row[TYPE_FIELD] == POSITION_REPORT and _noted(
                row[VID_FIELD], row[XWAY_FIELD], row[DIR_FIELD], seen
            ):
                again[doubtful] = kept
                doubtful += 1
            for f in range(fields):
                columns[f, kept] = row[f]
            kept += 1
    return kept, doubtful


@njit(cache=True, nogil=True, inline="always")
def _sound_report(row: Int32s) -> bool:
    """Whether the numbers of a report are all in range; if not, `field_reason` tells which is not."""
    return _in_range(
        row[VID_FIELD],
        row[SPD_FIELD],
        row[XWAY_FIELD],
        row[LANE_FIELD],
        row[DIR_FIELD],
        row[SEG_FIELD],
        row[POS_FIELD],
    )


@njit(cache=True, nogil=True, inline="always")
def _in_range(vid: int, spd: int, xway: int, lane: int, way: int, seg: int, pos: int) -> bool:
    if vid < 0 or xway < 0 or not 0 <= spd <= _TOP_SPEED or not 0 <= lane <= EXIT_LANE or not 0 <= way <= 1:
        return False
    # Two comparisons say that Seg is Pos div 5280; a division would take longer.
    begin = FEET_PER_SEGMENT * np.int64(seg)
    return bool(0 <= seg < SEGMENTS and begin <= pos < begin + FEET_PER_SEGMENT)


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
        # What is below '0' wraps around to a large number, so one comparison finds a digit. The newline at
        # the end stops the loop before the text ends.
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
    # A row that is not whole gets verdict 1, "not 15 integers", whatever numbers were read.
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
    # Nothing overlaps: a vehicle has 31 bits, an expressway 31, its direction 1. So a key is never negative,
    # and -1 can mark an empty slot.
    return (np.int64(vid) << 32) | (np.int64(xway) << 1) | np.int64(direction)


@njit(cache=True, nogil=True, inline="always")
def _mixed(key: np.int64) -> np.int64:
    # Multiplying by 2^64 / golden ratio mixes upwards. So the vehicle is folded into the lower half first.
    # The lowest bits depend on few others and are cut off.
    return ((key ^ (key >> 32)) * np.int64(-7046029254386353131)) >> 20


@njit(cache=True, nogil=True, inline="always")
def _noted(vid: int, xway: int, direction: int, seen: _Filter) -> bool:
    """Note this vehicle, expressway and direction; returns whether the filter may have seen them before."""
    hashed = _mixed(_key(vid, xway, direction)) & (64 * len(seen) - 1)
    bit = np.uint64(1) << np.uint64(hashed & 63)
    word = seen[hashed >> 6]
    seen[hashed >> 6] = word | bit
    return bool(word & bit)


@njit(cache=True, nogil=True)
def _repeated(columns: Int32s, kept: int, doubtful: Int64s, slots: Int64s, repeated: Bools) -> Bools:
    """Which kept rows are repeated reports of a vehicle, expressway and direction."""
    size = len(slots)
    first = np.full(size, -1, np.int64)
    # Most rows are none of the doubtful ones. A filter tells, so that they need no look into the table.
    few = np.zeros(size // 4, np.uint64)
    for row in doubtful:
        vid, xway, direction = columns[VID_FIELD, row], columns[XWAY_FIELD, row], columns[DIR_FIELD, row]
        _noted(vid, xway, direction, few)
        slot = _slot(_key(vid, xway, direction), slots)
        slots[slot] = _key(vid, xway, direction)
    for row in range(kept):
        vid, xway, direction = columns[VID_FIELD, row], columns[XWAY_FIELD, row], columns[DIR_FIELD, row]
        if columns[TYPE_FIELD, row] == POSITION_REPORT and _may_have(vid, xway, direction, few):
            slot = _slot(_key(vid, xway, direction), slots)
            if slots[slot] >= 0:
                # The filter suspects some reports wrongly: a key in the table may occur only once.
                repeated[row] = first[slot] >= 0
                first[slot] = row
    return repeated


@njit(cache=True, nogil=True, inline="always")
def _may_have(vid: int, xway: int, direction: int, seen: _Filter) -> bool:
    hashed = _mixed(_key(vid, xway, direction)) & (64 * len(seen) - 1)
    return bool(seen[hashed >> 6] & (np.uint64(1) << np.uint64(hashed & 63)))


@njit(cache=True, nogil=True, inline="always")
def _slot(key: np.int64, slots: Int64s) -> np.int64:
    """Where a key is, or would be."""
    slot = _mixed(key) & (len(slots) - 1)
    while slots[slot] not in (-1, key):
        slot = (slot + 1) & (len(slots) - 1)
    return slot
