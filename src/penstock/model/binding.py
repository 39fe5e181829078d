"""From Spark SQL text to a small typed tree: columns found, types known, every coercion an explicit cast.

The engines see three kinds of node only (Literal, ColumnRef, Call over the table in functions.py), so each of them
says what a function does and none of them decides what an expression means. sqlglot does the parsing; its own idea of
functions is switched off, because it rewrites some of them into others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from penstock.model import patterns
from penstock.model.casts import to_days, to_micros
from penstock.model.durations import parse_duration
from penstock.model.errors import ExpressionError, did_you_mean
from penstock.model.functions import (
    AGGREGATE_ALIASES,
    AGGREGATES,
    ALIASES,
    FUNCTIONS,
    INTERVAL,
    RANGES,
    SUGAR,
    VOID,
    WINDOW_EDGES,
    Signature,
    cast_fails,
    names,
)
from penstock.model.types import INTEGRAL, NUMERIC, Schema, canonical_type


class Dialect(Spark):
    """Spark's grammar with every function left as it was written, and Spark 4's doubled quotes."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012

    class Parser(Spark.Parser):
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {
            k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k in ("CAST", "TRY_CAST")
        }  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS = {
            k: v for k, v in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items() if k in ("CASE", "IF")
        }  # noqa: RUF012


@dataclass(frozen=True)
class Literal:
    """A constant. TIMESTAMP in microseconds, DATE in days since 1970 UTC, INTERVAL in microseconds."""

    value: Any
    type: str


@dataclass(frozen=True)
class ColumnRef:
    name: str
    type: str


@dataclass(frozen=True)
class Call:
    """A function of the table, or 'cast', 'try_cast', 'shift' (a timestamp by microseconds). `fails`: it may, by itself."""

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


def parse(text: str) -> exp.Expression:
    """The syntax tree of an expression, or an error that shows where it stops being one."""
    if not text.strip():
        raise ExpressionError(
            "the expression is empty", expected="a Spark SQL expression", hint="for example 'speed < 40'"
        )
    try:
        tree = sqlglot.parse_one(text, dialect=Dialect)
    except SqlglotError as error:
        raise ExpressionError(
            f"'{text}' is not an expression", found=_syntax(error), expected="a Spark SQL expression"
        ) from None
    if isinstance(tree, exp.Alias):
        raise ExpressionError(
            f"'{text}' names its result",
            expected="an expression alone",
            hint="is an operator or a comma missing?",
        )
    return tree


def _syntax(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error)
    first = details[0]
    return f"{first['description'].rstrip('.')} at column {first['col']}, near '{first['highlight']}'"


@lru_cache(maxsize=4096)
def bind(text: str, schema: Schema) -> Typed:
    """The typed tree of an expression over these columns.

    >>> bind("vid + 1", Schema.parse("vid BIGINT")).type
    'BIGINT'
    """
    return bind_tree(parse(text), schema)


def bind_tree(tree: exp.Expression, schema: Schema) -> Typed:
    """Like bind, of a syntax tree; NULL and INTERVAL cannot be what a column holds."""
    bound = _bind(tree, schema)
    if bound.type == VOID:
        raise ExpressionError(
            f"'{_sql(tree)}' is always NULL and has no type", hint="CAST(NULL AS INT), or another type"
        )
    if bound.type == INTERVAL:
        raise ExpressionError(
            f"'{_sql(tree)}' is an INTERVAL, which no column can hold",
            hint="unix_micros(timestamp) gives a number",
        )
    return bound


def call(name: str, args: tuple[Typed, ...]) -> Typed:
    """A call of a function of the table: arity and types checked, arguments cast."""
    function = FUNCTIONS[name]
    low, high = function.arity
    if not low <= len(args) <= high:
        raise ExpressionError(
            f"{name} takes {function.takes}", found=_count(len(args)), expected=_arity(low, high)
        )
    signature = function.rule(tuple(arg.type for arg in args))
    if signature is None:
        raise ExpressionError(
            f"{name} takes {function.takes}", found=_types(args), hint=_type_hint(name, args)
        )
    for place in function.constants:
        if place < len(args) and (not isinstance(args[place], Literal) or args[place].value is None):  # type: ignore[union-attr]
            raise ExpressionError(
                f"{name} takes {function.takes}", found="something that changes from tuple to tuple"
            )
    cast_args = tuple(cast(arg, wanted) for arg, wanted in zip(args, signature.arguments, strict=True))
    return _made(name, cast_args, signature)


def _made(name: str, args: tuple[Typed, ...], signature: Signature) -> Typed:
    if signature.result == "TIMESTAMP" and name in ("+", "-"):
        stamp, length = args if args[0].type == "TIMESTAMP" else args[::-1]
        assert isinstance(length, Literal)
        return Call(
            "shift",
            (stamp, Literal(length.value if name == "+" else -length.value, "BIGINT")),
            "TIMESTAMP",
            fails=True,
        )
    if name in ("to_timestamp", "to_date"):
        return args[0]
    if name in ("LIKE", "RLIKE", "date_trunc"):
        args = patterns.checked(name, args)
    return Call(name, args, signature.result, fails=_fails(name, args, signature.result))


def cast(arg: Typed, target: str) -> Typed:
    """An explicit cast where one is needed; casts of literals are done here and now."""
    if arg.type == target:
        return arg
    fails = cast_fails(arg.type, target)
    if fails is None:
        raise ExpressionError(
            f"there is no cast from {arg.type} to {target}", hint=_cast_hint(arg.type, target)
        )
    if isinstance(arg, Literal):
        folded = _folded(arg, target)
        if folded is not None:
            return folded
    if fails and target in INTEGRAL and arg.type in INTEGRAL:
        fails = not _fits(bounds(arg), target)
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
        return Literal(value, target) if literal.type in INTEGRAL and _fits((value, value), target) else None
    return Literal(float32(value) if target == "FLOAT" else float(value), target)


def float32(value: float) -> float:
    """The nearest FLOAT, as a Python float; too large becomes infinite, as in Java."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


# ---- what can fail -----------------------------------------------------------------------------------------------

Bounds = tuple[int, int]
_SMALL = {"hour": (0, 23), "minute": (0, 59), "second": (0, 59), "year": (1, 9999), "month": (1, 12), "day": (1, 31), "dayofweek": (1, 7), "length": (0, 2**31 - 1)}  # fmt: skip


def bounds(node: Typed) -> Bounds:
    """The least and greatest whole number that can come out: it shows that much arithmetic cannot overflow."""
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
    corners = [act(a, b) for a in left for b in right]
    return min(corners), max(corners)


def _fits(within: Bounds, type_: str) -> bool:
    return -RANGES[type_] <= within[0] and within[1] < RANGES[type_]


def _fails(name: str, args: tuple[Typed, ...], result: str) -> bool:
    fails = FUNCTIONS[name].fails
    if fails == "never" or (fails == "integral" and result not in INTEGRAL):
        return False
    if name in ("+", "-", "*"):
        return not _fits(_arithmetic_bounds(name, bounds(args[0]), bounds(args[1])), result)
    if name in ("negative", "abs"):
        return bounds(args[0])[0] == -RANGES[result]
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


# ---- from syntax to calls ----------------------------------------------------------------------------------------


def _bind(node: exp.Expression, schema: Schema) -> Typed:
    form = _FORMS.get(type(node))
    if form is not None:
        return form(node, schema)
    operator = _OPERATORS.get(type(node))
    if operator is None:
        raise ExpressionError(
            f"'{_sql(node)}' is not supported in an expression", hint=did_you_mean("", names())
        )
    args = tuple(_bind(side, schema) for side in (node.this, node.expression))
    made = call(operator, args)
    return call("NOT", (made,)) if node.args.get("negate") else made


def _literal(node: exp.Expression, _: Schema) -> Typed:
    text = node.name
    if node.is_string:
        return Literal(text, "STRING")
    if not text.isdigit():
        return Literal(float(text), "DOUBLE")
    return _whole(int(text))


def _whole(value: int) -> Literal:
    for type_ in ("INT", "BIGINT"):
        if _fits((value, value), type_):
            return Literal(value, type_)
    raise ExpressionError(
        f"{value} is too large for a whole number",
        expected="at most 9223372036854775807",
        hint="write it with a decimal point for a DOUBLE",
    )


def _negative(node: exp.Expression, schema: Schema) -> Typed:
    inner = node.this
    # -2147483648 is one literal, not the negation of one that is too large for an INT
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return _whole(-int(inner.name)) if inner.name.isdigit() else Literal(-float(inner.name), "DOUBLE")
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and not inner.this.is_string:
        return cast(_negative(exp.Neg(this=inner.this), schema), _type(inner))
    bound = _bind(inner, schema)
    if isinstance(bound, Literal) and bound.type == INTERVAL:
        return Literal(-bound.value, INTERVAL)
    return call("negative", (bound,))


def _column(node: exp.Expression, schema: Schema) -> Typed:
    if node.table:
        raise ExpressionError(
            f"'{_sql(node)}' names a table",
            expected="a column name alone",
            hint=did_you_mean(node.name, schema.names),
        )
    return ColumnRef(node.name, schema.type_of(node.name))


def _add(node: exp.Expression, schema: Schema) -> Typed:
    left, right = _bind(node.this, schema), _bind(node.expression, schema)
    # INTERVAL 1 DAY 2 HOURS arrives as a sum
    if isinstance(left, Literal) and isinstance(right, Literal) and left.type == right.type == INTERVAL:
        return Literal(left.value + right.value, INTERVAL)
    return call("+", (left, right))


def _interval(node: exp.Expression, _: Schema) -> Typed:
    value, unit = node.this, node.args.get("unit")
    if not isinstance(value, exp.Literal) or isinstance(unit, exp.IntervalSpan):
        raise ExpressionError(
            f"'{_sql(node)}' is not an interval of fixed length",
            expected="INTERVAL 90 SECONDS, INTERVAL '1 hour 30 minutes'",
        )
    text = f"{value.name} {unit.name if unit else ''}".strip()
    sign = -1 if text.startswith("-") else 1
    try:
        return Literal(sign * parse_duration(text.lstrip("+-").lower()), INTERVAL)
    except ExpressionError as error:
        hint = (
            "months and years differ in length"
            if any(u in text.lower() for u in ("month", "year"))
            else error.hint
        )
        raise ExpressionError(
            f"'{_sql(node)}' is not an interval of fixed length",
            found=text,
            expected=error.expected,
            hint=hint,
        ) from None


def _cast(node: exp.Expression, schema: Schema) -> Typed:
    arg = cast(_bind(node.this, schema), _type(node))
    if node.args.get("safe") and isinstance(arg, Call) and arg.fails:
        return Call("try_cast", arg.args, arg.type)
    return arg


def _type(node: exp.Expression) -> str:
    return canonical_type(node.args["to"].sql(dialect=Dialect))


def _is(node: exp.Expression, schema: Schema) -> Typed:
    if isinstance(node.expression, exp.Null):
        return call("isnull", (_bind(node.this, schema),))
    return call("<=>", (_bind(node.this, schema), _bind(node.expression, schema)))


def _between(node: exp.Expression, schema: Schema) -> Typed:
    value, low, high = (_bind(node.args[part], schema) for part in ("this", "low", "high"))
    return call("AND", (call(">=", (value, low)), call("<=", (value, high))))


def _in(node: exp.Expression, schema: Schema) -> Typed:
    if not node.expressions:
        raise ExpressionError(
            f"'{_sql(node)}' is not supported",
            expected="IN (value, value, ...)",
            hint="use a Join box for a lookup in a stream",
        )
    return call("IN", tuple(_bind(each, schema) for each in (node.this, *node.expressions)))


def _case(node: exp.Expression, schema: Schema) -> Typed:
    subject = _bind(node.this, schema) if node.this else None
    args: list[Typed] = []
    for branch in node.args["ifs"]:
        when = _bind(branch.this, schema)
        args += [when if subject is None else call("=", (subject, when)), _bind(branch.args["true"], schema)]
    default = node.args.get("default")
    return call("CASE", (*args, _bind(default, schema) if default else Literal(None, VOID)))


def _if(node: exp.Expression, schema: Schema) -> Typed:
    otherwise = node.args.get("false")
    last = _bind(otherwise, schema) if otherwise else Literal(None, VOID)
    return call("CASE", (_bind(node.this, schema), _bind(node.args["true"], schema), last))


def _pipe(node: exp.Expression, schema: Schema) -> Typed:
    if isinstance(node.expression, exp.Add | exp.Sub):
        raise ExpressionError(f"'{_sql(node)}' can be read in two ways", hint="put the sum in parentheses")
    return call("concat", (_bind(node.this, schema), _bind(node.expression, schema)))


def _like(node: exp.Expression, schema: Schema) -> Typed:
    raise ExpressionError(
        f"'{_sql(node)}': ESCAPE is not supported",
        hint="the escape character is \\, written '\\\\' inside quotes",
    )


def _function(node: exp.Expression, schema: Schema) -> Typed:
    written = node.name
    name = written.lower()
    if name in AGGREGATES or name in AGGREGATE_ALIASES or name in WINDOW_EDGES:
        raise ExpressionError(
            f"'{written}' is an aggregate",
            found=_sql(node),
            hint="aggregates stand in the windows of tumble, slide and latch",
        )
    name = ALIASES.get(name, name)
    if name not in FUNCTIONS and name not in SUGAR:
        raise ExpressionError(
            f"unknown function '{written}'",
            found=_sql(node),
            expected=f"one of: {', '.join(names())}",
            hint=did_you_mean(written, names()),
        )
    args = tuple(_bind(each, schema) for each in node.expressions)
    if name == "nullif" and len(args) == 2:
        return call("CASE", (call("=", args), Literal(None, VOID), args[0]))
    if name == "isnotnull" and len(args) == 1:
        return call("NOT", (call("isnull", args),))
    if name in SUGAR:
        raise ExpressionError(
            f"{written} takes {'two values' if name == 'nullif' else 'one value'}", found=_count(len(args))
        )
    return call(name, args)


_OPERATORS = {
    exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "DIV", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=",
    exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>", exp.And: "AND", exp.Or: "OR", exp.Like: "LIKE", exp.RegexpLike: "RLIKE",
}  # fmt: skip
_FORMS: dict[type, Callable[[Any, Schema], Typed]] = {
    exp.Literal: _literal, exp.Neg: _negative, exp.Column: _column, exp.Add: _add, exp.Interval: _interval, exp.Cast: _cast, exp.TryCast: _cast,
    exp.Is: _is, exp.Between: _between, exp.In: _in, exp.Case: _case, exp.If: _if, exp.DPipe: _pipe, exp.Escape: _like, exp.Anonymous: _function,
    exp.Paren: lambda node, schema: _bind(node.this, schema),
    exp.Not: lambda node, schema: call("NOT", (_bind(node.this, schema),)),
    exp.Null: lambda _node, _schema: Literal(None, VOID),
    exp.Boolean: lambda node, _schema: Literal(bool(node.this), "BOOLEAN"),
    exp.RawString: lambda node, _schema: Literal(node.name, "STRING"),
    exp.Concat: lambda node, schema: call("concat", tuple(_bind(each, schema) for each in node.expressions)),
}  # fmt: skip


# ---- words for errors --------------------------------------------------------------------------------------------


def _sql(node: exp.Expression) -> str:
    return node.sql(dialect=Dialect, comments=False)


def _count(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"


def _arity(low: int, high: int) -> str:
    return (
        _count(low)
        if low == high
        else f"{low} to {high} arguments"
        if high < 100
        else f"at least {_count(low)}"
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
