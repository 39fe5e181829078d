"""Intervals of one column at one place, what share of the tuples each holds, and what those are worth (A90).

The intervals whose tuples are worth least go first. The last one goes in part, so that any share can be kept.
Behind a window, tuples that belong together go together, or answers would be other ones: then only whole
intervals go, and before a maximum only from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from penstock.control.semantic.intervals import Interval, inside, joined, keeping
from penstock.engine.contract.valve import Valve, lot_of

_SURE = 1e-9


class Side(Enum):
    """Which intervals may be dropped: any of them, only those from below, only those from above."""

    ANY = "any"
    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True)
class Bin:
    """One interval: `tuples` and `value` are its shares of all tuples that come to the place, of all value.

    `rank`: what a tuple in it is worth, to put bins in order. `of`: the values of the output it stands for.
    """

    interval: Interval
    tuples: float
    value: float
    rank: float
    of: Interval | None = None


@dataclass(frozen=True)
class ValueCurve:
    """What remains of the value if so many tuples are kept, the cheapest having gone first: 0..1 by 0..1."""

    points: tuple[tuple[float, float], ...] = ((0.0, 0.0), (1.0, 1.0))

    def at(self, share: float) -> float:
        """The value that remains.

        >>> ValueCurve(((0.0, 0.0), (0.5, 0.9), (1.0, 1.0))).at(0.75)
        0.95
        """
        for (x0, y0), (x1, y1) in zip(self.points, self.points[1:], strict=False):
            if share <= x1:
                return y0 + (y1 - y0) * (share - x0) / (x1 - x0) if x1 > x0 else y1
        return 1.0

    def differs(self, other: ValueCurve, by: float) -> bool:
        """Whether they are further apart than this anywhere."""
        return any(abs(self.at(k / 16) - other.at(k / 16)) > by for k in range(17))


@dataclass(frozen=True)
class Cut:
    """What is dropped at a place: some intervals, and of another one all but a part.

    `share` of the tuples and `value` of their worth are kept. `values`: all of it, as values of the output,
    where answers cannot be told apart by tuples.
    """

    at: str
    dropped: tuple[Interval, ...]
    partly: Interval | None
    part: float
    share: float
    value: float
    lot: int = 0
    values: tuple[Interval, ...] = ()

    @property
    def worth(self) -> float:
        """What a dropped tuple is worth, the mean of all tuples being 1.

        >>> Cut("cars", (), None, 0.0, share=0.6, value=0.9).worth
        0.25
        """
        return round((1 - self.value) / (1 - self.share), 6) if self.share < 1 - _SURE else 1.0

    @property
    def chosen(self) -> tuple[Interval, ...]:
        """All that is dropped, or may be."""
        return self.dropped if self.partly is None else joined([*self.dropped, self.partly])

    @property
    def column(self) -> str:
        """The column at the place."""
        return self.chosen[0].column

    def valve(self) -> Valve:
        """As an entry of the ticket."""
        return Valve(
            self.at,
            round(self.share, 6),
            "values",
            self.lot,
            predicate=keeping(self.chosen),
            partly="" if self.partly is None else inside([self.partly]),
            part=round(self.part, 6),
            worth=self.worth,
        )


@dataclass(frozen=True)
class Bins:
    """All intervals of a column at a place. `whole`: an interval goes as a whole or not at all."""

    at: str
    bins: tuple[Bin, ...]
    whole: bool = False
    side: Side = Side.ANY

    @property
    def column(self) -> str:
        """The column at the place."""
        return self.bins[0].interval.column

    def cheapest_first(self) -> Sequence[Bin]:
        """The order in which bins go."""
        if self.side is Side.ABOVE:
            return sorted(self.bins, key=lambda each: -each.interval.low)
        if self.side is Side.BELOW:
            return sorted(self.bins, key=lambda each: each.interval.low)
        return sorted(self.bins, key=lambda each: (each.rank, each.interval.low))

    def curve(self) -> ValueCurve:
        """What remains of the value, by the share of tuples kept."""
        kept = list(reversed(self.cheapest_first()))
        xs = [min(1.0, x) for x in accumulate((each.tuples for each in kept), initial=0.0)]
        ys = [min(1.0, y) for y in accumulate((each.value for each in kept), initial=0.0)]
        points = [(x, y) for x, y in zip(xs, ys, strict=True) if x < 1 - _SURE]
        return ValueCurve((*points, (1.0, 1.0)))

    def cut(self, keep: float) -> Cut | None:
        """Keep this share of the tuples, or a little less where only whole bins go; None: drop nothing."""
        gone: list[Bin] = []
        left = 1.0 - keep
        for each in self.cheapest_first():
            if left <= _SURE:
                break
            if each.tuples > left + _SURE and not self.whole and self.side is Side.ANY:
                return self._cut(gone, each, 1 - left / each.tuples)
            gone.append(each)
            left -= each.tuples
        return self._cut(gone, None, 0.0) if any(each.tuples for each in gone) else None

    def _cut(self, gone: Sequence[Bin], partly: Bin | None, part: float) -> Cut:
        tuples = sum(each.tuples for each in gone) + (partly.tuples * (1 - part) if partly else 0.0)
        value = sum(each.value for each in gone) + (partly.value * (1 - part) if partly else 0.0)
        return Cut(
            self.at,
            joined([each.interval for each in gone]),
            None if partly is None else partly.interval,
            part,
            max(0.0, 1 - tuples),
            min(1.0, max(0.0, 1 - value)),
            lot_of(self.at),
            joined([each.of for each in (*gone, *([] if partly is None else [partly])) if each.of]),
        )
