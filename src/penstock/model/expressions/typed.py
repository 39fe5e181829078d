"""The typed tree of an expression: what the engines see, and what they may rely on.

There are three kinds of node: Literal, ColumnRef, and Call of a function in functions.py. Every coercion is
an explicit cast. So each engine says what a function does, and none decides what an expression means. This
module makes the calls: it checks arity and types, and marks a call that cannot fail for any value that may
come in.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.model.errors import ExpressionError
from penstock.model.expressions import patterns
from penstock.model.expressions.casts import to_days, to_micros
from penstock.model.expressions.functions import FUNCTIONS, RANGES, VOID, Signature, cast_fails
from penstock.model.types import INTEGRAL, NUMERIC


@dataclass(frozen=True)
class Literal:
    """A constant. TIMESTAMP in microseconds, DATE in days since 1970 UTC, INTERVAL in microseconds."""

    value: Any  # bool, int, float, str or None, as `type` says
    type: str


@dataclass(frozen=True)
class ColumnRef:
    name: str
    type: str


@dataclass(frozen=True)
class Call:
    """A function of the table, or 'cast', 'try_cast', 'shift' (a timestamp by microseconds).

    `fails`: this call may fail, whatever its arguments do.
    """

    function: str
    args: tuple[Typed, ...]
    type: str
    fails: bool = False


Typed = Literal | ColumnRef | Call


def walk(node: Typed) -> Iterator[Typed]:
    """The node and all below it."""
    yield node
    if isinstance(node, Call):
        for arg in node.args:
            yield from walk(arg)


def can_fail(node: Typed) -> bool:
    """Whether some tuple can make the expression fail."""
    return any(isinstance(n, Call) and n.fails for n in walk(node))


def call(name: str, args: tuple[Typed, ...]) -> Typed:
    """A call of a function of the table: arity and types checked, arguments cast."""
    function = FUNCTIONS[name]
    low, high = function.arity
    if not low <= len(args) <= high:
        raise ExpressionError(
            f"{name} takes {function.takes}", found=count_text(len(args)), expected=_arity(low, high)
        )
    signature = function.rule(tuple(arg.type for arg in args))
    if signature is None:
        raise ExpressionError(
            f"{name} takes {function.takes}", found=_types(args), hint=_type_hint(name, args)
        )
    for index in function.constants:
        if index < len(args) and not _is_constant(args[index]):
            raise ExpressionError(
                f"{name} takes {function.takes}", found="something that changes from tuple to tuple"
            )
    cast_args = tuple(cast(arg, wanted) for arg, wanted in zip(args, signature.arguments, strict=True))
    return _result(name, cast_args, signature)


def _is_constant(arg: Typed) -> bool:
    return isinstance(arg, Literal) and arg.value is not None


def _result(name: str, args: tuple[Typed, ...], signature: Signature) -> Typed:
    if signature.result == "TIMESTAMP" and name in ("+", "-"):
        stamp, length = args if args[0].type == "TIMESTAMP" else args[::-1]
        assert isinstance(length, Literal)
        return _shifted(stamp, length.value if name == "+" else -length.value)
    if name in ("to_timestamp", "to_date"):
        return args[0]
    if name in ("LIKE", "RLIKE", "date_trunc"):
        args = _checked_pattern(name, args)
    return Call(name, args, signature.result, fails=_fails(name, args, signature.result))


def _checked_pattern(name: str, args: tuple[Typed, ...]) -> tuple[Typed, ...]:
    index = 0 if name == "date_trunc" else 1
    constant = args[index]
    text = patterns.checked(name, constant.value if isinstance(constant, Literal) else None)
    return (*args[:index], Literal(text, "STRING"), *args[index + 1 :])


def _shifted(stamp: Typed, micros: int) -> Call:
    """Two shifts are one: `t + INTERVAL 1 DAY 2 HOURS` may arrive as either."""
    if isinstance(stamp, Call) and stamp.function == "shift" and isinstance(stamp.args[1], Literal):
        return _shifted(stamp.args[0], stamp.args[1].value + micros)
    return Call("shift", (stamp, Literal(micros, "BIGINT")), "TIMESTAMP", fails=True)


def cast(arg: Typed, target: str) -> Typed:
    """An explicit cast where one is needed; a literal is cast right here."""
    if arg.type == target:
        return arg
    fails = cast_fails(arg.type, target)
    if fails is None:
        raise ExpressionError(
            f"there is no cast from {arg.type} to {target}", hint=_cast_hint(arg.type, target)
        )
    # Folding a literal finds a bad constant when the network is built, not in a train.
    if isinstance(arg, Literal):
        folded = _folded(arg, target)
        if folded is not None:
            return folded
    if fails and target in INTEGRAL and arg.type in INTEGRAL:
        fails = not fits(bounds(arg), target)
    return Call("cast", (arg,), target, fails=fails)


def _folded(literal: Literal, target: str) -> Literal | None:
    value = literal.value
    if value is None:
        return Literal(None, target)
    if target in ("TIMESTAMP", "DATE") and literal.type == "STRING":
        moment = to_micros(value) if target == "TIMESTAMP" else to_days(value)
        if moment is None:
            raise ExpressionError(
                f"'{value}' is not a {target}",
                expected=f"{target} '2025-01-31{' 12:00:00' if target == 'TIMESTAMP' else ''}'",
            )
        return Literal(moment, target)
    if literal.type not in NUMERIC or target not in NUMERIC:
        return None
    if target in INTEGRAL:
        return Literal(value, target) if literal.type in INTEGRAL and fits((value, value), target) else None
    return Literal(float32(value) if target == "FLOAT" else float(value), target)


def float32(value: float) -> float:
    """The nearest FLOAT, as a Python float; too large becomes infinite, as in Java."""
    if isinstance(value, int):
        return float(np.int64(value).astype(np.float32))  # by way of a double it would be rounded twice
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


# --- what can fail ---

Bounds = tuple[int, int]
_SMALL = {
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "year": (1, 9999),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (1, 7),
    "length": (0, 2**31 - 1),
}


def bounds(node: Typed) -> Bounds:
    """The least and greatest whole number that can come out; they show that most sums cannot overflow."""
    limit = RANGES[node.type]
    widest = (-limit, limit - 1)
    if isinstance(node, Literal) and node.value is not None:
        return node.value, node.value
    if not isinstance(node, Call):
        return widest
    low, high = _call_bounds(node) or widest
    return max(low, widest[0]), min(high, widest[1])


def _call_bounds(node: Call) -> Bounds | None:
    if node.function in _SMALL:
        return _SMALL[node.function]
    if not all(arg.type in INTEGRAL for arg in node.args):
        return None
    within = [bounds(arg) for arg in node.args]
    if node.function in ("+", "-", "*"):
        return _arithmetic_bounds(node.function, within[0], within[1])
    if node.function == "cast":
        return within[0]
    if node.function in ("%", "pmod"):
        reach = max(abs(within[1][0]), abs(within[1][1])) - 1
        return -reach, reach
    return None


def _arithmetic_bounds(operator: str, left: Bounds, right: Bounds) -> Bounds:
    act: Callable[[int, int], int] = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[operator]
    # Each operator is monotone in each argument, so its extremes lie at the corners.
    corners = [act(a, b) for a in left for b in right]
    return min(corners), max(corners)


def fits(within: Bounds, type_: str) -> bool:
    return -RANGES[type_] <= within[0] and within[1] < RANGES[type_]


def _fails(name: str, args: tuple[Typed, ...], result: str) -> bool:
    fails = FUNCTIONS[name].fails
    if any(isinstance(arg, Literal) and arg.value is None for arg in args):
        return False  # always NULL
    if fails == "never" or (fails == "integral" and result not in INTEGRAL):
        return False
    if name in ("+", "-", "*"):
        return not fits(_arithmetic_bounds(name, bounds(args[0]), bounds(args[1])), result)
    if name in ("negative", "abs"):
        return bounds(args[0])[0] == -RANGES[result]
    # A divisor that varies may be 0; DIV by -1 overflows for the least BIGINT.
    if name in ("/", "%", "pmod", "DIV"):
        divisor = args[1]
        return (
            not isinstance(divisor, Literal) or not divisor.value or (name == "DIV" and divisor.value == -1)
        )
    if name in ("ceil", "floor"):
        return args[0].type == "DOUBLE"
    if name == "round":
        return len(args) == 2 and isinstance(args[1], Literal) and args[1].value < 0
    return True


# --- words for errors ---


def count_text(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"


def _arity(low: int, high: int) -> str:
    return (
        count_text(low)
        if low == high
        else f"{low} to {high} arguments"
        if high < 100
        else f"at least {count_text(low)}"
    )


def _types(args: tuple[Typed, ...]) -> str:
    return ", ".join(
        f"{arg.name} {arg.type}" if isinstance(arg, ColumnRef) else "NULL" if arg.type == VOID else arg.type
        for arg in args
    )


def _type_hint(name: str, args: tuple[Typed, ...]) -> str:
    types = {arg.type for arg in args}
    if name == "-" and types == {"TIMESTAMP"}:
        return "unix_micros(a) - unix_micros(b) is the distance in microseconds"
    if name in ("+", "-") and "DATE" in types:
        return "CAST(the_date AS TIMESTAMP) + INTERVAL 1 DAY"
    if name == "DIV":
        return "use / for a DOUBLE, or floor(a / b)"
    return "CAST(... AS ...) makes one type of another"


def _cast_hint(source: str, target: str) -> str:
    if target == "TIMESTAMP" and source in NUMERIC:
        return "timestamp_seconds(x), timestamp_millis(x) or timestamp_micros(x)"
    return "to BOOLEAN: compare it with something" if target == "BOOLEAN" else ""
