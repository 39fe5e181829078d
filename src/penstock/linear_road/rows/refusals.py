"""Which rows break the format, and why: one pass over a block of rows.

The rules are those of docs/linear-road-semantics.md, "Input". Idea: the rules look at a row, at the last
accepted row and at the next one. So a block of rows and two small memories decide everything: the last
accepted Time, and the reports seen in that second. Only the fields that a type uses are checked. `drive`,
`describe` and `history` refuse by this module. The validator has rules of its own, and a test compares the
two.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from penstock.linear_road.rows.arrays import Bools, Codes, Int32s, Int64s
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
    DAILY,
    EXIT_LANE,
    FEET_PER_SEGMENT,
    POSITION_REPORT,
    SEGMENTS,
    TRAVEL,
)

REASONS: tuple[str, ...] = (
    "accepted",
    "not 15 integers",
    "unknown type",
    "time out of range",
    "vehicle out of range",
    "speed out of range",
    "expressway out of range",
    "lane out of range",
    "direction out of range",
    "segment out of range",
    "position out of range",
    "Seg is not Pos div 5280",
    "query out of range",
    "start segment out of range",
    "end segment out of range",
    "day of week out of range",
    "time of day out of range",
    "day out of range",
    "time goes back",
    "time leaps ahead",
    "report repeated",
)
"""What each refusal code means, in the words that the validator uses too; code 0 is an accepted row."""

EXPECTED: dict[int, str] = {
    2: "Type 0, 2, 3 or 4",
    3: "Time 0..10799",
    4: "VID 0 or more",
    5: "Spd 0..100",
    6: "XWay 0 or more",
    7: "Lane 0..4",
    8: "Dir 0..1",
    9: "Seg 0..99",
    10: "Pos 0..527999",
    12: "QID 0 or more",
    13: "Sinit 0..99",
    14: "Send 0..99",
    15: "DOW 1..7",
    16: "TOD 1..1440",
    17: "Day 1..69",
}
"""What a field out of range should have held."""

(
    _NOT_WHOLE,
    _TYPE,
    _TIME,
    _VID,
    _SPEED,
    _XWAY,
    _LANE,
    _DIRECTION,
    _SEGMENT,
    _POSITION,
    _SEGMENT_OF_POSITION,
    _QID,
    _START,
    _END,
    _DAY_OF_WEEK,
    _TIME_OF_DAY,
    _DAY,
    _GOES_BACK,
    _LEAPS,
    _REPEATED,
) = range(1, len(REASONS))
"""The codes, in the order of `REASONS`."""

_LEAP = 60
"""Seconds that Time may advance between two rows; more is a leap."""
# At first enough for the reports of one second, some 1,700 for each expressway. A power of two, so that a
# mask can take the place of a division.
_SLOTS = 1 << 16
_HASH = np.int64(-7046029254386353131)
_LAST_SECOND, _LAST_DAY, _MINUTES_A_DAY = 10_799, 69, 1_440
_LAST_SEGMENT, _LAST_FOOT, _TOP_SPEED = SEGMENTS - 1, SEGMENTS * FEET_PER_SEGMENT - 1, 100


@dataclass
class Seen:
    """What the rules remember between blocks: the last accepted Time and the reports of that second.

    A Time of -1 means none yet. The reports are a hash table, of which at most half is in use.
    """

    last: int = -1
    reports: int = 0
    """How many reports of the last accepted Time were accepted."""
    keys: Int64s = field(default_factory=lambda: np.zeros(_SLOTS, np.int64))
    stamps: Int32s = field(default_factory=lambda: np.full(_SLOTS, -1, np.int32))

    def grow(self) -> None:
        """Make room for twice as many reports in a second."""
        keys, stamps = self.keys, self.stamps
        self.keys, self.stamps = np.zeros(2 * len(keys), np.int64), np.full(2 * len(keys), -1, np.int32)
        _move(keys[stamps == self.last], self.last, self.keys, self.stamps)


def refuse_alone(values: Int32s, whole: Bools) -> Codes:
    """The code of each row by itself, regardless of the rows around it."""
    alone = np.full(len(values), _NOT_WHOLE, np.int8)
    _alone(values, whole, alone)
    return alone


def refuse(values: Int32s, alone: Codes, decide: int, seen: Seen) -> tuple[Codes, Int32s]:
    """Decide the first `decide` rows: (reasons, seconds); later rows serve only as "the next row".

    The second of a refused row is that of the last accepted row before it, so that it can be passed on in its
    place; -1 if there is none.
    """
    reasons = np.zeros(decide, np.int8)
    seconds = np.zeros(decide, np.int32)
    done = 0
    # Compiled code stops where the table must grow, and goes on from there.
    while (done := _refuse_from(done, values, alone, seen, reasons, seconds)) < decide:
        seen.grow()
    return reasons, seconds


def _refuse_from(
    begin: int, values: Int32s, alone: Codes, seen: Seen, reasons: Codes, seconds: Int32s
) -> int:
    known = seen.last, seen.reports
    done, last, reports = _refuse(begin, values, alone, known, seen.keys, seen.stamps, reasons, seconds)
    seen.last, seen.reports = int(last), int(reports)
    return int(done)


@njit(cache=True, nogil=True)
def _refuse(
    begin: int,
    values: Int32s,
    alone: Codes,
    known: tuple[int, int],
    keys: Int64s,
    stamps: Int32s,
    reasons: Codes,
    seconds: Int32s,
) -> tuple[int, int, int]:
    """Decide rows from `begin` on; returns where it stopped, the last accepted Time and its reports."""
    last, reports = known
    for i in range(begin, len(reasons)):
        reason = alone[i]
        if reason == 0:
            reason = _order_reason(values, alone, i, last)
        if reason == 0 and values[i, TIME_FIELD] != last:
            reports = 0
        # Check this last, because the check also remembers: a row refused for another reason must not count.
        if reason == 0 and values[i, TYPE_FIELD] == POSITION_REPORT:
            if 2 * reports >= len(keys):
                return i, last, reports
            if _repeated(values[i], keys, stamps):
                reason = _REPEATED
            else:
                reports += 1
        if reason == 0:
            last = values[i, TIME_FIELD]
        reasons[i] = reason
        seconds[i] = last
    return len(reasons), last, reports


@njit(cache=True, nogil=True)
def _alone(values: Int32s, whole: Bools, alone: Codes) -> None:
    for i in range(len(values)):
        if whole[i]:
            alone[i] = field_reason(values[i])


@njit(cache=True, nogil=True)
def field_reason(row: Int32s) -> int:
    """What is wrong with a row by itself: an index into `REASONS`, 0 if nothing is."""
    kind = row[TYPE_FIELD]
    if kind not in (POSITION_REPORT, BALANCE, DAILY, TRAVEL):
        return _TYPE
    if row[TIME_FIELD] < 0 or row[TIME_FIELD] > _LAST_SECOND:
        return _TIME
    if row[VID_FIELD] < 0:
        return _VID
    if kind == POSITION_REPORT:
        return int(_report_reason(row))
    # A balance belongs to the vehicle, so the expressway of its request is not used.
    if kind != BALANCE and row[XWAY_FIELD] < 0:
        return _XWAY
    if row[QID_FIELD] < 0:
        return _QID
    if kind == DAILY and (row[DAY_FIELD] < 1 or row[DAY_FIELD] > _LAST_DAY):
        return _DAY
    return _journey_reason(row) if kind == TRAVEL else 0


@njit(cache=True, nogil=True)
def _report_reason(row: Int32s) -> int:
    if row[SPD_FIELD] < 0 or row[SPD_FIELD] > _TOP_SPEED:
        return _SPEED
    if row[XWAY_FIELD] < 0:
        return _XWAY
    if row[LANE_FIELD] < 0 or row[LANE_FIELD] > EXIT_LANE:
        return _LANE
    if row[DIR_FIELD] < 0 or row[DIR_FIELD] > 1:
        return _DIRECTION
    if row[SEG_FIELD] < 0 or row[SEG_FIELD] > _LAST_SEGMENT:
        return _SEGMENT
    if row[POS_FIELD] < 0 or row[POS_FIELD] > _LAST_FOOT:
        return _POSITION
    return _SEGMENT_OF_POSITION if row[SEG_FIELD] != row[POS_FIELD] // FEET_PER_SEGMENT else 0


@njit(cache=True, nogil=True)
def _journey_reason(row: Int32s) -> int:
    if row[SINIT_FIELD] < 0 or row[SINIT_FIELD] > _LAST_SEGMENT:
        return _START
    if row[SEND_FIELD] < 0 or row[SEND_FIELD] > _LAST_SEGMENT:
        return _END
    if row[SINIT_FIELD] == row[SEND_FIELD]:
        return 0  # a journey of no segments is answered 0,0 whatever the day and time of day
    if row[DOW_FIELD] < 1 or row[DOW_FIELD] > 7:
        return _DAY_OF_WEEK
    return _TIME_OF_DAY if row[TOD_FIELD] < 1 or row[TOD_FIELD] > _MINUTES_A_DAY else 0


@njit(cache=True, nogil=True)
def _order_reason(values: Int32s, alone: Codes, i: int, last: int) -> int:
    time = values[i, TIME_FIELD]
    if time < last:
        return _GOES_BACK
    if last < 0 or time <= last + _LEAP:
        return 0
    # The next row that is valid by itself: a Time out of range must not make a leap look normal. Without a
    # row before and one after, nothing shows that this row is the wrong one.
    for k in range(i + 1, len(values)):
        if alone[k] == 0:
            return _LEAPS if time > values[k, TIME_FIELD] + _LEAP else 0
    return 0


@njit(cache=True, nogil=True)
def _repeated(row: Int32s, keys: Int64s, stamps: Int32s) -> bool:
    """Whether this vehicle, expressway and direction already reported this second; remembers it if not.

    A slot is empty if its stamp is not this second, so the table never needs clearing.
    """
    key = (np.int64(row[VID_FIELD]) << 32) | (np.int64(row[XWAY_FIELD]) << 1) | np.int64(row[DIR_FIELD])
    slot = _slot(key, row[TIME_FIELD], keys, stamps)
    if stamps[slot] == row[TIME_FIELD]:
        return True
    stamps[slot] = row[TIME_FIELD]
    keys[slot] = key
    return False


@njit(cache=True, nogil=True, inline="always")
def _slot(key: np.int64, time: int, keys: Int64s, stamps: Int32s) -> np.int64:
    """Where a report of this second is, or would be."""
    # A multiplicative hash: the odd constant spreads neighbouring numbers over the table. It mixes upwards,
    # so the vehicle is folded into the lower half first.
    slot = ((key ^ (key >> 32)) * _HASH >> 20) & (len(keys) - 1)
    while stamps[slot] == time and keys[slot] != key:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@njit(cache=True, nogil=True)
def _move(reports: Int64s, time: int, keys: Int64s, stamps: Int32s) -> None:
    """Put the reports of a second into a new table."""
    for key in reports:
        slot = _slot(key, time, keys, stamps)
        keys[slot], stamps[slot] = key, time
