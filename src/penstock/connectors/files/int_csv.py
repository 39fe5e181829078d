"""CSV of whole numbers, at memory speed: many outputs contain nothing else.

Arrow's writer formats every value through a general path, which numbers do not need. One compiled loop writes
whole numbers and decimals (whole numbers with a point), two digits at a time; anything else is left to Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

_WIDEST = 22  # sign, digits, point and separator of one value
_MINUS, _POINT, _ZERO, _NEWLINE = 45, 46, 48, 10
Array = np.ndarray[Any, np.dtype[Any]]
_PAIRS = np.frombuffer("".join(f"{number:02d}" for number in range(100)).encode(), np.uint8)
"""The two digits of 0 to 99, one after the other."""


def int_csv(table: pa.Table, sep: str = ",") -> memoryview | None:
    r"""The rows as CSV without header, or None if a column is no number, has nulls, or is a wide decimal.

    >>> from decimal import Decimal
    >>> decimals = pa.array([Decimal("0.050"), Decimal("-7.125")], pa.decimal128(12, 3))
    >>> rows = pa.table({"a": [1, -20], "b": decimals})
    >>> bytes(int_csv(rows))
    b'1,0.050\n-20,-7.125\n'
    >>> int_csv(pa.table({"a": ["x"]})) is None
    True
    """
    columns = [_numbers(column) for column in table.columns]
    if len(sep) != 1 or not columns or any(column is None for column in columns):
        return None
    values = np.empty((table.num_rows, len(columns)), np.int64)
    for i, (numbers, _) in enumerate(columns):  # type: ignore[misc]  # none is None
        values[:, i] = numbers
    scales = np.array([scale for _, scale in columns], np.int64)  # type: ignore[misc]  # none is None
    units = np.power(10, scales).astype(np.uint64)
    out = np.empty(values.size * _WIDEST, np.uint8)
    return out[: _write(values, scales, units, ord(sep), _PAIRS, out)].data


def _numbers(column: pa.ChunkedArray) -> tuple[Array, int] | None:
    """A column as int64, and how many digits come after the decimal point."""
    if column.null_count:
        return None
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        return column.to_numpy(), 0
    if pa.types.is_decimal128(column.type) and 0 <= column.type.scale <= 6 and column.type.precision <= 18:
        array = column.combine_chunks()
        halves = np.frombuffer(array.buffers()[1], np.int64)
        return halves[2 * array.offset : 2 * (array.offset + len(array)) : 2], column.type.scale
    return None


@njit(cache=True, nogil=True, inline="always")
def _magnitude(number: np.int64) -> np.uint64:
    """The number without its sign; the least one has no positive counterpart."""
    return np.uint64(number) if number >= 0 else np.uint64(-(number + 1)) + np.uint64(1)


@njit(cache=True, nogil=True)
def _digits(rest: np.uint64) -> int:
    """How many digits a number has.

    >>> [_digits(np.uint64(number)) for number in (0, 9, 10, 99, 100, 12345678, 10**19)]
    [1, 1, 2, 2, 3, 8, 20]
    """
    digits = 1
    while rest >= np.uint64(10000):
        rest //= np.uint64(10000)
        digits += 4
    if rest >= np.uint64(1000):
        return digits + 3
    if rest >= np.uint64(100):
        return digits + 2
    return digits + 1 if rest >= np.uint64(10) else digits


@njit(cache=True, nogil=True)
def _put(rest: np.uint64, digits: int, at: int, pairs: Array, out: Array) -> None:
    """Write exactly this many digits, from the last to the first."""
    cursor = at + digits
    while cursor - at >= 2:
        low = np.int64(rest % np.uint64(100)) * 2
        rest //= np.uint64(100)
        cursor -= 2
        out[cursor], out[cursor + 1] = pairs[low], pairs[low + 1]
    if cursor > at:
        out[at] = _ZERO + rest % np.uint64(10)


@njit(cache=True, nogil=True)
def _write(values: Array, scales: Array, units: Array, sep: int, pairs: Array, out: Array) -> int:
    at = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            number, point = values[i, j], scales[j]
            if number < 0:
                out[at] = _MINUS
                at += 1
            rest = _magnitude(number)
            if point:
                whole = rest // units[j]
                digits = _digits(whole)
                _put(whole, digits, at, pairs, out)
                out[at + digits] = _POINT
                _put(rest - whole * units[j], point, at + digits + 1, pairs, out)
                at += digits + 1 + point
            elif rest < np.uint64(10):
                out[at] = _ZERO + rest
                at += 1
            else:
                digits = _digits(rest)
                _put(rest, digits, at, pairs, out)
                at += digits
            out[at] = sep
            at += 1
        out[at - 1] = _NEWLINE
    return at
