"""Expressions, one tuple at a time: slow, obvious, and the meaning that the other engines are held to.

Operands are all evaluated, left to right, and a failing one makes the whole fail; only AND, OR, CASE, IF and
COALESCE leave out what they do not need. (Spark itself may skip the other operand of a NULL; it promises no
order.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from penstock.engine.local.expressions.operations import ExpressionFailure, operation, order_key
from penstock.engine.local.rows import Value
from penstock.model.expressions.binding import bind
from penstock.model.expressions.casts import date_of, datetime_of, days_of, micros_of
from penstock.model.expressions.functions import FUNCTIONS
from penstock.model.expressions.typed import Call, ColumnRef, Literal, Typed
from penstock.model.types import Schema

__all__ = ["ExpressionFailure", "compile_row", "row_function"]

Row = Mapping[str, Value]
Evaluate = Callable[[Row], Value]

# Inside an expression times are whole numbers. Only columns and the result are dates and datetimes.
_LOAD: dict[str, Callable[[Value], Value]] = {"TIMESTAMP": micros_of, "DATE": days_of}
_GIVE: dict[str, Callable[[Value], Value]] = {"TIMESTAMP": datetime_of, "DATE": date_of}


def compile_row(text: str, schema: Schema) -> Evaluate:
    """The function row -> value of an expression; it raises ExpressionFailure where the expression fails.

    >>> compile_row("speed / 2", Schema.parse("speed INT"))({"speed": 5})
    2.5
    """
    return row_function(bind(text, schema))


def row_function(node: Typed) -> Evaluate:
    """Like compile_row, of a bound expression."""
    inner, give = _compile(node), _GIVE.get(node.type)
    if give is None:
        return inner

    def evaluate(row: Row) -> Value:
        value = inner(row)
        return None if value is None else give(value)

    return evaluate


def _compile(node: Typed) -> Evaluate:
    if isinstance(node, Literal):
        value = node.value
        return lambda _row: value
    if isinstance(node, ColumnRef):
        return _column(node)
    args = [_compile(arg) for arg in node.args]
    if node.function in _LAZY:
        return _LAZY[node.function](node, args)
    assert node.function not in FUNCTIONS or FUNCTIONS[node.function].strict
    return _strict(operation(node), args)


def _column(node: ColumnRef) -> Evaluate:
    name, load = node.name, _LOAD.get(node.type)
    if load is None:
        return lambda row: row[name]
    return lambda row: None if row[name] is None else load(row[name])


def _strict(act: Callable[..., Value], args: list[Evaluate]) -> Evaluate:
    if len(args) == 1:
        (only,) = args

        def one(row: Row) -> Value:
            value = only(row)
            return None if value is None else act(value)

        return one

    def many(row: Row) -> Value:
        # All operands first: a failing one makes the whole fail, even beside a NULL.
        values = [arg(row) for arg in args]
        return None if None in values else act(*values)

    return many


# ---- functions that see NULL, or do not look at all their arguments ----------------------------------------


def _and(_node: Call, args: list[Evaluate]) -> Evaluate:
    return _connective(args, decisive=False)


def _or(_node: Call, args: list[Evaluate]) -> Evaluate:
    return _connective(args, decisive=True)


def _connective(args: list[Evaluate], *, decisive: bool) -> Evaluate:
    """AND is decided by false, OR by true; otherwise NULL makes NULL."""
    left, right = args

    def evaluate(row: Row) -> Value:
        first = left(row)
        if first is decisive:
            return decisive
        second = right(row)
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return evaluate


def _case(_node: Call, args: list[Evaluate]) -> Evaluate:
    branches, otherwise = list(zip(args[:-1:2], args[1::2], strict=True)), args[-1]

    def evaluate(row: Row) -> Value:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return otherwise(row)

    return evaluate


def _coalesce(_node: Call, args: list[Evaluate]) -> Evaluate:
    def evaluate(row: Row) -> Value:
        for arg in args:
            value = arg(row)
            if value is not None:
                return value
        return None

    return evaluate


def _same(_node: Call, args: list[Evaluate]) -> Evaluate:
    """<=>: NULL is the same as NULL."""

    def evaluate(row: Row) -> bool:
        left, right = (arg(row) for arg in args)
        return left is right if left is None or right is None else bool(order_key(left) == order_key(right))

    return evaluate


def _in(_node: Call, args: list[Evaluate]) -> Evaluate:
    def evaluate(row: Row) -> bool | None:
        value, *others = (arg(row) for arg in args)
        if value is None:
            return None
        if any(other is not None and order_key(other) == order_key(value) for other in others):
            return True
        # NULL might have been the value, so nobody can say no.
        return None if None in others else False

    return evaluate


def _extreme(choose: Callable[..., Value]) -> Callable[[Call, list[Evaluate]], Evaluate]:
    """Least and greatest pass over NULL; among equals the first one stays."""

    def make(_node: Call, args: list[Evaluate]) -> Evaluate:
        def evaluate(row: Row) -> Value:
            values = [value for arg in args if (value := arg(row)) is not None]
            return choose(values, key=order_key) if values else None

        return evaluate

    return make


def _is_null(_node: Call, args: list[Evaluate]) -> Evaluate:
    (only,) = args
    return lambda row: only(row) is None


def _is_nan(_node: Call, args: list[Evaluate]) -> Evaluate:
    (only,) = args

    def evaluate(row: Row) -> bool:
        value = only(row)
        return value is not None and math.isnan(value)

    return evaluate


def _try_cast(node: Call, args: list[Evaluate]) -> Evaluate:
    """Only the cast's own failure becomes NULL, not that of its argument."""
    (only,) = args
    act = operation(Call("cast", node.args, node.type))

    def evaluate(row: Row) -> Value:
        value = only(row)
        try:
            return None if value is None else act(value)
        except ExpressionFailure:
            return None

    return evaluate


_LAZY: dict[str, Callable[[Call, list[Evaluate]], Evaluate]] = {
    "AND": _and, "OR": _or, "CASE": _case, "coalesce": _coalesce, "<=>": _same, "IN": _in, "isnull": _is_null,
    "isnan": _is_nan, "least": _extreme(min), "greatest": _extreme(max), "try_cast": _try_cast,
}  # fmt: skip
