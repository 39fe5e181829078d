"""Rows that belong together: which group each row is in, and the rows of each group side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from penstock.engine.arrow.columns import key_values


@dataclass(frozen=True)
class Groups:
    """`order` brings rows of one group together (in their old order); a group goes from one of `starts` to the next."""

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


def codes_of(table: Any, names: tuple[str, ...]) -> np.ndarray:
    """A number for each row, equal where all these columns are (null equals null, as in GROUP BY)."""
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        values, valid = key_values(table.column(name))
        more, uniques = pd.factorize(values)
        if valid is not None:
            more = np.where(valid, more, len(uniques))
        # dense again after each column, so that the product cannot overflow
        codes = pd.factorize(codes * (len(uniques) + 1) + more)[0]
    return codes


def groups_of(codes: np.ndarray) -> Groups:
    """Group rows by their code; groups in the order of the codes."""
    count = len(codes)
    if not count:
        return Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
    # sorting code and place as one number is stable, and much faster than a stable argsort
    packed = np.sort(codes * count + np.arange(count))
    order, ranked = packed % count, packed // count
    starts = np.flatnonzero(np.diff(ranked, prepend=ranked[0] - 1))
    return Groups(order, starts)
