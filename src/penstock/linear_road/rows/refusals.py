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

from penstock.linear_road.rows.csv_rows import Array

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

_LEAP = 60
_SLOTS = 1 << 20


@dataclass
class Seen:
    """What the rules remember between blocks: the last accepted Time and the reports of that second.

    A Time of -1 means none yet.
    """

    last: int = -1
    keys: Array = field(default_factory=lambda: np.zeros(_SLOTS, np.int64))
    stamps: Array = field(default_factory=lambda: np.full(_SLOTS, -1, np.int32))


def refuse_alone(values: Array, whole: Array) -> Array:
    """The code of each row by itself, regardless of the rows around it."""
    alone = np.ones(len(values), np.int8)
    _alone(values, whole, alone)
    return alone


def refuse(values: Array, alone: Array, decide: int, seen: Seen) -> tuple[Array, Array]:
    """Decide the first `decide` rows: (reasons, seconds); later rows serve only as "the next row".

    The second of a refused row is that of the last accepted row before it, so that it can be passed on in its
    place; -1 if there is none.
    """
    reasons = np.zeros(decide, np.int8)
    seconds = np.zeros(decide, np.int32)
    seen.last = int(_refuse(values, alone, decide, seen.last, seen.keys, seen.stamps, reasons, seconds))
    return reasons, seconds


@njit(cache=True, nogil=True)
def _refuse(
    values: Array,
    alone: Array,
    decide: int,
    last: int,
    keys: Array,
    stamps: Array,
    reasons: Array,
    seconds: Array,
) -> int:
    for i in range(decide):
        reason = alone[i]
        if reason == 0:
            reason = _order_reason(values, alone, i, last)
        # Check this last, because the check also remembers: a row refused for another reason must not count.
        if reason == 0 and values[i, 0] == 0 and _repeated(values[i], keys, stamps):
            reason = 20
        if reason == 0:
            last = values[i, 1]
        reasons[i] = reason
        seconds[i] = last
    return last


@njit(cache=True, nogil=True)
def _alone(values: Array, whole: Array, alone: Array) -> None:
    for i in range(len(values)):
        if whole[i]:
            alone[i] = field_reason(values[i])


@njit(cache=True, nogil=True)
def field_reason(row: Array) -> int:
    """What is wrong with a row by itself: an index into `REASONS`, 0 if nothing is."""
    kind = row[0]
    if kind not in (0, 2, 3, 4):
        return 2
    if row[1] < 0 or row[1] > 10799:
        return 3
    if row[2] < 0:
        return 4
    if kind == 0:
        return _report_reason(row)
    if kind != 2 and row[4] < 0:
        return 6
    if row[9] < 0:
        return 12
    if kind == 3 and (row[14] < 1 or row[14] > 69):
        return 17
    return _journey_reason(row) if kind == 4 else 0


@njit(cache=True, nogil=True)
def _report_reason(row: Array) -> int:
    if row[3] < 0 or row[3] > 100:
        return 5
    if row[4] < 0:
        return 6
    if row[5] < 0 or row[5] > 4:
        return 7
    if row[6] < 0 or row[6] > 1:
        return 8
    if row[7] < 0 or row[7] > 99:
        return 9
    if row[8] < 0 or row[8] > 527999:
        return 10
    return 11 if row[7] != row[8] // 5280 else 0


@njit(cache=True, nogil=True)
def _journey_reason(row: Array) -> int:
    if row[10] < 0 or row[10] > 99:
        return 13
    if row[11] < 0 or row[11] > 99:
        return 14
    if row[10] == row[11]:
        return 0  # a journey of no segments is answered 0,0 whatever the day and time of day
    if row[12] < 1 or row[12] > 7:
        return 15
    return 16 if row[13] < 1 or row[13] > 1440 else 0


@njit(cache=True, nogil=True)
def _order_reason(values: Array, alone: Array, i: int, last: int) -> int:
    time = values[i, 1]
    if time < last:
        return 18
    if last < 0 or time <= last + _LEAP:
        return 0
    # The next row that is valid by itself: a Time out of range must not make a leap look normal. Without a
    # row before and one after, nothing shows that this row is the wrong one.
    for k in range(i + 1, len(values)):
        if alone[k] == 0:
            return 19 if time > values[k, 1] + _LEAP else 0
    return 0


@njit(cache=True, nogil=True)
def _repeated(row: Array, keys: Array, stamps: Array) -> bool:
    """Whether this vehicle, expressway and direction already reported this second; remembers it if not.

    A slot is empty if its stamp is not this second, so the table never needs clearing.
    """
    key = (np.int64(row[2]) << 32) | (np.int64(row[4]) << 1) | np.int64(row[6])
    # A multiplicative hash: the odd constant spreads neighbouring numbers over the table.
    slot = (key * np.int64(-7046029254386353131) >> 20) & (len(keys) - 1)
    for _ in range(len(keys)):
        if stamps[slot] != row[1]:
            stamps[slot] = row[1]
            keys[slot] = key
            return False
        if keys[slot] == key:
            return True
        slot = (slot + 1) & (len(keys) - 1)
    return False
