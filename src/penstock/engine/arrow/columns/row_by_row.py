"""Expressions row by row, for the few rows and functions that no Arrow kernel settles.

This is not the reference (`engine/local/expressions`) and shares no code with it: a fault in one shows
against the other. It walks the typed tree for each row, and lets numpy's fixed-width numbers find what
overflows. What both rest on is the definition in `model`: the tree, the texts of numbers and times (`casts`),
and the patterns.

Values inside: TIMESTAMP as microseconds, DATE as days, FLOAT as a Python float that a FLOAT can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.columns.kernels import ARROW
from penstock.engine.arrow.columns.row_times import SECOND, TIME_FUNCTIONS
from penstock.engine.arrow.columns.row_types import Act, Row, RowFailure, Value, without_node
from penstock.model.expressions import casts
from penstock.model.expressions.patterns import like_pattern, regex
from penstock.model.expressions.typed import Call, ColumnRef, Literal, Typed
from penstock.model.types import INTEGRAL

_NUMPY: dict[str, Any] = {
    "TINYINT": np.int8, "SMALLINT": np.int16, "INT": np.int32, "BIGINT": np.int64,
    "FLOAT": np.float32, "DOUBLE": np.float64,
}  # fmt: skip
_STORED = {"TIMESTAMP": pa.int64(), "DATE": pa.int32()}


def rows_one_by_one(node: Typed, table: pa.Table) -> tuple[pa.Array, dict[int, str]]:
    """The value of each row, null where it failed, and the reasons by row."""
    values: list[Value] = []
    failures: dict[int, str] = {}
    for number, row in enumerate(_plain_rows(table)):
        try:
            values.append(value_of(node, row))
        except RowFailure as failure:
            values.append(None)
            failures[number] = failure.reason
    # Times were computed as whole numbers: store them so, then cast.
    return pa.array(values, _STORED.get(node.type, ARROW[node.type])).cast(ARROW[node.type]), failures


def constant(node: Typed) -> pa.Scalar:
    """The value of an expression without columns; RowFailure if it has none."""
    value = value_of(node, {})
    return pa.scalar(value, _STORED.get(node.type, ARROW[node.type])).cast(ARROW[node.type])


def _plain_rows(table: pa.Table) -> list[Row]:
    if not table.num_columns:
        # An expression without columns still has a value for each row.
        return [{}] * table.num_rows
    plain = [_as_numbers(column) for column in table.columns]
    rows: list[Row] = pa.table(plain, names=table.column_names).to_pylist()
    return rows


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column


def value_of(node: Typed, row: Row) -> Value:
    """The value of a bound expression on one row."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, ColumnRef):
        return row[node.name]
    sees_null = _SEES_NULL.get(node.function)
    if sees_null is not None:
        return sees_null(node, row)
    # All operands, left to right: the first that fails is the reason.
    args = [value_of(arg, row) for arg in node.args]
    return None if any(arg is None for arg in args) else _STRICT[node.function](node, *args)


# ---- functions that see NULL, or leave arguments out -------------------------------------------------------


def _decided(word: bool) -> Act:
    """AND is decided by false, OR by true; the right side counts only if the left does not decide."""

    def act(node: Call, row: Row) -> bool | None:
        seen: list[bool | None] = []
        for arg in node.args:
            seen.append(value_of(arg, row))
            if seen[-1] is word:
                return word
        return None if None in seen else not word

    return act


def _case(node: Call, row: Row) -> Value:
    args = list(node.args)
    while len(args) > 1:
        # What is left at the end is ELSE.
        condition, value, *args = args
        if value_of(condition, row):
            return value_of(value, row)
    return value_of(args[0], row)


def _coalesce(node: Call, row: Row) -> Value:
    return next((value for arg in node.args if (value := value_of(arg, row)) is not None), None)


def _same(node: Call, row: Row) -> bool:
    left, right = [value_of(arg, row) for arg in node.args]
    if left is None or right is None:
        return left is None and right is None
    return _order(left, right) == 0


def _in(node: Call, row: Row) -> bool | None:
    value, *others = [value_of(arg, row) for arg in node.args]
    if value is None:
        return None
    answers = [None if other is None else _order(value, other) == 0 for other in others]
    return True if True in answers else None if None in answers else False


def _extreme(sign: int) -> Act:
    """The first of the best, NULL passed over; `sign`: the order of a better value to the best so far."""

    def act(node: Call, row: Row) -> Value:
        best = None
        for value in [value_of(arg, row) for arg in node.args]:
            if value is not None and (best is None or _order(value, best) == sign):
                best = value
        return best

    return act


def _try_cast(node: Call, row: Row) -> Value:
    value = value_of(node.args[0], row)
    try:
        return None if value is None else _cast(node, value)
    except RowFailure:
        return None


_SEES_NULL: dict[str, Act] = {
    "AND": _decided(False), "OR": _decided(True), "CASE": _case, "coalesce": _coalesce, "<=>": _same,
    "IN": _in, "least": _extreme(-1), "greatest": _extreme(1), "try_cast": _try_cast,
    "isnull": lambda node, row: value_of(node.args[0], row) is None,
    "isnan": lambda node, row: value_of(node.args[0], row) not in (None, math.inf, -math.inf)
    and not math.isfinite(value_of(node.args[0], row)),
}  # fmt: skip


# ---- numbers -----------------------------------------------------------------------------------------------


def _order(left: Value, right: Value) -> int:
    """-1, 0 or 1; NaN equals NaN and is above every number."""
    if left != left or right != right:  # noqa: PLR0124 - only NaN differs from itself
        return int(left != left) - int(right != right)  # noqa: PLR0124 - as above
    return int(left > right) - int(left < right)


def _compared(*wanted: int) -> Act:
    return lambda _node, left, right: _order(left, right) in wanted


def _fixed_width(act: Act) -> Act:
    """Arithmetic in the numbers of the result's type: whole ones may overflow, fractions become infinite."""

    def in_type(node: Call, *args: Value) -> Value:
        kind = _NUMPY[node.type]
        try:
            with np.errstate(all="raise" if node.type in INTEGRAL else "ignore"):
                # Only for scalars does numpy notice that whole numbers overflow; arrays wrap silently.
                return act(*(kind(arg) for arg in args)).item()
        except FloatingPointError:
            raise RowFailure(f"{node.type} overflow") from None

    return in_type


def _in_range(type_: str, value: int) -> int:
    limits = np.iinfo(_NUMPY[type_])
    if not limits.min <= value <= limits.max:
        raise RowFailure(f"{type_} overflow")
    return value


def _divide(_node: Call, left: float, right: float) -> float:
    if right == 0:
        raise RowFailure("division by zero")
    with np.errstate(all="ignore"):
        return float(np.float64(left) / np.float64(right))


def _whole_division(_node: Call, left: int, right: int) -> int:
    if right == 0:
        raise RowFailure("division by zero")
    # A fraction is exact, where a quotient of doubles would round; trunc cuts towards zero as Java does.
    return _in_range("BIGINT", math.trunc(Fraction(left, right)))


def _rest(node: Call, left: Value, right: Value) -> Value:
    if right == 0:
        raise RowFailure("remainder by zero")
    if node.type in INTEGRAL:
        return left - right * math.trunc(Fraction(left, right))
    with np.errstate(all="ignore"):
        return float(np.fmod(left, right))


def _pmod(node: Call, left: Value, right: Value) -> Value:
    rest = _rest(node, left, right)
    if not rest < 0:
        return rest
    # Java adds in INT at least, and wraps; a FLOAT is added as a FLOAT.
    kind = np.int32 if node.type in ("TINYINT", "SMALLINT") else _NUMPY[node.type]
    with np.errstate(all="ignore"):
        return _rest(node, (kind(rest) + kind(right)).item(), right)


def _up_or_down(mode: str) -> Act:
    def act(node: Call, x: float) -> int:
        if node.args[0].type == "BIGINT":
            return int(x)
        if math.isnan(x):
            return 0  # Java's (long) NaN
        if math.isinf(x):
            raise RowFailure("BIGINT overflow")
        return _in_range("BIGINT", int(Decimal(x).to_integral_value(mode)))

    return act


def _round(node: Call, x: float, digits: int = 0) -> float:
    """Half away from zero, of the decimal digits that are shown."""
    if node.type in INTEGRAL:
        return x if digits >= 0 else _in_range(node.type, int(_half_up(Fraction(x), digits)))
    if not math.isfinite(x):
        return x
    try:
        # repr: 2.675 is rounded as it is written, not as the double just below it.
        rounded = float(_half_up(Fraction(repr(x)), digits)) + 0.0  # no negative zero
    except OverflowError:
        rounded = math.copysign(math.inf, x)
    return _single(rounded) if node.type == "FLOAT" else rounded


def _half_up(x: Fraction, digits: int) -> Fraction:
    # No double has digits beyond these; without a bound the power would fill the memory.
    unit = Fraction(10) ** -min(max(digits, -400), 400)
    size = math.floor(abs(x) / unit + Fraction(1, 2)) * unit
    return -size if x < 0 else size


def _single(x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(x))


def _by_kernel(kernel: Callable[[pa.Scalar], pa.Scalar]) -> Act:
    """As over columns, so that one engine has one answer."""
    return lambda _node, x: kernel(pa.scalar(x, pa.float64())).as_py()


def _logarithm(kernel: Callable[[pa.Scalar], pa.Scalar]) -> Act:
    return lambda node, x: None if x <= 0 else _by_kernel(kernel)(node, x)


def _power(_node: Call, base: float, exponent: float) -> float:
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan  # C says 1
    return float(pc.power(pa.scalar(base, pa.float64()), pa.scalar(exponent, pa.float64())).as_py())


def _sign(_node: Call, x: float) -> float:
    return x if x == 0 or math.isnan(x) else math.copysign(1.0, x)


# ---- text --------------------------------------------------------------------------------------------------


def _substring(_node: Call, text: str, position: int, length: int = 2**31 - 1) -> str:
    """Places count from 1, or back from the end; what lies before the text takes part of the length."""
    start = position - 1 if position > 0 else position + len(text) if position < 0 else 0
    return "".join(letter for index, letter in enumerate(text) if start <= index < start + length)


def _replace(_node: Call, text: str, find: str, put: str = "") -> str:
    return put.join(text.split(find)) if find else text


def _matches(pattern: Act, method: str) -> Act:
    return lambda node, text, _pattern: getattr(pattern(node.args[1].value), method)(text) is not None


# ---- casts -------------------------------------------------------------------------------------------------


def _cast(node: Call, x: Value) -> Value:
    source, target = node.args[0].type, node.type
    if source == "STRING":
        return _from_text(target, x)
    if target == "STRING":
        return _TEXTS.get(source, str)(x)
    if source in ("TIMESTAMP", "DATE"):
        return _from_time(source, target, x)
    if target == "BOOLEAN":
        return x != 0
    if target in INTEGRAL:
        return _to_whole(target, x)
    return _to_fraction(target, x)


def _to_whole(target: str, x: float) -> int:
    if isinstance(x, float):
        if not math.isfinite(x):
            raise RowFailure(f"{target} overflow")
        if target == "BIGINT" and x == 2.0**63:
            # Spark compares with the limit as a double; Java's cast then stops at the largest BIGINT.
            return 2**63 - 1
    return _in_range(target, math.trunc(x))


def _to_fraction(target: str, x: float) -> float:
    # A whole number is rounded once, not by way of a double.
    exact = x if isinstance(x, float) else np.int64(x)
    with np.errstate(all="ignore"):
        return float(np.asarray(exact).astype(_NUMPY[target]))


def _from_time(source: str, target: str, x: int) -> float:
    if source == "DATE":
        return x * casts.DAY
    if target == "DATE":
        return math.floor(Fraction(x, casts.DAY))
    if target in INTEGRAL:
        return _in_range(target, math.floor(Fraction(x, SECOND)))
    return _single(x / 1e6) if target == "FLOAT" else x / 1e6


_READ: dict[str, Callable[[str], Value]] = {
    "BOOLEAN": casts.to_boolean, "DATE": casts.to_days, "TIMESTAMP": casts.to_micros,
    "DOUBLE": casts.to_double, "FLOAT": casts.to_float,
}  # fmt: skip


def _from_text(target: str, text: str) -> Value:
    if target == "BINARY":
        return text.encode()
    value = _READ.get(target, casts.to_whole)(text)
    limits = np.iinfo(_NUMPY[target]) if target in INTEGRAL else None
    if value is None or (limits is not None and not limits.min <= value <= limits.max):
        raise RowFailure(f"cannot cast '{text[:60]}' to {target}")
    return value


_TEXTS: dict[str, Callable[[Value], str]] = {
    "BOOLEAN": lambda x: str(x).lower(),
    "DATE": lambda days: str(np.datetime64(days, "D")),
    "TIMESTAMP": casts.timestamp_text,
    "DOUBLE": lambda x: casts.number_text(repr(x)),
    # The fewest digits that name this FLOAT; as a double it would show many more.
    "FLOAT": lambda x: casts.number_text(str(np.float32(x))),
}


_STRICT: dict[str, Act] = {
    "+": _fixed_width(lambda a, b: a + b), "-": _fixed_width(lambda a, b: a - b),
    "*": _fixed_width(lambda a, b: a * b), "negative": _fixed_width(lambda a: -a), "abs": _fixed_width(abs),
    "/": _divide, "DIV": _whole_division, "%": _rest, "pmod": _pmod, "=": _compared(0),
    "<>": _compared(-1, 1), "<": _compared(-1), "<=": _compared(-1, 0), ">": _compared(1),
    ">=": _compared(0, 1), "NOT": without_node(lambda x: not x), "cast": _cast,
    "LIKE": _matches(like_pattern, "fullmatch"), "RLIKE": _matches(regex, "search"),
    "ceil": _up_or_down(ROUND_CEILING), "floor": _up_or_down(ROUND_FLOOR), "round": _round, "sign": _sign,
    "pow": _power, "sqrt": _by_kernel(pc.sqrt), "exp": _by_kernel(pc.exp), "ln": _logarithm(pc.ln),
    "log10": _logarithm(pc.log10), "concat": without_node(lambda *texts: "".join(texts)),
    "upper": without_node(lambda text: text.upper()), "lower": without_node(lambda text: text.lower()),
    "trim": without_node(lambda text: text.strip(" ")), "ltrim": without_node(lambda text: text.lstrip(" ")),
    "rtrim": without_node(lambda text: text.rstrip(" ")), "length": without_node(len),
    "substring": _substring, "replace": _replace,
    "startswith": without_node(lambda text, part: text[: len(part)] == part),
    "endswith": without_node(lambda text, part: text.endswith(part)),
    "contains": without_node(lambda text, part: text.find(part) >= 0),
    **TIME_FUNCTIONS,
}  # fmt: skip


def covered() -> Sequence[str]:
    """The functions that can be done here, for the test that compares them all."""
    return (*_SEES_NULL, *_STRICT)
