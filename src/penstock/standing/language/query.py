"""What a standing query is (PSoup, Sect. 2, P12): SELECT-FROM-WHERE in normal form, its windows apart.

WHERE is a disjunction of branches. A branch has one conjunction for each stream and the factors that tie
streams together. In a conjunction, comparisons of a column with constants are merged into one span for each
column, and these are indexed. Everything else is a residual: a Spark SQL text that is evaluated on the tuples
that pass the spans (P25).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.model.types import Schema
from penstock.standing.language.windows import Window

Constant = int | float | str
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@dataclass(frozen=True)
class StreamInfo:
    """A stream that queries may name.

    It has columns, may have timestamps, and is retained for some time (microseconds).
    """

    name: str
    schema: Schema
    stamped: bool = True
    keep: int = 7_200_000_000


@dataclass(frozen=True)
class Span:
    """The values of one column between two constants; None: no bound on this side. Null is never within.

    `points`: not a range but these values, two or more, sorted (IN, and OR of equalities).
    """

    column: str
    low: Constant | None = None
    high: Constant | None = None
    low_open: bool = False
    high_open: bool = False
    points: tuple[Constant, ...] = ()

    @staticmethod
    def of_points(column: str, values: Iterable[Constant]) -> Span:
        """The span of some values: one gives an equality, none an empty span."""
        points = tuple(sorted(set(values)))
        if len(points) > 1:
            return Span(column, points=points)
        return Span(column, points[0], points[0]) if points else Span(column, 1, 0)

    def holds(self, value: Constant) -> bool:
        """Whether a value lies within."""
        if self.points:
            return value in self.points
        return not self.meet(Span(self.column, value, value)).empty

    @property
    def point(self) -> bool:
        """Whether it is an equality."""
        return self.low is not None and self.low == self.high

    @property
    def empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return self.low_open or self.high_open
        return self.low > self.high  # type: ignore[operator]  # of one column

    def meet(self, other: Span) -> Span:
        """The values within both.

        >>> Span("v", low=3).meet(Span("v", low=5, high=9))
        Span(column='v', low=5, high=9, low_open=False, high_open=False, points=())
        """
        if self.points:
            return Span.of_points(self.column, [value for value in self.points if other.holds(value)])
        if other.points:
            return other.meet(self)
        low, low_open = _tighter((self.low, self.low_open), (other.low, other.low_open), sign=1)
        high, high_open = _tighter((self.high, self.high_open), (other.high, other.high_open), sign=-1)
        return Span(self.column, low, high, low_open, high_open)


def _tighter(
    one: tuple[Constant | None, bool], other: tuple[Constant | None, bool], *, sign: int
) -> tuple[Constant | None, bool]:
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    if one[0] == other[0]:
        return one[0], one[1] or other[1]
    return one if (one[0] > other[0]) == (sign > 0) else other  # type: ignore[operator]  # of one column


@dataclass(frozen=True)
class Conjunction:
    """What one stream's tuple must fulfil: a span for some columns, and residual texts over its columns."""

    spans: tuple[Span, ...] = ()
    residuals: tuple[str, ...] = ()


@dataclass(frozen=True)
class JoinFactor:
    """A comparison of columns of two streams: left.column op right.column.

    Streams are given by their place in FROM.
    """

    left: int
    left_column: str
    operator: str  # = < <= > >= <>
    right: int
    right_column: str


@dataclass(frozen=True)
class Branch:
    """One conjunction of WHERE: a part for each stream of FROM, and what ties them together."""

    parts: tuple[Conjunction, ...]
    joins: tuple[JoinFactor, ...] = ()
    residuals: tuple[str, ...] = ()  # over columns of several streams, written alias__column


@dataclass(frozen=True)
class SelectItem:
    """One column of the answer: a column of a stream, or an aggregate of one (column None: COUNT(*))."""

    name: str
    stream: int
    column: str | None
    aggregate: str | None = None


@dataclass(frozen=True)
class Part:
    """A stream of FROM, under its name in the query."""

    alias: str
    stream: str


@dataclass(frozen=True)
class StandingQuery:
    """A query in normal form; `text` is what the client wrote."""

    text: str
    parts: tuple[Part, ...]
    branches: tuple[Branch, ...]
    items: tuple[SelectItem, ...]
    windows: tuple[Window, ...]  # of each part
    distinct: bool = False

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once."""
        return tuple(dict.fromkeys(part.stream for part in self.parts))

    @property
    def is_join(self) -> bool:
        return len(self.parts) > 1

    @property
    def is_aggregate(self) -> bool:
        return any(item.aggregate for item in self.items)

    @property
    def counted(self) -> bool:
        """Whether a window counts tuples."""
        return any(window.kind == "count" for window in self.windows)
