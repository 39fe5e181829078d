"""Small compiled tables that the boxes share: an index of one second's vehicles, dense numbers for roads.

Idea: vehicles report every 30 s, so the previous report of a vehicle lies among those of the second half a
minute ago. An index of one second is small enough for the processor's cache. It is built once and never
changes, so it needs no deletion and no growth.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from penstock.linear_road.rows.arrays import Floats, Int32s, Int64s, Ints

_MIX = np.int64(-7046029254386353131)
SEGMENTS = 100
_Number = TypeVar("_Number", np.int8, np.int32, np.floating)


def index(keys: Int64s) -> tuple[Int32s, bool]:
    """An open-addressing index over the vehicle (upper half) of each key; -1 is an empty slot.

    Also returns whether any vehicle occurs twice.
    """
    # At least twice as many slots as keys, so that searches stay short.
    slots = np.full(1 << max(1, int(2 * len(keys) - 1).bit_length()), -1, np.int32)
    return slots, _fill(keys, slots)


@njit(cache=True, nogil=True, inline="always")
def start(key: np.int64, size: int) -> np.int64:
    """Where the search for a key's vehicle begins."""
    # The vehicle alone, not the road: `tracking` also asks for a vehicle's reports from any road.
    return (((key >> 32) * _MIX) >> 24) & (size - 1)


@njit(cache=True, nogil=True)
def _fill(keys: Int64s, slots: Int32s) -> bool:
    size, twice = len(slots), False
    for i in range(len(keys)):
        slot = start(keys[i], size)
        while slots[slot] >= 0:
            # Equal vehicles start at the same slot, so on the way to a free one all of them are met.
            twice |= keys[slots[slot]] >> 32 == keys[i] >> 32
            slot = (slot + 1) & (size - 1)
        slots[slot] = i
    return twice


@njit(cache=True, nogil=True)
def find(key: np.int64, keys: Int64s, slots: Int32s) -> int:
    """The row of a key, -1 if there is none."""
    size = len(slots)
    slot = start(key, size)
    while slots[slot] >= 0:
        if keys[slots[slot]] == key:
            return int(slots[slot])
        slot = (slot + 1) & (size - 1)
    return -1


class Roads:
    """Dense numbers for roads (expressway and direction), in order of first appearance.

    >>> roads = Roads()
    >>> roads.cells(np.array([5, 0, 5]), np.array([1, 0, 1]), np.array([3, 0, 4])).tolist()
    [3, 100, 4]
    """

    def __init__(self, known: Ints | None = None) -> None:
        self.keys = np.zeros(0, np.int64) if known is None else np.array(known, np.int64)
        self._index()

    def __len__(self) -> int:
        return len(self.keys)

    def cells(self, xway: Ints, direction: Ints, seg: Ints) -> Int32s:
        """The dense number of each road segment; new roads are added."""
        numbers = np.empty(len(xway), np.int32)
        at = 0
        segments = (xway, direction, seg)
        # New roads are rare. Compiled code stops at one, and goes on when it has its number.
        while (at := _cells(segments, self.keys, self._slots, at, numbers)) < len(numbers):
            self.keys = np.append(self.keys, np.int64(xway[at]) * 2 + direction[at])
            self._index()
        return numbers

    def _index(self) -> None:
        self._slots = np.full(1 << max(4, int(4 * len(self.keys)).bit_length()), -1, np.int32)
        # The index looks at the upper half of a key, where vehicles are; here it holds the road.
        _fill(self.keys << 32, self._slots)


@njit(cache=True, nogil=True)
def _cells(segments: tuple[Ints, Ints, Ints], keys: Int64s, slots: Int32s, at: int, numbers: Int32s) -> int:
    """Number the segments from `at` on; returns where it stopped, at the first road that is not known."""
    xway, direction, seg = segments
    size = len(slots)
    for i in range(at, len(numbers)):
        road = np.int64(xway[i]) * 2 + direction[i]
        slot = start(road << 32, size)
        while slots[slot] >= 0 and keys[slots[slot]] != road:
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            return i
        numbers[i] = slots[slot] * SEGMENTS + seg[i]
    return len(numbers)


def grown(values: npt.NDArray[_Number], size: int, empty: float) -> npt.NDArray[_Number]:
    """The array with room for this many; new elements are `empty`."""
    if len(values) >= size:
        return values
    return np.concatenate([values, np.full(size - len(values), empty, values.dtype)])


def column(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers or times as numpy, without a copy where possible."""
    chunks = table.column(name)
    array = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
    # A timestamp has a unit. As a whole number it needs no conversion.
    if hasattr(array.type, "unit"):
        array = array.view("int64")
    values: Ints = array.to_numpy(zero_copy_only=False)
    return values


def float_column(table: pa.Table, name: str) -> Floats:
    """A column of floating-point numbers as numpy."""
    values: Floats = table.column(name).combine_chunks().to_numpy(zero_copy_only=False)
    return values


def spans(values: Ints) -> list[tuple[int, int]]:
    """The runs of equal neighbours, as (first, beyond).

    >>> spans(np.array([5, 5, 7])), spans(np.array([], int))
    ([(0, 2), (2, 3)], [])
    """
    if not len(values):
        return []
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    return list(pairwise(edges))
