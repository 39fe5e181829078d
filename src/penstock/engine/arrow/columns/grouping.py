"""Rows that belong together: which group each row is in, and the rows of each group side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.engine.arrow.columns.columns import Mask, key_values


@dataclass(frozen=True)
class Groups:
    """`order` brings rows of one group together; a group goes from one of `starts` to the next."""

    order: np.ndarray
    starts: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """The first row of each group."""
        first: np.ndarray = self.order[self.starts]
        return first

    @property
    def last(self) -> np.ndarray:
        """The last row of each group."""
        last: np.ndarray = self.order[self.starts + self.sizes - 1]
        return last

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts, append=len(self.order))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """A value of each group, for each of the ordered rows."""
        return np.repeat(values, self.sizes)

    def ranks(self) -> np.ndarray:
        """0, 1, 2, ... within its group, for each row (not ordered)."""
        ranks = np.empty(len(self.order), np.int64)
        ranks[self.order] = np.arange(len(self.order)) - self.spread(self.starts)
        return ranks


def codes_of(table: pa.Table, names: tuple[str, ...], *, dense: bool = False) -> np.ndarray:
    """A number for each row, equal where all these columns are (null equals null, as in GROUP BY).

    Small enough that `groups_of` can sort by it; `dense`: 0, 1, 2, ... in order of appearance.
    """
    codes, size = np.zeros(table.num_rows, np.int64), 1
    # `groups_of` packs a code and a row number in one int64: this is the room for codes.
    room = 2**62 // max(table.num_rows, 1)
    for name in names:
        more, width = _numbered(*key_values(table.column(name)), room)
        if size * width > room:
            # Renumber what there is; if that is not enough, the new column too.
            codes, size = _dense(codes)
        if size * width > room:
            more, width = _dense(more)
        codes, size = codes * width + more, size * width
        if size > room:
            # Of millions of rows, two columns may be too many even when both are renumbered.
            codes, size = _dense(codes)
    return _dense(codes)[0] if dense else codes


def _dense(values: np.ndarray) -> tuple[np.ndarray, int]:
    codes, uniques = pd.factorize(values)
    return codes, max(len(uniques), 1)


def _numbered(values: np.ndarray, valid: Mask, room: int) -> tuple[np.ndarray, int]:
    """Numbers from 0, and how many: whole numbers by distance from the least, the rest by hashing."""
    if not len(values):
        return np.zeros(0, np.int64), 1
    known = values if valid is None else values[valid]
    low, high = (
        (0, room) if values.dtype == object or not len(known) else (int(known.min()), int(known.max()))
    )
    codes, width = (values - low, high - low + 1) if high - low < room else _dense(values)
    # Null gets a number of its own, behind all others.
    return (codes, width) if valid is None else (np.where(valid, codes, width), width + 1)


def groups_of(codes: np.ndarray) -> Groups:
    """Group rows by their code; groups in the order of the codes."""
    count = len(codes)
    if not count:
        return Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
    # Sorting code and row number as one number is stable, and much faster than a stable argsort.
    packed = np.sort(codes * count + np.arange(count))
    order, ranked = packed % count, packed // count
    starts = np.flatnonzero(np.diff(ranked, prepend=ranked[0] - 1))
    return Groups(order, starts)
