"""Which rows break the format, and why: the rules of the shared page for a refused row.

Idea: one pass in the order of the rows, because time may not go back behind the last accepted row. Repeated reports are
found by the caller, who sorts the reports of a half minute anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np

from penstock.linear_road.rowtext import Block

REASONS = (
    "",
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
    "query id out of range",
    "day out of range",
    "journey out of range",
    "day of week or time of day out of range",
    "time goes back",
    "time leaps ahead",
    "report repeated",
)
GOES_BACK, LEAPS, REPEATED = 16, 17, 18
SHOWN = 10
LEAP = 60


@dataclass(frozen=True)
class DirtyRow:
    """One refused row: where, why, and the row itself."""

    file: str
    line: int
    why: str
    raw: str


@dataclass
class Dirt:
    """What was refused so far: counts by reason and the first ten rows."""

    counts: Counter[str] = field(default_factory=Counter)
    first: list[DirtyRow] = field(default_factory=list)

    def add(self, row: DirtyRow) -> None:
        """Count a refused row, and keep it if it is one of the first ten."""
        self.counts[row.why] += 1
        if len(self.first) < SHOWN:
            self.first.append(row)


@dataclass(frozen=True)
class Accepted:
    """Rows of one block that were not refused, and where they stood."""

    block: Block
    rows: np.ndarray
    """Indexes into the block."""
    values: np.ndarray
    """The rows themselves, [row, column]."""

    def only(self, chosen: Any) -> Accepted:
        """Some of these rows, by a slice or a mask."""
        return Accepted(self.block, self.rows[chosen], self.values[chosen])


def accepted(blocks: Iterator[Block], dirt: Dirt) -> Iterator[Accepted]:
    """Pass on the rows that keep to the format (repeated reports aside) and count the others in `dirt`."""
    last = -1
    block = next(blocks, None)
    while block is not None:
        after = next(blocks, None)
        why = np.zeros(len(block.values), np.int8)
        last = _check(block.values, block.whole, why, last, _first_time(after))
        for row in np.flatnonzero(why):
            dirt.add(dirty_row(block, int(row), REASONS[why[row]]))
        rows = np.flatnonzero(why == 0)
        yield Accepted(block, rows, block.values[rows])
        block = after


def dirty_row(block: Block, row: int, why: str) -> DirtyRow:
    """Describe a refused row of a block."""
    return DirtyRow(block.file.name, block.first_line + row, why, block.raw(row))


def _first_time(block: Block | None) -> int:
    if block is None or not block.whole.any():
        return -1
    return int(block.values[int(np.argmax(block.whole)), 1])


@numba.njit(cache=True)
def _check(values: Any, whole: Any, why: Any, last: int, following: int) -> int:
    """Fill in why each row is refused (0: accepted); returns the time of the last accepted row (-1: none yet).

    `following` is the time of the first row of the next block, -1 if there is none.
    """
    later = np.empty(len(whole), np.int64)
    for i in range(len(whole) - 1, -1, -1):
        later[i] = following
        if whole[i]:
            following = values[i, 1]
    for i in range(len(whole)):
        reason = _why(values[i]) if whole[i] else 1
        t = values[i, 1]
        if reason == 0 and t < last:
            reason = GOES_BACK
        if reason == 0 and last >= 0 and later[i] >= 0 and t > last + LEAP and t > later[i] + LEAP:
            reason = LEAPS
        why[i] = reason
        if reason == 0:
            last = t
    return last


@numba.njit(cache=True)
def _why(row: Any) -> int:
    """What is wrong with a row by itself; only the fields its type uses are looked at."""
    kind, pos = row[0], row[8]
    if kind not in (0, 2, 3, 4):
        return 2
    if not 0 <= row[1] < 10800:
        return 3
    if not 0 <= row[2] < 2147483648:
        return 4
    if kind != 2 and not 0 <= row[4] < 2147483648:
        return 6
    if kind == 0:
        return _why_report(row[3], row[5], row[6], row[7], pos)
    if not 0 <= row[9] < 2147483648:
        return 12
    if kind == 3 and not 1 <= row[14] <= 69:
        return 13
    return _why_journey(row[10], row[11], row[12], row[13]) if kind == 4 else 0


@numba.njit(cache=True)
def _why_report(spd: int, lane: int, way: int, seg: int, pos: int) -> int:
    if not 0 <= spd <= 100:
        return 5
    if not 0 <= lane <= 4:
        return 7
    if not 0 <= way <= 1:
        return 8
    if not 0 <= seg <= 99:
        return 9
    if not 0 <= pos <= 527999:
        return 10
    return 11 if seg != pos // 5280 else 0


@numba.njit(cache=True)
def _why_journey(sinit: int, send: int, dow: int, tod: int) -> int:
    if not (0 <= sinit <= 99 and 0 <= send <= 99):
        return 14
    return 15 if sinit != send and not (1 <= dow <= 7 and 1 <= tod <= 1440) else 0
