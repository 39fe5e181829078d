"""A ranked n-ary tree over trains (PSoup, Sect. 6; P36): leaves in order of arrival, nodes summarise them.

An aggregate over a run of leaves is put together from O(log n) nodes. Leaves come and go at the right end,
where trains arrive and small ones are merged. They leave at the left end, where they expire. Everything
between stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

_FAN = 8

Value = int | float | str | bytes | date
"""A value of a column that has a least and a greatest one."""


@dataclass(frozen=True)
class Summary:
    """What COUNT, SUM, AVG, MIN and MAX need to know of some tuples.

    That is the number of all tuples, the number of values that are not null, and the sum and bounds of these.
    """

    rows: int = 0
    count: int = 0
    total: float = 0  # of whole numbers: exact, however large
    least: Value | None = None
    most: Value | None = None

    def __add__(self, other: Summary) -> Summary:
        if not self.count or not other.count:
            full = self if self.count else other
            return Summary(self.rows + other.rows, full.count, full.total, full.least, full.most)
        return Summary(
            self.rows + other.rows,
            self.count + other.count,
            self.total + other.total,
            _least(self.least, other.least),
            _most(self.most, other.most),
        )


def _least(one: Value | None, other: Value | None) -> Value | None:
    # NaN is above every number. Both are of one column, so they compare.
    return other if one != one or other < one else one  # type: ignore[operator]  # noqa: PLR0124 - NaN


def _most(one: Value | None, other: Value | None) -> Value | None:
    return one if one != one or one > other else other  # type: ignore[operator]  # noqa: PLR0124 - NaN


class RankedTree:
    """Summaries of leaves numbered from `first` on.

    >>> tree = RankedTree()
    >>> for value in range(100):
    ...     tree.append(Summary(1, 1, value, value, value))
    >>> tree.between(10, 20).total, tree.between(0, 100).most
    (145, 99)
    """

    def __init__(self) -> None:
        self.first = 0
        self._levels: list[list[Summary]] = [[]]
        self.touched = 0  # nodes looked at by the last query

    def __len__(self) -> int:
        return len(self._levels[0])

    @property
    def end(self) -> int:
        """One after the last leaf."""
        return len(self._levels[0])

    def append(self, leaf: Summary) -> None:
        """Add a leaf at the right end; full groups of eight get a node above them."""
        level, node = 0, leaf
        while True:
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(node)
            if len(self._levels[level]) % _FAN:
                return
            group = self._levels[level][-_FAN:]
            node = group[0]
            for each in group[1:]:
                node += each
            level += 1

    def truncate(self, end: int) -> None:
        """Remove the leaves from `end` on."""
        for level in self._levels:
            del level[end:]
            end //= _FAN

    def between(self, first: int, last: int) -> Summary:
        """The summary of the leaves first .. last - 1."""
        total, level, self.touched = Summary(), 0, 0
        right: list[Summary] = []
        while first < last:
            nodes = self._levels[level]
            above = len(self._levels[level + 1]) * _FAN if level + 1 < len(self._levels) else 0
            while first < last and (first % _FAN or first >= above or last - first < _FAN):
                total, first, self.touched = total + nodes[first], first + 1, self.touched + 1
            while first < last and last % _FAN:
                last, self.touched = last - 1, self.touched + 1
                right.append(nodes[last])
            while first < last and last > above:
                last, self.touched = last - 1, self.touched + 1
                right.append(nodes[last])
            first, last, level = first // _FAN, last // _FAN, level + 1
        for node in reversed(right):
            total += node
        return total
