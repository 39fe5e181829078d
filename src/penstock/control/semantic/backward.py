"""How far up an interval of an output's values can be told (A91): box by box, by the inverse of each.

Unchanged through Filter, Drop, GroupBy and the keys of windows; by substitution through columns and linear
expressions of a Map; to the side of a Join that owns the column; and through a lone max or min.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as sql

from penstock.control.semantic.bins import Side
from penstock.control.semantic.intervals import Interval
from penstock.engine.contract.valve import ARROW
from penstock.model.boxes import Drop, Filter, GroupBy, Join, Map, Node, Output, Union, View, Windowed
from penstock.model.writing.network import Network


@dataclass(frozen=True)
class Placed:
    """An interval where it can be dropped instead: on what leaves a node, or on an arrow behind a split.

    `whole`: only all of it may be dropped, because a window needs all its tuples. `side`: only together with
    all that lies below, or above it.
    """

    at: str
    interval: Interval
    whole: bool = False
    side: Side = Side.ANY


def backward(network: Network, output: str, interval: Interval) -> list[Placed]:
    """The places, from the output up. Behind a split an arrow is one: what others read stays as it is."""
    return _up(network, output, Placed(output, interval))


def _up(network: Network, head: str, below: Placed) -> list[Placed]:
    places = []
    for up, placed in _above(network, network.nodes[head], below):
        if len(network.readers(up)) > 1:
            places.append(_at(placed, f"{up}{ARROW}{head}"))
        else:
            places += [_at(placed, up), *_up(network, up, placed)]
    return places


def _at(placed: Placed, at: str) -> Placed:
    return Placed(at, placed.interval, placed.whole, placed.side)


def _above(network: Network, node: Node, below: Placed) -> list[tuple[str, Placed]]:
    """The interval on an input of a node, as far as its value is that of a column there."""
    if len(node.inputs) == 1:
        above = _through(network, node, below)
        return [] if above is None else [(node.inputs[0], above)]
    if isinstance(node, Join):
        return [(side, below) for side in _owners(network, node, below.interval.column)]
    return []


def _through(network: Network, node: Node, below: Placed) -> Placed | None:
    match node:
        case Filter() | Drop() | GroupBy() | Union() | Output() | View():
            return below
        case Map(function=None):
            return _through_map(node, below)
        case Map() if node.keep and below.interval.column not in node.produces.names:
            return below
        case Windowed(function=None):
            return _through_window(network, node, below)
    return None


def _through_map(node: Map, below: Placed) -> Placed | None:
    written, interval = dict(node.columns), below.interval
    if interval.column not in written:
        return below if node.keep else None
    above = inverse(written[interval.column], interval)
    if above is None:
        return None
    turned = _falls(written[interval.column])
    return Placed("", above, below.whole, _TURNED[below.side] if turned else below.side)


_TURNED = {Side.ANY: Side.ANY, Side.BELOW: Side.ABOVE, Side.ABOVE: Side.BELOW}


def _falls(expression: str) -> bool:
    line = _linear(sqlglot.parse_one(expression, read="spark"))
    return line is not None and line[0] < 0


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
    return Interval(column, _next(ends[1]), _next(ends[0]))


def _next(end: float) -> float:
    return end if math.isinf(end) else math.nextafter(end, math.inf)


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


def _through_window(network: Network, node: Windowed, below: Placed) -> Placed | None:
    """Keys pass unchanged, as a whole. A window without its largest values has another maximum.

    But if the only answer is max(x), and all values below v are dropped, windows whose maximum is at least v
    keep it, and the others vanish: exactly those that were to be dropped. The same for min. Only the time of
    an answer may be that of another tuple of its window.
    """
    interval = below.interval
    keys = network.input_types(node.name)[0].keys or ()
    if interval.column in keys:
        return Placed("", interval, whole=True, side=below.side)
    aggregates = dict(node.aggregates)
    if list(aggregates) != [interval.column]:
        return None
    tree = sqlglot.parse_one(aggregates[interval.column], read="spark")
    if not isinstance(tree, sql.Max | sql.Min) or not isinstance(tree.this, sql.Column):
        return None
    side = Side.BELOW if isinstance(tree, sql.Max) else Side.ABOVE
    if below.side not in (Side.ANY, side):
        return None
    return Placed("", Interval(tree.this.name, interval.low, interval.high), whole=True, side=side)


def _owners(network: Network, node: Join, column: str) -> list[str]:
    """The side of a join that owns a column, if only one has a column of that name."""
    sides = [
        up
        for up, type_ in zip(node.inputs, network.input_types(node.name), strict=True)
        if column in type_.schema.names
    ]
    return sides if len(sides) == 1 else []
