"""Intervals of a column, and predicates that keep or choose the tuples in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Interval:
    """Values from `low` up to `high` (not included) of a column."""

    column: str
    low: float
    high: float

    def holds(self, value: float | None) -> bool:
        """Whether a value lies in it; a null never does."""
        return value is not None and self.low <= value < self.high

    def condition(self) -> str:
        """Spark SQL that is true for the tuples in it.

        >>> Interval("spd", 10, 20).condition()
        '`spd` >= 10 AND `spd` < 20'
        >>> Interval("spd", -math.inf, 20.5).condition()
        '`spd` < 20.5'
        """
        low = [] if self.low == -math.inf else [f"`{self.column}` >= {_literal(self.low)}"]
        high = [] if self.high == math.inf else [f"`{self.column}` < {_literal(self.high)}"]
        return " AND ".join([*low, *high]) or f"`{self.column}` IS NOT NULL"

    def text(self) -> str:
        """In words.

        >>> Interval("spd", 10, 20).text(), Interval("spd", -math.inf, 20).text()
        ('spd from 10 to below 20', 'spd below 20')
        """
        if self.low == -math.inf:
            return f"any {self.column}" if self.high == math.inf else f"{self.column} below {self.high:g}"
        above = f"{self.column} from {self.low:g}"
        return above if self.high == math.inf else f"{above} to below {self.high:g}"


def _literal(value: float) -> str:
    """A number as SQL reads it again: whole ones as such, so that whole columns are compared as they are.

    >>> _literal(20.0), _literal(0.1), _literal(1e-7)
    ('20', '0.1', '1e-07')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def keeping(intervals: Sequence[Interval]) -> str:
    """Spark SQL that is true for all tuples outside of the intervals, and for those without a value.

    >>> keeping([Interval("spd", 10, 20)])
    'NOT coalesce(`spd` >= 10 AND `spd` < 20, false)'
    """
    return f"NOT coalesce({inside(intervals)}, false)"


def inside(intervals: Sequence[Interval]) -> str:
    """Spark SQL that is true for the tuples in any of the intervals.

    >>> inside([Interval("v", 1, 2), Interval("v", 5, 6)])
    '(`v` >= 1 AND `v` < 2) OR (`v` >= 5 AND `v` < 6)'
    """
    conditions = [interval.condition() for interval in intervals]
    return conditions[0] if len(conditions) == 1 else " OR ".join(f"({each})" for each in conditions)


def joined(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
    """The same with neighbours as one, in order.

    >>> joined([Interval("v", 2, 3), Interval("v", 1, 2)])
    (Interval(column='v', low=1, high=3),)
    """
    merged: list[Interval] = []
    for each in sorted(intervals, key=lambda interval: interval.low):
        if merged and merged[-1].high == each.low:
            merged[-1] = Interval(each.column, merged[-1].low, each.high)
        else:
            merged.append(each)
    return tuple(merged)


def cut_evenly(column: str, values: Sequence[float], most: int = 64) -> tuple[Interval, ...]:
    """Intervals that cover all numbers and hold about equally many of the values; a value each if few differ.

    >>> [(i.low, i.high) for i in cut_evenly("v", [1, 1, 2, 5])]
    [(-inf, 2), (2, 5), (5, inf)]
    """
    ordered = sorted(values)
    edges = sorted(set(ordered))
    if len(edges) > most:
        edges = sorted({ordered[len(ordered) * part // most] for part in range(most)})
    return tuple(Interval(column, low, high) for low, high in pairwise([-math.inf, *edges[1:], math.inf]))
