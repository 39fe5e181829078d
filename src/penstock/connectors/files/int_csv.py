"""CSV of whole numbers, at memory speed: many outputs contain nothing else.

Arrow's writer formats every value through a general path, which numbers do not need. One compiled loop writes
whole numbers and decimals (whole numbers with a point); anything else is left to Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

_WIDEST = 22  # sign, digits, point and separator of one value
_MINUS, _POINT, _ZERO, _NEWLINE = 45, 46, 48, 10
Array = np.ndarray[Any, np.dtype[Any]]


def int_csv(table: pa.Table, sep: str = ",") -> bytes | None:
    r"""The rows as CSV without header, or None if a column is no number, has nulls, or is a wide decimal.

    >>> from decimal import Decimal
    >>> decimals = pa.array([Decimal("0.050"), Decimal("-7.125")], pa.decimal128(12, 3))
    >>> rows = pa.table({"a": [1, -20], "b": decimals})
    >>> int_csv(rows)
    b'1,0.050\n-20,-7.125\n'
    >>> int_csv(pa.table({"a": ["x"]})) is None
    True
    """
    columns = [_numbers(column) for column in table.columns]
    if len(sep) != 1 or not columns or any(column is None for column in columns):
        return None
    values = np.empty((table.num_rows, len(columns)), np.int64)
    for i, (numbers, _) in enumerate(columns):  # type: ignore[misc]
        values[:, i] = numbers
    scales = np.array([scale for _, scale in columns], np.int64)  # type: ignore[misc]
    out = np.empty(values.size * _WIDEST, np.uint8)
    return out[: _write(values, scales, ord(sep), out)].tobytes()


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


@njit(cache=True, nogil=True)
def _write(values: Array, scales: Array, sep: int, out: Array) -> int:
    at = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            number = values[i, j]
            if number < 0:
                out[at] = _MINUS
                at += 1
            digits = 1
            left = abs(number) // 10
            while left > 0:
                digits += 1
                left //= 10
            rest = abs(number)
            point = scales[j]
            width = max(digits, point + 1) + (1 if point else 0)
            cursor = at + width - 1
            for k in range(width):
                if point and k == point:
                    out[cursor] = _POINT
                else:
                    out[cursor] = _ZERO + rest % 10
                    rest //= 10
                cursor -= 1
            at += width
            out[at] = sep
            at += 1
        out[at - 1] = _NEWLINE
    return at
