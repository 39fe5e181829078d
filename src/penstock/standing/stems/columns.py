"""Arrow columns as numpy arrays that compare as Spark SQL does, and a train's column in sorted order.

Times are whole microseconds, dates whole days, truth values 0 and 1, and texts compare by code points. NaN is
above every number and equal to itself, as in numpy's sort. Nulls are kept apart and never compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

Comparable = tuple[np.ndarray, np.ndarray | None]
"""Values as numpy compares them, and which of them are not null (None: all)."""

_AS_INTEGERS = {"TIMESTAMP": pa.int64(), "DATE": pa.int32(), "BOOLEAN": pa.uint8()}


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A table's column as one contiguous array; Arrow would copy even a contiguous one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def comparable(column: pa.Array | pa.ChunkedArray, type_: str) -> Comparable:
    """The values as numpy sees them, and which of them are not null (None: all)."""
    array = plain(column)
    if isinstance(array, pa.ChunkedArray):  # a table without rows may have no chunk
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    valid = None if array.null_count == 0 else np.asarray(array.is_valid())
    if type_ in _AS_INTEGERS:
        array = array.cast(_AS_INTEGERS[type_])
    if type_ in ("STRING", "BINARY"):
        return array.to_numpy(zero_copy_only=False), valid
    if valid is not None:
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False), valid


@dataclass(frozen=True)
class SortedColumn:
    """A column of some tuples in sorted order: `order` lists positions by value, nulls last.

    `rank` is its inverse.
    """

    values: np.ndarray  # sorted, without nulls; each text once
    order: np.ndarray  # int32
    rank: np.ndarray  # int32
    count: int  # not null
    ends: np.ndarray | None = None  # texts: how many rows precede each value, and the total at the end

    @staticmethod
    def of(values: np.ndarray, valid: np.ndarray | None) -> SortedColumn:
        """Sort a column once for all queries."""
        rows = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
        present = values if valid is None else values[rows]
        ends = None
        if values.dtype == object:
            present, codes = (
                np.unique(present, return_inverse=True) if len(present) else (present, np.zeros(0, np.int64))
            )
            ends = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(present)))])
            order = rows[np.argsort(codes, kind="stable")]
        else:
            by = np.argsort(present)
            order, present = rows[by], present[by]
        if valid is not None:
            order = np.concatenate([order, np.flatnonzero(~valid)])
        order = order.astype(np.int32)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return SortedColumn(present, order, rank, len(rows), ends)

    def before(self, constants: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
        """How many tuples precede each constant; side 'right' includes those equal to it."""
        below = np.searchsorted(self.values, constants, side=side)
        count: np.ndarray = below if self.ends is None else self.ends[below]
        return count
