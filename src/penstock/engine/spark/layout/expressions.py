"""Expressions as Spark SQL that never throws: a value, or NULL with the reason of the failure beside it.

With ANSI on, one bad tuple would end the query. So each function that can fail is written in its try_ form.
The failure is an expression of its own, which looks only at what AND, OR, CASE, IF and COALESCE would have
evaluated. Where nothing can fail, there is no second expression and the first is plain Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from penstock.model.expressions.binding import bind
from penstock.model.expressions.casts import DATE_FORM, FIRST_STAMP, LAST_STAMP, TIMESTAMP_FORM, date_of
from penstock.model.expressions.functions import FUNCTIONS
from penstock.model.expressions.patterns import for_java
from penstock.model.expressions.typed import Call, ColumnRef, Literal, Typed, can_fail, walk
from penstock.model.types import INTEGRAL, Schema


@dataclass(frozen=True)
class SparkSql:
    """`value` never throws; `failure` is a reason or NULL, and None if the expression cannot fail."""

    value: str
    failure: str | None


LONGEST = 20_000
"""Characters of Spark SQL. An argument appears several times in its form, so nested calls multiply."""


DEEPEST = 40
"""Calls inside one another. Spark's parser works by recursion, on the stack of a thread that is not ours."""


class TooLongForSparkError(Exception):
    """An expression whose Spark SQL would be too long or too deep: its box runs in a stage instead."""


def fits_spark(text: str, schema: Schema) -> bool:
    """Whether an expression can run natively.

    >>> deep = "abs(" * 20 + "a" + ")" * 20
    >>> fits_spark("abs(abs(a))", Schema.parse("a INT")), fits_spark(deep, Schema.parse("a INT"))
    (True, False)
    """
    try:
        to_spark(text, schema)
    except TooLongForSparkError:
        return False
    return True


@lru_cache(maxsize=4096)  # called for every train
def to_spark(text: str, schema: Schema) -> SparkSql:
    """An expression as Spark SQL over these columns.

    >>> to_spark("a < 5", Schema.parse("a INT"))
    SparkSql(value='(`a` < 5)', failure=None)
    >>> to_spark("a / b", Schema.parse("a DOUBLE, b DOUBLE")).value
    'try_divide(`a`, `b`)'
    """
    node = bind(text, schema)
    if _depth(node) > DEEPEST:
        raise TooLongForSparkError
    if not can_fail(node):
        return SparkSql(_value(node), None)
    value, failure = _value(node), _failure(node)
    assert failure is not None
    if _hides(node):
        value = f"CASE WHEN ({failure}) IS NULL THEN {value} END"
    return SparkSql(value, failure)


def _depth(node: Typed) -> int:
    return 1 + max(map(_depth, node.args), default=0) if isinstance(node, Call) else 1


def _hides(node: Typed) -> bool:
    """Whether a NULL that stands for a failure may turn into another value further up."""
    calls = [n for n in walk(node) if isinstance(n, Call) and not _strict(n)]
    return any(can_fail(n) for n in calls)


def _strict(node: Call) -> bool:
    return FUNCTIONS[node.function].strict if node.function in FUNCTIONS else True


# ---- values ------------------------------------------------------------------------------------------------


def _value(node: Typed) -> str:
    return _bounded(_form_of(node))


def _bounded(sql: str) -> str:
    if len(sql) > LONGEST:
        raise TooLongForSparkError
    return sql


def _form_of(node: Typed) -> str:
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, ColumnRef):
        return "`" + node.name.replace("`", "``") + "`"
    args = [_value(arg) for arg in node.args]
    form = _FORMS.get(node.function)
    if form is not None:
        return form(node, args)
    if len(args) == 2 and node.function in _INFIX:
        return f"({args[0]} {node.function} {args[1]})"
    return f"{node.function}({', '.join(args)})"


_INFIX = ("=", "<>", "<", "<=", ">", ">=", "<=>", "AND", "OR", "LIKE")
_SUFFIX = {"TINYINT": "Y", "SMALLINT": "S", "INT": "", "BIGINT": "L", "DOUBLE": "D"}


def _literal(node: Literal) -> str:
    value, type_ = node.value, node.type
    if value is None:
        return f"CAST(NULL AS {type_})"
    if type_ == "STRING":
        return _quoted(value)
    if type_ == "BOOLEAN":
        return "TRUE" if value else "FALSE"
    if type_ == "DATE":
        return f"DATE '{date_of(value).isoformat()}'"
    if type_ == "TIMESTAMP":
        return f"timestamp_micros({value}L)"
    if type_ == "FLOAT" or value in (float("inf"), float("-inf")):
        return f"CAST('{value!r}' AS {type_})"
    text = f"{value!r}{_SUFFIX[type_]}"
    return f"({text})" if text.startswith("-") else text


def _quoted(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\")
        .replace("'", "\\'")
        .replace("\n", "\\n")
        .replace("\r", "\\r")
        .replace("\x00", "\\0")
    )
    return f"'{escaped}'"


def _try(plain: str, name: str) -> Callable[[Call, list[str]], str]:
    """The plain operator where it cannot fail, else the function that returns NULL."""

    def form(node: Call, args: list[str]) -> str:
        return f"{name}({args[0]}, {args[1]})" if node.fails else f"({args[0]} {plain} {args[1]})"

    return form


def _whole_division(node: Call, args: list[str]) -> str:
    left, right = args
    if not node.fails:
        return f"({left} DIV {right})"
    # The only quotient that overflows: the smallest BIGINT divided by -1.
    return f"IF({left} = (-9223372036854775808L) AND {right} = -1, NULL, {left} DIV nullif({right}, 0L))"


def _pmod(node: Call, args: list[str]) -> str:
    divisor = (
        f"nullif({args[1]}, {_literal(Literal(0 if node.type in INTEGRAL else 0.0, node.type))})"
        if node.fails
        else args[1]
    )
    return f"pmod({args[0]}, {divisor})"


def _zero_minus(node: Call, arg: str) -> str:
    return f"try_subtract({_literal(Literal(0, node.type))}, {arg})"


def _negative(node: Call, args: list[str]) -> str:
    return _zero_minus(node, args[0]) if node.fails else f"(- {args[0]})"


def _abs(node: Call, args: list[str]) -> str:
    return f"IF({args[0]} < 0, {_zero_minus(node, args[0])}, {args[0]})" if node.fails else f"abs({args[0]})"


def _rlike(node: Call, args: list[str]) -> str:
    pattern = node.args[1]
    assert isinstance(pattern, Literal)
    return f"({args[0]} RLIKE {_quoted(for_java(pattern.value))})"


def _to_whole(node: Call, args: list[str]) -> str:
    inner = f"{node.function}({args[0]})"
    if not node.fails:
        return inner
    # NaN is above all numbers but gives 0, as in Java.
    fits = f"{args[0]} >= -9.223372036854775808E18D AND {args[0]} < 9.223372036854775807E18D"
    return f"CASE WHEN isnan({args[0]}) THEN 0L WHEN {fits} THEN {inner} END"


def _round(node: Call, args: list[str]) -> str:
    if not node.fails:
        return f"round({', '.join(args)})"
    return f"try_cast(round(CAST({args[0]} AS DECIMAL(20, 0)), {args[1]}) AS {node.type})"


def _case(_node: Call, args: list[str]) -> str:
    branches = " ".join(
        f"WHEN {when} THEN {then}" for when, then in zip(args[:-1:2], args[1::2], strict=True)
    )
    return f"CASE {branches} ELSE {args[-1]} END"


def _cast(node: Call, args: list[str]) -> str:
    return _try_cast(node, args) if node.fails else f"CAST({args[0]} AS {node.type})"


def _try_cast(node: Call, args: list[str]) -> str:
    cast = f"try_cast({args[0]} AS {node.type})"
    if node.args[0].type != "STRING" or node.type not in ("TIMESTAMP", "DATE"):
        return cast
    # Spark accepts forms whose meaning is not fixed (today's date, named zones, five-digit years).
    form = TIMESTAMP_FORM if node.type == "TIMESTAMP" else "(?s)" + DATE_FORM
    checked = f"CASE WHEN {args[0]} RLIKE {_quoted(form)} THEN {cast} END"
    if node.type == "DATE":
        return f"nullif(greatest({checked}, DATE '0000-12-31'), DATE '0000-12-31')"
    return _within(f"unix_micros({checked})")


def _within(micros: str) -> str:
    """A timestamp from microseconds, NULL outside the years 1 to 9999."""
    within = f"{micros} BETWEEN {_bigint(FIRST_STAMP)} AND {_bigint(LAST_STAMP)}"
    return f"CASE WHEN {within} THEN timestamp_micros({micros}) END"


def _bigint(value: int) -> str:
    return _literal(Literal(value, "BIGINT"))


def _shift(_node: Call, args: list[str]) -> str:
    return _within(f"try_add(unix_micros({args[0]}), {args[1]})")


def _stamp_of(factor: int) -> Callable[[Call, list[str]], str]:
    def form(node: Call, args: list[str]) -> str:
        if node.args[0].type == "DOUBLE":
            # CAST truncates towards zero, like Spark's timestamp_seconds. NaN and infinity give NULL there,
            # too.
            return _within(f"try_cast({args[0]} * {float(factor)!r}D AS BIGINT)")
        return _within(f"try_multiply({args[0]}, {factor}L)" if factor > 1 else args[0])

    return form


_FORMS: dict[str, Callable[[Call, list[str]], str]] = {
    "+": _try("+", "try_add"), "-": _try("-", "try_subtract"), "*": _try("*", "try_multiply"),
    "/": _try("/", "try_divide"), "%": _try("%", "try_mod"), "DIV": _whole_division, "pmod": _pmod,
    "negative": _negative, "abs": _abs, "ceil": _to_whole, "floor": _to_whole, "round": _round,
    "NOT": lambda _node, args: f"(NOT {args[0]})", "isnull": lambda _node, args: f"({args[0]} IS NULL)",
    "IN": lambda _node, args: f"({args[0]} IN ({', '.join(args[1:])}))", "CASE": _case, "cast": _cast,
    "RLIKE": _rlike, "try_cast": _try_cast, "shift": _shift, "timestamp_seconds": _stamp_of(1_000_000),
    "timestamp_millis": _stamp_of(1_000), "timestamp_micros": _stamp_of(1),
}  # fmt: skip


# ---- failures ----------------------------------------------------------------------------------------------


def _failure(node: Typed) -> str | None:
    """SQL for the reason why the expression fails on a tuple, NULL if it does not; None if it never can."""
    if not isinstance(node, Call) or not can_fail(node):
        return None
    form = _LAZY.get(node.function)
    if form is not None:
        reason = form(node)
        return reason if reason is None else _bounded(reason)
    reasons = [reason for arg in node.args if (reason := _failure(arg))]
    if node.fails:
        reasons.append(_own(node))
    return _bounded(_first(reasons))


def _first(reasons: list[str]) -> str:
    return reasons[0] if len(reasons) == 1 else f"coalesce({', '.join(reasons)})"


def _own(node: Call) -> str:
    """A strict function has failed if it returns NULL although no argument is NULL."""
    given = [
        f"{_value(arg)} IS NOT NULL" for arg in node.args if not isinstance(arg, Literal) or arg.value is None
    ]
    if node.function == "timestamp_seconds" and node.args[0].type == "DOUBLE":
        given = [f"abs({_value(node.args[0])}) < CAST('Infinity' AS DOUBLE)"]
    return f"CASE WHEN {' AND '.join([*given, f'{_value(node)} IS NULL'])} THEN {_reason(node)} END"


def _reason(node: Call) -> str:
    name, args = node.function, [_value(arg) for arg in node.args]
    if name == "DIV":
        return f"IF({args[1]} = 0, 'division by zero', 'BIGINT overflow')"
    if name == "cast" and node.args[0].type == "STRING":
        return f"concat('cannot cast \\'', substring({args[0]}, 1, 60), '\\' to {node.type}')"
    if name == "/":
        return "'division by zero'"
    if name in ("%", "pmod"):
        return "'remainder by zero'"
    return "'TIMESTAMP out of range'" if node.type == "TIMESTAMP" else f"'{node.type} overflow'"


def _connective(decisive: str) -> Callable[[Call], str | None]:
    """Count the right side only where the left side has not decided."""

    def form(node: Call) -> str | None:
        left, right = _failure(node.args[0]), _failure(node.args[1])
        if right is not None:
            right = f"CASE WHEN {_value(node.args[0])} IS NOT {decisive} THEN {right} END"
        return _first([reason for reason in (left, right) if reason])

    return form


def _lazy_case(node: Call) -> str | None:
    *pairs, otherwise = node.args
    none = "CAST(NULL AS STRING)"
    failure = _failure(otherwise) or none
    for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        branch = f"CASE WHEN {_value(condition)} THEN {_failure(value) or none} ELSE {failure} END"
        failing = _failure(condition)
        failure = f"coalesce({failing}, {branch})" if failing else branch
    return failure


def _lazy_coalesce(node: Call) -> str | None:
    failure: str | None = None
    for arg in reversed(node.args):
        later = f"CASE WHEN {_value(arg)} IS NULL THEN {failure} END" if failure else None
        reasons = [reason for reason in (_failure(arg), later) if reason]
        failure = _first(reasons) if reasons else None
    return failure


_LAZY: dict[str, Callable[[Call], str | None]] = {
    "AND": _connective("FALSE"),
    "OR": _connective("TRUE"),
    "CASE": _lazy_case,
    "coalesce": _lazy_coalesce,
}
