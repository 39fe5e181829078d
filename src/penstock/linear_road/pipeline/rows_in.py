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
    count = int(np.count_nonzero(text == _NEWLINE))
    columns = np.empty((FIELDS, count), np.int32)
    verdicts = np.empty(count, np.int8)
    seen = np.full(2 * _power_of_two(count), -1, np.int64)
    kept = _decode(text, at, columns, verdicts, seen)
    lines = np.flatnonzero(verdicts) if kept < count else np.zeros(0, np.int64)
    made: dict[str, Any] = {"Second": pa.array(np.full(kept, at * _SECOND, np.int64)).view(UTC)}
    made |= {name: columns[i, :kept] for i, name in enumerate(NAMES)}
    return made, lines, [REASONS[code] for code in verdicts[lines]]


def _power_of_two(count: int) -> int:
    return 1 << max(4, int(count - 1).bit_length()) if count else 16


@njit(cache=True, nogil=True)
def _decode(text: Array, at: int, columns: Array, verdicts: Array, seen: Array) -> int:
    i = 0
    kept = 0
    row = np.empty(FIELDS, np.int32)
    for line in range(len(verdicts)):
        field = 0
        good = True
        while good:
            # most fields are bare digits; anything else is left to the careful reader
            c = text[i]
            if 48 <= c <= 57:
                number = int(c - 48)
                k = i + 1
                c = text[k]
                while 48 <= c <= 57 and k < i + 10:
                    number = number * 10 + int(c - 48)
                    k += 1
                    c = text[k]
                if c in (_COMMA, _NEWLINE) and number <= 2147483647:
                    i = k
                else:
                    number, i, good = _integer(text, i)
            elif c == 45 and text[i + 1] == 49 and text[i + 2] in (_COMMA, _NEWLINE):
                number = -1
                i += 2
            else:
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
        i += 1
        verdict = _verdict(row, at, seen) if whole else 1
        verdicts[line] = verdict
        if verdict == 0:
            for f in range(FIELDS):
                columns[f, kept] = row[f]
            kept += 1
    return kept


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
