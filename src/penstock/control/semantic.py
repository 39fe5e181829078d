"""Semantic shedding (A90, A91): which values to drop, and where that can be decided as early as possible.

The histogram of an output's values, times their utility, shows the interval that is worth least. As a
predicate on the output's column it moves backward, box by box, as long as the value there can be told from a
value further up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as sql

from penstock.model.boxes import Drop, Filter, GroupBy, Join, Map, Node, Union, Windowed
from penstock.model.qos import QoS
from penstock.model.writing.network import Network


@dataclass(frozen=True)
class Interval:
    """Values from `low` up to `high` (not included) of a column."""

    column: str
    low: float
    high: float

    def predicate(self) -> str:
        """The Spark SQL predicate of the tuples that are kept.

        >>> Interval("spd", 10, 20).predicate()
        'NOT coalesce(`spd` >= 10 AND `spd` < 20, false)'
        >>> Interval("spd", -math.inf, 20).predicate()
        'NOT coalesce(`spd` < 20, false)'
        """
        low = [] if self.low == -math.inf else [f"`{self.column}` >= {self.low:.15g}"]
        high = [] if self.high == math.inf else [f"`{self.column}` < {self.high:.15g}"]
        return f"NOT coalesce({' AND '.join([*low, *high]) or 'true'}, false)"


@dataclass(frozen=True)
class Placed:
    """Where an interval can be dropped: on what comes out of this node."""

    node: str
    interval: Interval


def worth(qos: QoS, histogram: Mapping[float, int]) -> list[tuple[float, float, float]]:
    """(value, its utility, its share of the tuples), least utility first (A90)."""
    total = sum(histogram.values()) or 1
    rows = [(value, qos.at_value(value), count / total) for value, count in histogram.items() if count]
    return sorted(rows, key=lambda row: (row[1], row[0]))


def intervals_to_drop(qos: QoS, histogram: Mapping[float, int], share: float) -> tuple[Interval, ...]:
    """The intervals of least utility that together hold the given share of the tuples, or a little more.

    Neighbouring values make one interval. Each interval ends where the next value that is kept begins.

    >>> qos = QoS(delay=[(0, 1), (5, 1), (30, 0)], value=[(0, 0), (100, 1)], column="spd")
    >>> intervals_to_drop(qos, {10.0: 5, 20.0: 5, 30.0: 10}, 0.5)
    (Interval(column='spd', low=10.0, high=30.0),)
    """
    dropped: set[float] = set()
    gone = 0.0
    for value, _, part in worth(qos, histogram):
        if gone >= share - 1e-12:
            break
        dropped.add(value)
        gone += part
    return _as_intervals(qos.column, sorted(v for v, n in histogram.items() if n), dropped)


def _as_intervals(column: str, values: Sequence[float], dropped: set[float]) -> tuple[Interval, ...]:
    intervals: list[Interval] = []
    for at, value in enumerate(values):
        if value not in dropped:
            continue
        end = values[at + 1] if at + 1 < len(values) else math.nextafter(value, math.inf)
        if intervals and intervals[-1].high == value:
            intervals[-1] = Interval(column, intervals[-1].low, end)
        else:
            intervals.append(Interval(column, value, end))
    return tuple(intervals)


def utility_lost(qos: QoS, histogram: Mapping[float, int], intervals: Sequence[Interval]) -> float:
    """The part of all value utility that lies in these intervals."""
    rows = worth(qos, histogram)
    total = sum(utility * part for _, utility, part in rows) or 1.0
    inside = sum(u * p for v, u, p in rows if any(i.low <= v < i.high for i in intervals))
    return inside / total


def backward(network: Network, node: str, interval: Interval) -> list[Placed]:
    """The places at which the interval can be dropped instead, from the given node up to the sources (A91).

    A place counts only if all that leaves it flows into the node: what others read must not be dropped.
    """
    places = [Placed(node, interval)]
    for up, above in _above(network, network.nodes[node], interval):
        if len(network.readers(up)) == 1:
            places += backward(network, up, above)
    return places


def _above(network: Network, node: Node, interval: Interval) -> list[tuple[str, Interval]]:
    """The interval on each input of a node, as far as its value is that of a column there."""
    match node:
        case Filter() | Drop() | GroupBy():
            return [(node.inputs[0], interval)]
        case Union() if len(node.inputs) == 1:
            return [(node.inputs[0], interval)]
        case Map(function=None):
            inverse = _through_map(node, interval)
            return [] if inverse is None else [(node.inputs[0], inverse)]
        case Windowed(function=None):
            inside = _through_window(network, node, interval)
            return [] if inside is None else [(node.inputs[0], inside)]
        case Join():
            return _through_join(network, node, interval)
        case _ if not node.is_box and len(node.inputs) == 1 and node.name in network.outputs:
            return [(node.inputs[0], interval)]
    return []


def _through_map(node: Map, interval: Interval) -> Interval | None:
    written = dict(node.columns)
    if interval.column not in written:
        return interval if node.keep else None
    return inverse(written[interval.column], interval)


def inverse(expression: str, interval: Interval) -> Interval | None:
    """The interval of x for which a*x + b lies in the given one; None if the expression is not of that form.

    >>> inverse("2 * v + 10", Interval("w", 20, 30))
    Interval(column='v', low=5.0, high=10.0)
    >>> inverse("v * v", Interval("w", 20, 30)) is None
    True
    """
    try:
        line = _linear(sqlglot.parse_one(expression, read="spark"))
    except sqlglot.errors.ParseError:
        return None
    if line is None or not line[1] or line[0] == 0:
        return None
    slope, column, shift = line
    ends = (interval.low - shift) / slope, (interval.high - shift) / slope
    if slope > 0:
        return Interval(column, *ends)
    # Turned round, the open end is the lower one. One step up keeps exactly the same numbers.
    return Interval(column, math.nextafter(ends[1], math.inf), math.nextafter(ends[0], math.inf))


_Linear = tuple[float, str, float]  # slope, column, shift


def _linear(tree: object) -> _Linear | None:
    match tree:
        case sql.Paren():
            return _linear(tree.this)
        case sql.Column():
            return 1.0, tree.name, 0.0
        case sql.Literal() if not tree.is_string:
            return 0.0, "", float(tree.this)
        case sql.Neg():
            inner = _linear(tree.this)
            return None if inner is None else (-inner[0], inner[1], -inner[2])
        case sql.Add() | sql.Sub() | sql.Mul():
            return _combined(tree, _linear(tree.left), _linear(tree.right))
    return None


def _combined(tree: sql.Binary, left: _Linear | None, right: _Linear | None) -> _Linear | None:
    if left is None or right is None or (left[1] and right[1]):
        return None
    column = left[1] or right[1]
    if isinstance(tree, sql.Mul):
        factor, other = (left[2], right) if not left[1] else (right[2], left)
        return factor * other[0], column, factor * other[2]
    sign = 1 if isinstance(tree, sql.Add) else -1
    return left[0] + sign * right[0], column, left[2] + sign * right[2]


def _through_window(network: Network, node: Windowed, interval: Interval) -> Interval | None:
    """Keys pass unchanged. A window without its largest values has another maximum, so nothing else does.

    But if the only answer is max(x), and all values below v are dropped, windows whose maximum is at least v
    stay as they are, and the others vanish: exactly those that were to be dropped. The same for min.
    """
    keys = network.input_types(node.name)[0].keys or ()
    if interval.column in keys:
        return interval
    aggregates = dict(node.aggregates)
    if len(aggregates) != 1 or interval.column not in aggregates:
        return None
    tree = sqlglot.parse_one(aggregates[interval.column], read="spark")
    if not isinstance(tree, sql.Max | sql.Min) or not isinstance(tree.this, sql.Column):
        return None
    low, high = (-math.inf, interval.high) if isinstance(tree, sql.Max) else (interval.low, math.inf)
    whole = interval.low == -math.inf if isinstance(tree, sql.Max) else interval.high == math.inf
    return Interval(tree.this.name, low, high) if whole else None


def _through_join(network: Network, node: Join, interval: Interval) -> list[tuple[str, Interval]]:
    """To the side that owns the column, if only one has a column of that name."""
    sides = [
        up
        for up, type_ in zip(node.inputs, network.input_types(node.name), strict=True)
        if interval.column in type_.schema.names
    ]
    return [(sides[0], interval)] if len(sides) == 1 else []
