"""Rows as comma-separated text, at memory speed: parse, render, gather and shift, each in one compiled pass.

Idea: the driver must pass on the exact bytes of the input, even of rows that no parser accepts. So text and
numbers are kept side by side: `starts[i]:starts[i+1]` are the bytes of row i, `values[i]` its fifteen
numbers. Everything works on whole blocks of rows, because a Python call for each row would cost more than the
row. Row format: VLDB 2004, section 3.1.2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.linear_road.rows.arrays import Bools, Bytes, Int32s, Int64s, Ints

FIELDS = 15
TYPE_FIELD, TIME_FIELD, VID_FIELD, SPD_FIELD, XWAY_FIELD, LANE_FIELD, DIR_FIELD = range(7)
SEG_FIELD, POS_FIELD, QID_FIELD, SINIT_FIELD, SEND_FIELD, DOW_FIELD, TOD_FIELD, DAY_FIELD = range(7, FIELDS)
"""Where each field stands in a row, see `fields.COLUMNS`."""

MOST_DIGITS = 11
"""The longest int32 in text: ten digits and a sign."""

_COMMA, _NEWLINE, _RETURN, _MINUS, _ZERO, _NINE, _PLUS, _BLANK, _TAB = 44, 10, 13, 45, 48, 57, 43, 32, 9
_INT32 = 2**31 - 1
TOO_LARGE = -(2**31)
"""What a number beyond 32 bits is read as: no field's range holds it, and where a field is unused it does no
harm.
"""


def parse(text: Bytes) -> tuple[Int32s, Bools, Int64s]:
    r"""Split text that ends in a newline into rows: (values, whole, starts).

    A row that is not 15 integers is not whole.

    >>> lines = b"0,1,2,3,4,5,6,7,8,-1,-1,-1,-1,-1,-1\nnonsense\n"
    >>> values, whole, starts = parse(np.frombuffer(lines, np.uint8))
    >>> values[0, :4].tolist(), whole.tolist(), starts.tolist()
    ([0, 1, 2, 3], [True, False], [0, 36, 45])
    """
    count = int(np.count_nonzero(text == _NEWLINE))
    values = np.empty((count, FIELDS), np.int32)
    whole = np.empty(count, np.bool_)
    starts = np.zeros(count + 1, np.int64)
    _parse(text, values, whole, starts)
    return values, whole, starts


def render(values: Ints) -> tuple[Bytes, Int64s]:
    r"""The text of rows of numbers, and where each row starts in it.

    >>> text, starts = render(np.array([[0, -1, 25], [7, 8, 900]], np.int32))
    >>> text.tobytes(), starts.tolist()
    (b'0,-1,25\n7,8,900\n', [0, 8, 16])
    """
    rows, fields = values.shape
    out = np.empty(rows * fields * (MOST_DIGITS + 1), np.uint8)
    starts = np.zeros(rows + 1, np.int64)
    _render(np.ascontiguousarray(values, np.int32), out, starts)
    return out[: starts[-1]], starts


def gather(text: Bytes, starts: Int64s, rows: Int64s) -> tuple[Bytes, Int64s]:
    """The text of the chosen rows, in the order given, and where each starts in it."""
    lengths = starts[rows + 1] - starts[rows]
    at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=at[1:])
    out = np.empty(at[-1], np.uint8)
    _gather(text, starts, rows, at, out)
    return out, at


def shift(text: Bytes, rows: int, vid: int, qid: int, xway: int) -> Bytes:
    r"""The same rows with VID, QID and XWay moved up; unused (negative) fields stay as they are.

    >>> row = b"3,10,231,-1,0,-1,-1,-1,-1,5,-1,-1,-1,-1,60\n"
    >>> shift(np.frombuffer(row, np.uint8), 1, 1000, 100, 2).tobytes()
    b'3,10,1231,-1,2,-1,-1,-1,-1,105,-1,-1,-1,-1,60\n'
    """
    # Three numbers of a row may grow, none of them beyond the longest.
    out = np.empty(len(text) + 3 * MOST_DIGITS * rows, np.uint8)
    return out[: shift_into(text, out, 0, vid, qid, xway)]


@njit(cache=True, nogil=True)
def _parse(text: Bytes, values: Int32s, whole: Bools, starts: Int64s) -> None:
    i = 0
    for row in range(len(whole)):
        field = 0
        good = True
        while good:
            number, i, good = integer(text, i)
            good = good and field < FIELDS
            if good:
                values[row, field] = number
                field += 1
                if text[i] != _COMMA:
                    break
                i += 1
        # A row is whole if fifteen numbers fill it to its end. Otherwise none of its numbers is trusted.
        whole[row] = good and field == FIELDS and text[i] == _NEWLINE
        if not whole[row]:
            values[row, :] = -1
        # Wherever reading gave up, the next row starts after the newline.
        while text[i] != _NEWLINE:
            i += 1
        i += 1
        starts[row + 1] = i


@njit(cache=True, nogil=True)
def integer(text: Bytes, i: int) -> tuple[int, int, bool]:
    """Read one integer: the number, where it ends, and whether it is one.

    Blanks around it and a sign before it are allowed. What does not fit 32 bits becomes `TOO_LARGE`. Most
    fields are bare digits, so blanks are looked for only where there are no digits.
    """
    # No bounds are checked: the text ends in a newline, which ends every loop here.
    c = text[i]
    negative = False
    if c < _ZERO:
        while c in (_BLANK, _TAB):
            i += 1
            c = text[i]
        negative = c == _MINUS
        if c in (_MINUS, _PLUS):
            i += 1
            c = text[i]
    first = i
    number = 0
    while _ZERO <= c <= _NINE:
        number = number * 10 + int(c - _ZERO)
        # Stay just above the limit: a field of a hundred digits must not overflow into a number that looks
        # valid.
        if number > _INT32:
            number = _INT32 + 1
        i += 1
        c = text[i]
    is_number = i > first
    if number > _INT32:
        number = TOO_LARGE
    elif negative:
        number = -number
    while c in (_BLANK, _TAB, _RETURN):
        i += 1
        c = text[i]
    return number, i, is_number


@njit(cache=True, nogil=True, inline="always")
def _put(out: Bytes, at: int, number: int) -> int:
    if number < 0:
        out[at] = _MINUS
        at += 1
        number = -number
    # Count the digits first, then write them from the last to the first.
    size = 1
    rest = number // 10
    while rest > 0:
        size += 1
        rest //= 10
    for k in range(size - 1, -1, -1):
        out[at + k] = _ZERO + number % 10
        number //= 10
    return at + size


@njit(cache=True, nogil=True)
def _render(values: Int32s, out: Bytes, starts: Int64s) -> None:
    at = 0
    rows, fields = values.shape
    for i in range(rows):
        for j in range(fields):
            at = _put(out, at, int(values[i, j]))
            out[at] = _COMMA
            at += 1
        out[at - 1] = _NEWLINE
        starts[i + 1] = at


@njit(cache=True, nogil=True)
def _gather(text: Bytes, starts: Int64s, rows: Int64s, at: Int64s, out: Bytes) -> None:
    for i in range(len(rows)):
        source = starts[rows[i]]
        for k in range(at[i + 1] - at[i]):
            out[at[i] + k] = text[source + k]


@njit(cache=True, nogil=True)
def shift_into(text: Bytes, out: Bytes, at: int, vid: int, qid: int, xway: int) -> int:
    """Append the shifted rows of `text` to `out` at `at`; returns the new end. `out` must have room."""
    field = 0
    i = 0
    size = len(text)
    while i < size:
        # Only three fields are read as numbers. All others are copied byte by byte, whatever they hold.
        if field in (VID_FIELD, XWAY_FIELD, QID_FIELD):
            number, following, is_number = integer(text, i)
            # A negative number is an unused field, or one beyond 32 bits. Both stay as they are written.
            if is_number and number >= 0:
                offset = vid if field == VID_FIELD else (xway if field == XWAY_FIELD else qid)
                at = _put(out, at, number + offset)
                i = following
        c = text[i]
        while c not in (_COMMA, _NEWLINE):
            out[at] = c
            at += 1
            i += 1
            c = text[i]
        out[at] = c
        at += 1
        i += 1
        field = field + 1 if c == _COMMA else 0
    return at
