"""From a WHERE expression to key ranges: a historical filter becomes a look-up (Aurora, Sect. 3.2: A49).

The ranges are a necessary condition. A tuple that satisfies the expression has its key in one of them, so
files outside need not be opened. An expression that is not understood restricts nothing. The filter itself
still runs on what is read.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable

import sqlglot
from sqlglot import exp

from penstock.model.types import INTEGRAL
from penstock.store.points.ranges import Bound, Interval, Ranges, join, meet, plain

_MIRROR: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}
_INTERVALS: dict[type[exp.Expression], Callable[[Bound], Interval]] = {
    exp.EQ: lambda value: Interval(value, value),
    exp.LT: lambda value: Interval(None, value, high_open=True),
    exp.LTE: lambda value: Interval(None, value),
    exp.GT: lambda value: Interval(value, None, low_open=True),
    exp.GTE: lambda value: Interval(value, None),
}


def key_ranges(where: str, column: str, kind: str) -> Ranges | None:
    """The ranges of `column` (of the given Spark SQL type) that `where` allows; None: no restriction.

    >>> key_ranges("seg >= 3 AND seg < 5 AND spd < 40", "seg", "INT")
    (Interval(low=3, high=5, low_open=False, high_open=True),)
    >>> key_ranges("seg = 1 OR spd < 40", "seg", "INT") is None
    True
    """
    try:
        tree = sqlglot.parse_one(where, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return None
    return _Reading(column.lower(), kind).ranges(tree)


class _Reading:
    """Walks a condition for one column."""

    def __init__(self, column: str, kind: str) -> None:
        self.column, self.kind = column, kind

    def ranges(self, node: object) -> Ranges | None:
        if isinstance(node, exp.Paren):
            return self.ranges(node.this)
        if isinstance(node, exp.And):
            return meet(self.ranges(node.left), self.ranges(node.right))
        if isinstance(node, exp.Or):
            return join(self.ranges(node.left), self.ranges(node.right))
        if isinstance(node, exp.Boolean) and not node.this:
            return ()
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Expression) and type(node) in _MIRROR:
            return self._comparison(node)
        return None

    def _comparison(self, node: exp.Expression) -> Ranges | None:
        left, right, operator = node.this, node.expression, type(node)
        if not self._is_key(left):
            left, right, operator = right, left, _MIRROR[operator]
        value = self._value(right) if self._is_key(left) else None
        return None if value is None else (_INTERVALS[operator](value),)

    def _between(self, node: exp.Between) -> Ranges | None:
        low, high = self._value(node.args["low"]), self._value(node.args["high"])
        # SYMMETRIC may swap the ends, so it tells us nothing.
        if not self._is_key(node.this) or node.args.get("symmetric") or low is None or high is None:
            return None
        return meet((Interval(low, high),), (Interval(),))

    def _in(self, node: exp.In) -> Ranges | None:
        values = [self._value(item) for item in node.expressions]
        if not self._is_key(node.this) or not values or any(value is None for value in values):
            return None
        return tuple(Interval(value, value) for value in values)

    def _is_key(self, node: exp.Expression) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() == self.column

    def _value(self, node: exp.Expression) -> Bound:
        """A literal in the plain form of the key's type.

        None if it is no literal, or does not compare as that type does.
        """
        try:
            return _literal(node, self.kind)
        except (ValueError, OverflowError):
            return None


def _literal(node: exp.Expression, kind: str) -> Bound:
    if isinstance(node, exp.Paren):
        return _literal(node.this, kind)
    if isinstance(node, exp.Neg):
        value = _literal(node.this, kind)
        return (
            -value
            if isinstance(value, int | float) and kind not in ("TIMESTAMP", "DATE", "BOOLEAN")
            else None
        )
    if isinstance(node, exp.Boolean):
        return int(node.this) if kind == "BOOLEAN" else None
    if isinstance(node, exp.Cast):
        return _typed(node, kind)
    if not isinstance(node, exp.Literal):
        return None
    return _text(node.this, kind) if node.is_string else _number(node.this, kind)


def _typed(node: exp.Cast, kind: str) -> Bound:
    """TIMESTAMP '...' and DATE '...', which sqlglot reads as casts of text."""
    names = {
        exp.DataType.Type.DATE: "DATE",
        exp.DataType.Type.TIMESTAMP: "TIMESTAMP",
        exp.DataType.Type.TIMESTAMPTZ: "TIMESTAMP",
    }
    written = names.get(node.to.this)
    text = node.this
    if written is None or not isinstance(text, exp.Literal) or not text.is_string:
        return None
    value = _text(text.this, written)
    if written == kind:
        return value
    # A date compares with a timestamp as its midnight. The reverse is not handled.
    return (
        int(value) * 86_400_000_000
        if (written, kind) == ("DATE", "TIMESTAMP") and value is not None
        else None
    )


def _number(text: str, kind: str) -> Bound:
    if kind == "DOUBLE":
        number = float(text)
        return number if math.isfinite(number) else None
    if kind not in INTEGRAL:
        # FLOAT: Spark compares single and double precision in its own way. No restriction is always safe.
        return None
    if text.isdigit():
        return int(text)
    # Beyond 2**53 the neighbours of a fraction are no longer whole numbers.
    return float(text) if abs(float(text)) < 2**52 else None


def _text(text: str, kind: str) -> Bound:
    """Text compared with a key: Spark casts it to the key's type, in UTC."""
    if kind == "STRING":
        return text
    if kind == "DATE":
        return plain(dt.date.fromisoformat(text))
    if kind == "TIMESTAMP":
        moment = dt.datetime.fromisoformat(text)
        return plain(moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC))
    return None
