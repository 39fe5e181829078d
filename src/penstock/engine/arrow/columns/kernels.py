"""Strict functions over whole columns: pyarrow kernels where they mean what Spark means.

A kernel gives its values, and the rows where it may be wrong or has failed. These rows are computed again one
by one (`row_by_row`), which knows the reason of a failure. So a kernel may doubt too often, but never too
seldom. NotVectorised: the whole column is left to `row_by_row`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.expressions.casts import DAY, FIRST_STAMP, LAST_STAMP
from penstock.model.expressions.functions import RANGES
from penstock.model.expressions.typed import Call, Literal
from penstock.model.types import INTEGRAL, TYPES, Schema, arrow_schema

ARROW = {type_: arrow_schema(Schema.of([("v", type_)]), hidden=False).field(0).type for type_ in TYPES}
_SURE = 9.2e18  # below 2^63 by more than the rounding of a double
_SECOND = 1_000_000
_LENGTHS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": DAY,
}

Column: TypeAlias = pa.Array | pa.Scalar  # a value for each row, or one for all
Answer = tuple[Column, Column | None]  # the values, and the rows that are not sure
Kernel = Callable[[Call, list[Column]], Answer]


class NotVectorised(Exception):  # noqa: N818 - no error
    """No kernel means quite the same: compute it row by row."""


def kernel(node: Call, args: list[Column]) -> Answer:
    """The values, and the rows to compute again (None: all are sure)."""
    vectorised = _KERNELS.get(node.function)
    if vectorised is None:
        raise NotVectorised
    return vectorised(node, args)


def need(ok: bool) -> None:
    if not ok:
        raise NotVectorised


def equal(left: Column, right: Column) -> Column:
    """SQL equality: NaN equals NaN."""
    same = pc.equal(left, right)
    if not pa.types.is_floating(left.type):
        return same
    return pc.or_kleene(same, pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))


def less(left: Column, right: Column) -> Column:
    """SQL order: NaN is above every number."""
    below = pc.less(left, right)
    if not pa.types.is_floating(left.type):
        return below
    return pc.or_kleene(below, pc.and_kleene(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _sure(act: Callable[..., Column]) -> Kernel:
    return lambda _node, args: (act(*args), None)


def _constant(node: Call, number: int) -> Any:
    arg = node.args[number]
    if not isinstance(arg, Literal):
        raise NotVectorised
    return arg.value


# ---- arithmetic --------------------------------------------------------------------------------------------


def _arithmetic(name: str) -> Kernel:
    plain, checked = getattr(pc, name), getattr(pc, f"{name}_checked")

    def act(node: Call, args: list[Column]) -> Answer:
        if not node.fails:
            return plain(*args), None
        try:
            # The checked kernel gives up on the whole column when one row overflows.
            return checked(*args), None
        except pa.ArrowInvalid:
            return _overflowing(node, plain, args)

    return act


def _overflowing(node: Call, plain: Callable[..., Column], args: list[Column]) -> Answer:
    """Some row overflows: find it by computing in a wider type."""
    if node.type == "BIGINT":
        # Doubles are not exact near the limit: count every row from _SURE on as unsure.
        wide = plain(*[pc.cast(arg, pa.float64(), safe=False) for arg in args])
        return plain(*args), pc.greater_equal(pc.abs(wide), _SURE)
    return _narrow(node.type, plain(*[pc.cast(arg, pa.int64()) for arg in args]))


def _narrow(type_: str, wide: Column) -> Answer:
    """A column of int64 or float64 as a smaller whole number; what does not fit is not sure."""
    limit = RANGES[type_] if type_ != "BIGINT" else _SURE
    # Inverted, so that NaN, which compares as false, is unsure too.
    unsure = pc.invert(pc.and_(pc.greater(wide, -limit), pc.less(wide, limit)))
    return pc.cast(pc.if_else(unsure, pa.scalar(None, wide.type), wide), ARROW[type_], safe=False), unsure


def _divide(node: Call, args: list[Column]) -> Answer:
    return pc.divide(*args), pc.equal(args[1], 0.0) if node.fails else None


def _whole_division(node: Call, args: list[Column]) -> Answer:
    left, right = args
    unsure = pc.or_(pc.equal(right, 0), pc.equal(right, -1)) if node.fails else None
    return pc.divide(left, _without(right, unsure)), unsure


def _without(divisor: Column, unsure: Column | None) -> Column:
    # Arrow raises for the whole column on a zero: let unsure rows divide by 1.
    return divisor if unsure is None else pc.if_else(unsure, pa.scalar(1, divisor.type), divisor)


def _remainder(node: Call, args: list[Column]) -> Answer:
    left, right = args
    if node.type not in INTEGRAL:
        return _fraction_rest(node, left, right)
    unsure = (
        pc.or_(pc.equal(right, 0), pc.equal(right, -1)) if node.fails or _constant(node, 1) == -1 else None
    )
    right = _without(right, unsure)
    # The quotient is cut towards zero, so the rest has the sign of the dividend, as in Java.
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right)), unsure


def _fraction_rest(node: Call, left: Column, right: Column) -> Answer:
    need(not isinstance(left, pa.Scalar))
    divisor = right.as_py() if isinstance(right, pa.Scalar) else right.to_numpy(zero_copy_only=False)
    need(divisor is not None)
    with np.errstate(all="ignore"):
        rest = np.fmod(left.to_numpy(zero_copy_only=False), np.asarray(divisor, left.type.to_pandas_dtype()))
    # NumPy knows no nulls (they became NaN): put them back.
    missing = pc.or_(pc.is_null(left), pc.is_null(right))
    values = pc.if_else(missing, pa.scalar(None, left.type), pa.array(rest, left.type))
    return values, pc.equal(right, 0.0) if node.fails else None


def _pmod(node: Call, args: list[Column]) -> Answer:
    need(node.type in INTEGRAL and not node.fails and _constant(node, 1) > 0)
    rest, unsure = _remainder(node, args)
    # A negative rest plus a positive divisor cannot overflow.
    return pc.if_else(pc.less(rest, pa.scalar(0, rest.type)), pc.add(rest, args[1]), rest), unsure


def _negative(node: Call, args: list[Column]) -> Answer:
    return pc.negate(args[0]), pc.equal(
        args[0], pa.scalar(-RANGES[node.type], args[0].type)
    ) if node.fails else None


def _abs(node: Call, args: list[Column]) -> Answer:
    return pc.abs(args[0]), pc.equal(
        args[0], pa.scalar(-RANGES[node.type], args[0].type)
    ) if node.fails else None


def _to_whole(act: Callable[[Column], Column]) -> Kernel:
    return lambda node, args: (
        (args[0], None) if node.args[0].type == "BIGINT" else _narrow("BIGINT", act(args[0]))
    )


def _round(node: Call, args: list[Column]) -> Answer:
    digits = _constant(node, 1) if len(args) == 2 else 0
    if node.type in INTEGRAL and digits >= 0:
        return args[0], None
    need(node.type == "DOUBLE" and 0 <= digits <= 15)
    scaled = pc.multiply(args[0], 10.0**digits)
    whole = pc.round(scaled, round_mode="half_towards_infinity")
    # Far from a tie and small enough, the digits after the point cannot change the answer.
    near_tie = pc.less(pc.abs(pc.subtract(pc.abs(pc.subtract(scaled, whole)), 0.5)), 1e-6)
    unsure = pc.or_(near_tie, pc.invert(pc.less(pc.abs(scaled), 2.0**30)))
    # + 0.0: Spark rounds by way of decimals, which have no negative zero.
    return pc.add(pc.divide(whole, 10.0**digits), 0.0), unsure


def _logarithm(act: Callable[[Column], Column]) -> Kernel:
    return lambda _node, args: (
        # Spark gives NULL where there is no logarithm.
        pc.if_else(pc.less_equal(args[0], 0.0), pa.scalar(None, pa.float64()), act(args[0])),
        None,
    )


def _sign(x: Column) -> Column:
    # A zero keeps its sign, as in Java.
    return pc.if_else(pc.equal(x, 0.0), x, pc.sign(x))


def _power(_node: Call, args: list[Column]) -> Answer:
    # C and Java differ only where an exponent is infinite or NaN.
    return pc.power(*args), pc.invert(pc.is_finite(args[1]))


# ---- text --------------------------------------------------------------------------------------------------


def _letters(act: Callable[[Column], Column]) -> Kernel:
    def change_case(_node: Call, args: list[Column]) -> Answer:
        # Java maps one letter to several ('ß' to 'SS'), pyarrow does not.
        need(pc.all(pc.string_is_ascii(args[0])).as_py() is not False)
        return act(args[0]), None

    return change_case


def _substring(node: Call, args: list[Column]) -> Answer:
    start, length = _constant(node, 1), _constant(node, 2) if len(args) == 3 else 2**31
    # Positions count from 1. Zero and negative ones have rules of their own: left to the rows.
    need(start is not None and length is not None and start > 0 and length >= 0)
    return pc.utf8_slice_codeunits(args[0], start - 1, start - 1 + length), None


def _replace(node: Call, args: list[Column]) -> Answer:
    find, put = _constant(node, 1), _constant(node, 2) if len(args) == 3 else ""
    need(bool(find) and put is not None)
    return pc.replace_substring(args[0], find, put), None


def _search(act: Callable[[Column, str], Column]) -> Kernel:
    def search(node: Call, args: list[Column]) -> Answer:
        pattern = _constant(node, 1)
        need(pattern is not None)
        return act(args[0], pattern), None

    return search


def _like(node: Call, args: list[Column]) -> Answer:
    pattern: str = _constant(node, 1)
    inner = pattern.strip("%")
    # Only text%, %text, %text% and text: other patterns are left to the rows.
    need(not set(inner) & set("%_\\"))
    before, after = pattern.startswith("%"), pattern.endswith("%")
    if before and after:
        return pc.match_substring(args[0], inner), None
    if not before and not after:
        return pc.equal(args[0], inner), None
    return (pc.ends_with if before else pc.starts_with)(args[0], inner), None


# ---- time --------------------------------------------------------------------------------------------------


def _whole_numbers(x: Column) -> np.ndarray:
    """Microseconds or days as numpy, whose // rounds down before 1970 too; NULL becomes 0."""
    need(not isinstance(x, pa.Scalar))
    return np.asarray(
        pc.fill_null(pc.cast(pc.cast(x, pa.int32()) if pa.types.is_date(x.type) else x, pa.int64()), 0)
    )


def _by_numpy(act: Callable[[np.ndarray], np.ndarray]) -> Kernel:
    def on_numbers(node: Call, args: list[Column]) -> Answer:
        # The moment is the last argument: date_trunc has its unit in front.
        x = args[-1]
        numbers = pa.array(act(_whole_numbers(x)), mask=np.asarray(pc.is_null(x)))
        return pc.cast(numbers, ARROW[node.type]), None

    return on_numbers


def _calendar(act: Callable[[Column], Column]) -> Kernel:
    return _sure(lambda x: pc.cast(act(x), pa.int32()))


def _date_trunc(node: Call, args: list[Column]) -> Answer:
    unit, micros = _constant(node, 0), args[1]
    if unit in _LENGTHS:
        length = _LENGTHS[unit]
        return _by_numpy(lambda x: x // length * length)(node, args)
    if unit == "week":
        # 1970-01-01 was a Thursday, and weeks start on Monday.
        return _by_numpy(lambda x: ((x // DAY + 3) // 7 * 7 - 3) * DAY)(node, args)
    # Without a zone, or Arrow would convert to local time and back.
    naive = pc.cast(pc.cast(micros, pa.int64()), pa.timestamp("us"))
    return pc.cast(pc.cast(pc.floor_temporal(naive, unit=unit), pa.int64()), ARROW["TIMESTAMP"]), None


def _stamp(micros: Column, unsure: Column | None = None) -> Answer:
    outside = pc.or_(pc.less(micros, FIRST_STAMP), pc.greater(micros, LAST_STAMP))
    return pc.cast(micros, ARROW["TIMESTAMP"]), outside if unsure is None else pc.or_(outside, unsure)


def _shift(node: Call, args: list[Column]) -> Answer:
    length = _constant(node, 1)
    # Two numbers of this size cannot overflow.
    need(abs(length) < 2**61)
    return _stamp(pc.add(pc.cast(args[0], pa.int64()), length))


def _stamp_of(factor: int) -> Kernel:
    def from_number(node: Call, args: list[Column]) -> Answer:
        need(node.args[0].type == "BIGINT")
        # Within this reach the product cannot wrap around.
        reach = 2**61 // factor
        large = pc.or_(pc.greater(args[0], reach), pc.less(args[0], -reach))
        return _stamp(pc.multiply(args[0], factor), large)

    return from_number


# ---- casts -------------------------------------------------------------------------------------------------

# So many digits surely fit the type.
_DIGITS = {"TINYINT": 2, "SMALLINT": 4, "INT": 9, "BIGINT": 18}


def _cast(node: Call, args: list[Column]) -> Answer:
    source, target, x = node.args[0].type, node.type, args[0]
    if source == "STRING":
        return _from_text(target, x)
    if source in ("TIMESTAMP", "DATE"):
        return _from_time(node, args)
    if target == "STRING":
        # Arrow spells doubles differently from Java.
        need(source == "BOOLEAN" or source in INTEGRAL)
        return pc.cast(x, pa.string()), None
    if target == "BOOLEAN":
        return pc.not_equal(x, pa.scalar(0, x.type)), None
    if not node.fails:
        return pc.cast(x, ARROW[target], safe=False), None
    return _narrow(
        target,
        pc.trunc(pc.cast(x, pa.float64())) if source in ("FLOAT", "DOUBLE") else pc.cast(x, pa.int64()),
    )


def _from_time(node: Call, args: list[Column]) -> Answer:
    source, target = node.args[0].type, node.type
    if target == "DATE":
        return _by_numpy(lambda x: (x // DAY).astype(np.int32))(node, args)
    if source == "DATE" and target == "TIMESTAMP":
        return _by_numpy(lambda x: x * DAY)(node, args)
    need(target in ("BIGINT", "DOUBLE"))
    return _by_numpy((lambda x: x // _SECOND) if target == "BIGINT" else (lambda x: x / 1e6))(node, args)


def _from_text(target: str, text: Column) -> Answer:
    """Plain short numbers; every other spelling is read row by row."""
    need(target in _DIGITS or target == "DOUBLE")
    form = f"^-?[0-9]{{1,{_DIGITS[target]}}}$" if target in _DIGITS else r"^-?[0-9]{1,15}([.][0-9]{1,15})?$"
    plain = pc.match_substring_regex(text, form)
    return pc.cast(pc.if_else(plain, text, pa.scalar(None, pa.string())), ARROW[target]), pc.invert(plain)


_KERNELS: dict[str, Kernel] = {
    "+": _arithmetic("add"), "-": _arithmetic("subtract"), "*": _arithmetic("multiply"), "/": _divide,
    "DIV": _whole_division, "%": _remainder, "pmod": _pmod, "negative": _negative, "abs": _abs,
    "ceil": _to_whole(pc.ceil), "floor": _to_whole(pc.floor), "round": _round, "sqrt": _sure(pc.sqrt),
    "exp": _sure(pc.exp), "ln": _logarithm(pc.ln), "log10": _logarithm(pc.log10), "sign": _sure(_sign),
    "pow": _power, "=": _sure(equal), "<>": _sure(lambda a, b: pc.invert(equal(a, b))), "<": _sure(less),
    ">": _sure(lambda a, b: less(b, a)), "<=": _sure(lambda a, b: pc.invert(less(b, a))),
    ">=": _sure(lambda a, b: pc.invert(less(a, b))), "NOT": _sure(pc.invert), "LIKE": _like, "cast": _cast,
    "shift": _shift, "concat": _sure(lambda *texts: pc.binary_join_element_wise(*texts, "")),
    "upper": _letters(pc.ascii_upper), "lower": _letters(pc.ascii_lower),
    "trim": _sure(lambda x: pc.utf8_trim(x, " ")), "ltrim": _sure(lambda x: pc.utf8_ltrim(x, " ")),
    "rtrim": _sure(lambda x: pc.utf8_rtrim(x, " ")),
    "length": _sure(lambda x: pc.utf8_length(x) if pa.types.is_string(x.type) else pc.binary_length(x)),
    "substring": _substring, "replace": _replace, "startswith": _search(pc.starts_with),
    "endswith": _search(pc.ends_with), "contains": _search(pc.match_substring), "date_trunc": _date_trunc,
    "hour": _by_numpy(lambda x: x // _LENGTHS["hour"] % 24),
    "minute": _by_numpy(lambda x: x // _LENGTHS["minute"] % 60),
    "second": _by_numpy(lambda x: x // _SECOND % 60), "dayofweek": _by_numpy(lambda x: (x + 4) % 7 + 1),
    "year": _calendar(pc.year), "month": _calendar(pc.month), "day": _calendar(pc.day),
    "unix_micros": _sure(lambda x: pc.cast(x, pa.int64())), "unix_seconds": _by_numpy(lambda x: x // _SECOND),
    "unix_millis": _by_numpy(lambda x: x // 1_000),
    # unix_timestamp cuts towards zero in Spark, unix_seconds downwards.
    "unix_timestamp": lambda _node, args: (pc.divide(pc.cast(args[0], pa.int64()), _SECOND), None),
    "timestamp_seconds": _stamp_of(_SECOND), "timestamp_millis": _stamp_of(1_000),
    "timestamp_micros": _stamp_of(1),
}  # fmt: skip
