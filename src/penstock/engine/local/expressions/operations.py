"""What each strict function does to values that are not NULL: plain Python, Java's and Spark's ANSI meaning.

An entry takes the bound call and gives the operation for its types. Values: TIMESTAMP in microseconds, DATE
in days, FLOAT as a Python float that a FLOAT can hold. Every departure of Python from Java stands here and
nowhere else.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np

from penstock.engine.local.rows import SortKey, Value
from penstock.model.expressions.casts import (
    DAY,
    date_of,
    days_of,
    number_text,
    timestamp_text,
    to_boolean,
    to_days,
    to_double,
    to_float,
    to_micros,
    to_whole,
    within,
)
from penstock.model.expressions.functions import RANGES
from penstock.model.expressions.patterns import like_pattern, regex
from penstock.model.expressions.typed import Call, Literal, float32
from penstock.model.types import INTEGRAL

Operation = Callable[..., Value]
_LONG = 2**63
_SECOND = 1_000_000
# Digits enough for any rounded double: some 309 before the point and, with `round`, 400 behind it.
_EXACT = Context(prec=1200)


class ExpressionFailure(Exception):  # noqa: N818 - it becomes a dead letter
    """An expression failed on this tuple; `reason` goes to the dead letter."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def order_key(value: Value) -> SortKey:
    """Spark's order of doubles: NaN equals NaN and is above everything."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def operation(node: Call) -> Operation:
    """The operation of a strict call."""
    return _OPERATIONS[node.function](node)


def _whole(type_: str, value: int) -> int:
    """A whole number within its type."""
    if -RANGES[type_] <= value < RANGES[type_]:
        return value
    raise ExpressionFailure(f"{type_} overflow")


def _number(type_: str, act: Operation) -> Operation:
    """The operation with its result brought to the type: checked, or rounded to a FLOAT."""
    if type_ in INTEGRAL:
        return lambda *args: _whole(type_, act(*args))
    if type_ == "FLOAT":
        return lambda *args: float32(act(*args))
    return act


def _plain(act: Operation) -> Callable[[Call], Operation]:
    return lambda _node: act


def _arithmetic(act: Operation) -> Callable[[Call], Operation]:
    return lambda node: _number(node.type, act)


def _comparison(act: Operation) -> Callable[[Call], Operation]:
    def make(node: Call) -> Operation:
        # Only NaN is ordered differently in Python, so other types compare as they are.
        if node.args[0].type in ("FLOAT", "DOUBLE"):
            return lambda a, b: act(order_key(a), order_key(b))
        return act

    return make


# ---- division ----------------------------------------------------------------------------------------------


def _divide(a: float, b: float) -> float:
    if b == 0:
        raise ExpressionFailure("division by zero")
    return a / b


def _truncated(a: int, b: int) -> int:
    """The remainder with the sign of the dividend, as in Java."""
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _whole_division(a: int, b: int) -> int:
    if b == 0:
        raise ExpressionFailure("division by zero")
    quotient = abs(a) // abs(b)
    return _whole("BIGINT", quotient if (a < 0) == (b < 0) else -quotient)


def _fraction_rest(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


def _remainder(node: Call) -> Operation:
    rest = _truncated if node.type in INTEGRAL else _fraction_rest

    def act(a: Value, b: Value) -> Value:
        if b == 0:
            raise ExpressionFailure("remainder by zero")
        return rest(a, b)

    return act


def _pmod(node: Call) -> Operation:
    rest, type_ = _remainder(node), node.type

    def act(a: Value, n: Value) -> Value:
        first = rest(a, n)
        if not first < 0:
            return first
        total = first + n
        if type_ == "FLOAT":
            return rest(float32(total), n)
        # Java adds in INT at least, and wraps.
        return rest(
            _wrapped(total, "BIGINT" if type_ == "BIGINT" else "INT") if type_ in INTEGRAL else total, n
        )

    return act


def _wrapped(value: int, type_: str) -> int:
    limit = RANGES[type_]
    return (value + limit) % (2 * limit) - limit


# ---- numbers -----------------------------------------------------------------------------------------------


def _to_whole(act: Callable[[float], int]) -> Callable[[Call], Operation]:
    def of_double(x: float) -> int:
        if math.isnan(x):
            return 0  # Java's (long) NaN
        if math.isinf(x):
            raise ExpressionFailure("BIGINT overflow")
        return _whole("BIGINT", act(x))

    return lambda node: (lambda x: x) if node.args[0].type == "BIGINT" else of_double


def _round(node: Call) -> Operation:
    digits = node.args[1].value if len(node.args) == 2 else 0  # type: ignore[union-attr]  # a literal
    unit = Decimal((0, (1,), -min(max(digits, -400), 400)))

    def half_up(x: int | str) -> Decimal:
        return Decimal(x).quantize(unit, ROUND_HALF_UP, _EXACT)

    if node.type in INTEGRAL:
        return lambda x, *_: x if digits >= 0 else _whole(node.type, int(half_up(x)))

    def act(x: float, *_: int) -> float:
        # repr: the shortest text of a double, as in Java, not its exact value. + 0.0: a BigDecimal knows no
        # negative zero.
        return x if math.isnan(x) or math.isinf(x) else float(half_up(repr(x))) + 0.0

    return _number(node.type, act)


def _power(a: float, b: float) -> float:
    if math.isnan(b) or (abs(a) == 1 and math.isinf(b)):
        return math.nan  # C says 1
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        if a != 0:
            return math.nan
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(act: Callable[[float], float]) -> Callable[[Call], Operation]:
    return _plain(lambda x: None if x <= 0 else act(x))


def _sign(x: float) -> float:
    # 0.0, -0.0 and NaN are their own sign, as in Java.
    return math.copysign(1.0, x) if x > 0 or x < 0 else x


def _sqrt(x: float) -> float:
    return math.sqrt(x) if not x < 0 else math.nan


# ---- text --------------------------------------------------------------------------------------------------


def _substring(text: str, position: int, length: int = 2**31 - 1) -> str:
    # A start before the text uses up some of the length, as in Spark.
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = start + length
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _replace(text: str, find: str, put: str = "") -> str:
    return text.replace(find, put) if find else text


def _like(node: Call) -> Operation:
    pattern = like_pattern(_constant(node, 1))
    return lambda text, _: pattern.fullmatch(text) is not None


def _rlike(node: Call) -> Operation:
    pattern = regex(_constant(node, 1))
    return lambda text, _: pattern.search(text) is not None


def _constant(node: Call, number: int) -> Value:
    literal = node.args[number]
    assert isinstance(literal, Literal)
    return literal.value


# ---- time --------------------------------------------------------------------------------------------------


def _stamp(micros: int) -> int:
    if within(micros) is None:
        raise ExpressionFailure("TIMESTAMP out of range")
    return micros


def _stamp_of_seconds(node: Call) -> Operation:
    if node.args[0].type == "BIGINT":
        return lambda x: _stamp(x * _SECOND)
    return lambda x: _stamp(int(_clamped(x * _SECOND))) if math.isfinite(x) else None


def _clamped(x: float) -> float:
    # Java's cast to BIGINT stops at its limits, where Python's `int` goes on.
    return max(min(x, float(_LONG)), -float(_LONG))


_LENGTHS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": DAY,
}


def _date_trunc(node: Call) -> Operation:
    unit = _constant(node, 0)
    if unit in _LENGTHS:
        length = _LENGTHS[unit]
        return lambda _, micros: micros // length * length
    if unit == "week":
        # 1970-01-01 was a Thursday, weeks start on Monday.
        return lambda _, micros: ((micros // DAY + 3) // 7 * 7 - 3) * DAY
    return lambda _, micros: _first_day(unit, micros // DAY) * DAY


def _first_day(unit: str, days: int) -> int:
    day = date_of(days)
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return days_of(day.replace(month=month, day=1))


# ---- casts -------------------------------------------------------------------------------------------------


def _cast(node: Call) -> Operation:
    source, target = node.args[0].type, node.type
    if source == "STRING":
        return _from_text(target)
    if target == "STRING":
        return _to_text(source)
    if source == "TIMESTAMP":
        return _from_stamp(target)
    if source == "DATE":
        return lambda days: days * DAY
    if target == "BOOLEAN":
        return lambda x: x != 0
    if target in INTEGRAL:
        return _to_integral(source, target)
    return float32 if target == "FLOAT" else float


def _to_integral(source: str, target: str) -> Operation:
    if source not in ("FLOAT", "DOUBLE"):
        return lambda x: _whole(target, int(x))

    def act(x: float) -> int:
        if not math.isfinite(x):
            raise ExpressionFailure(f"{target} overflow")
        # Spark compares with the limit as a double, which is 2^63, and Java's cast then stops at the largest
        # BIGINT.
        return _LONG - 1 if target == "BIGINT" and x == float(_LONG) else _whole(target, int(x))

    return act


def _from_stamp(target: str) -> Operation:
    if target == "DATE":
        return lambda micros: micros // DAY
    if target in INTEGRAL:
        return lambda micros: _whole(target, micros // _SECOND)
    return _number(target, lambda micros: micros / 1e6)


def _from_text(target: str) -> Operation:
    if target == "BINARY":
        return str.encode
    read: Callable[[str], Value] = {
        "BOOLEAN": to_boolean,
        "DATE": to_days,
        "TIMESTAMP": to_micros,
        "DOUBLE": to_double,
        "FLOAT": to_float,
    }.get(target, to_whole)

    def act(text: str) -> Value:
        value = read(text)
        if value is None or (target in RANGES and not -RANGES[target] <= value < RANGES[target]):
            raise ExpressionFailure(f"cannot cast '{text[:60]}' to {target}")
        return value

    return act


def _to_text(source: str) -> Operation:
    if source == "BOOLEAN":
        return lambda x: "true" if x else "false"
    if source == "DATE":
        return lambda days: date_of(days).isoformat()
    if source == "TIMESTAMP":
        return timestamp_text
    if source == "DOUBLE":
        return lambda x: number_text(repr(x))
    return (lambda x: number_text(str(np.float32(x)))) if source == "FLOAT" else str


_OPERATIONS: dict[str, Callable[[Call], Operation]] = {
    "+": _arithmetic(operator.add), "-": _arithmetic(operator.sub), "*": _arithmetic(operator.mul),
    "/": _plain(_divide), "DIV": _plain(_whole_division), "%": _remainder, "pmod": _pmod,
    "negative": _arithmetic(operator.neg), "abs": _arithmetic(abs), "=": _comparison(operator.eq),
    "<>": _comparison(operator.ne), "<": _comparison(operator.lt), "<=": _comparison(operator.le),
    ">": _comparison(operator.gt), ">=": _comparison(operator.ge), "NOT": _plain(operator.not_),
    "LIKE": _like, "RLIKE": _rlike, "cast": _cast,
    "shift": _plain(lambda micros, length: _stamp(micros + length)), "ceil": _to_whole(math.ceil),
    "floor": _to_whole(math.floor), "round": _round, "sqrt": _plain(_sqrt), "exp": _plain(_exp),
    "ln": _logarithm(math.log), "log10": _logarithm(math.log10), "sign": _plain(_sign), "pow": _plain(_power),
    "concat": _plain(lambda *texts: "".join(texts)), "upper": _plain(str.upper), "lower": _plain(str.lower),
    "trim": _plain(lambda text: text.strip(" ")), "ltrim": _plain(lambda text: text.lstrip(" ")),
    "rtrim": _plain(lambda text: text.rstrip(" ")), "length": _plain(len), "substring": _plain(_substring),
    "replace": _plain(_replace), "startswith": _plain(str.startswith), "endswith": _plain(str.endswith),
    "contains": _plain(operator.contains), "hour": _plain(lambda micros: micros // _LENGTHS["hour"] % 24),
    "minute": _plain(lambda micros: micros // _LENGTHS["minute"] % 60),
    "second": _plain(lambda micros: micros // _SECOND % 60), "year": _plain(lambda days: date_of(days).year),
    "month": _plain(lambda days: date_of(days).month), "day": _plain(lambda days: date_of(days).day),
    # Sunday is 1, and day 0 was a Thursday.
    "dayofweek": _plain(lambda days: (days + 4) % 7 + 1), "date_trunc": _date_trunc,
    # unix_timestamp cuts towards zero in Spark, unix_seconds downwards.
    "unix_timestamp": _plain(lambda micros: int(math.copysign(abs(micros) // _SECOND, micros))),
    "unix_seconds": _plain(lambda micros: micros // _SECOND),
    "unix_millis": _plain(lambda micros: micros // 1_000), "unix_micros": _plain(lambda micros: micros),
    "timestamp_seconds": _stamp_of_seconds, "timestamp_millis": _plain(lambda x: _stamp(x * 1_000)),
    "timestamp_micros": _plain(_stamp),
}  # fmt: skip
