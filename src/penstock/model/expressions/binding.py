"""Binding: from Spark SQL text to a typed tree with known columns and types (Aurora, Sect. 2.1).

sqlglot parses. We switch off its own table of functions, because it rewrites some functions into others.
Several ways to say the same thing become one here: IF, NULLIF, BETWEEN, `IS TRUE`, `::` and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Never
from typing import cast as as_type

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from penstock.model.durations import parse_duration
from penstock.model.errors import ExpressionError, did_you_mean, one_line
from penstock.model.expressions.functions import (
    AGGREGATE_ALIASES,
    AGGREGATES,
    ALIASES,
    FUNCTIONS,
    INTERVAL,
    SUGAR,
    VOID,
    WINDOW_EDGES,
    names,
)
from penstock.model.expressions.typed import Call, ColumnRef, Literal, Typed, call, cast, count_text, fits
from penstock.model.types import Schema, canonical_type

DEEPEST = 200
"""Operations inside one another. Both engines walk an expression by recursion, and so does Spark."""
LONGEST = 1_000_000
"""Characters of an expression."""


class Dialect(Spark):
    """Spark's grammar with every function left as it was written, and Spark 4's doubled quotes."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]  # mypy takes Spark.Parser for a variable
        FUNCTIONS: ClassVar[dict[str, object]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[object, object]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {
            name: each for name, each in Spark.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, object]] = {
            name: each
            for name, each in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items()
            if name in ("CASE", "IF")
        }


def parse(text: str) -> exp.Expression:
    """The syntax tree of an expression, or an error that shows where it stops being one."""
    if not text.strip():
        raise ExpressionError(
            "the expression is empty", expected="a Spark SQL expression", hint="for example 'speed < 40'"
        )
    if len(text) > LONGEST:
        length = f"{len(text):,} characters"
        raise ExpressionError("the expression is too long", found=length, expected=f"at most {LONGEST:,}")
    try:
        tree = sqlglot.parse_one(text, dialect=Dialect)
    except RecursionError:
        raise _too_deep("too many calls or parentheses") from None
    except SqlglotError as error:
        raise ExpressionError(
            f"'{one_line(text)}' is not an expression",
            found=_syntax(error),
            expected="a Spark SQL expression",
        ) from None
    if isinstance(tree, exp.Alias):
        raise ExpressionError(
            f"'{one_line(text)}' names its result",
            expected="an expression alone",
            hint="is an operator or a comma missing?",
        )
    assert isinstance(tree, exp.Expression)
    if (depth := _depth(tree)) > DEEPEST:
        raise _too_deep(f"{depth:,} operations")
    _keep_together(tree)
    return tree


def _depth(tree: exp.Expression) -> int:
    """How many operations stand inside one another, counted without recursion."""
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack += [(child, depth + 1) for child in node.iter_expressions()]
    return deepest


def _too_deep(found: str) -> ExpressionError:
    return ExpressionError(
        "the expression is nested too deeply",
        found=f"{found} inside one another",
        expected=f"at most {DEEPEST} operations (a sum of n terms has n), and 30 calls or parentheses",
        hint="split it over several columns, or write a list as IN (...)",
    )


def _keep_together(tree: exp.Expression) -> None:
    """Put parentheses around the interval of `t - INTERVAL 1 DAY 2 HOURS`.

    sqlglot reads it as `t` minus a sum. Without parentheses, its text form would add the hours.
    """
    for node in list(tree.find_all(exp.Add)):
        if isinstance(node.expression, exp.Interval) and isinstance(node.parent, exp.Sub | exp.Neg):
            node.replace(exp.Paren(this=node.copy()))


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


# --- from syntax to calls ---


def _bind(node: exp.Expression, schema: Schema) -> Typed:
    form = as_type("Callable[[exp.Expression, Schema], Typed] | None", _FORMS.get(type(node)))
    if form is not None:
        return form(node, schema)
    operator = _OPERATORS.get(type(node))
    if operator is None:
        raise ExpressionError(
            f"'{_sql(node)}' is not supported in an expression", hint=did_you_mean("", names())
        )
    args = tuple(_bind(side, schema) for side in (node.this, node.expression))
    bound = call(operator, args)
    return call("NOT", (bound,)) if node.args.get("negate") else bound


def _literal(node: exp.Expression, _: Schema) -> Typed:
    text = node.name
    if node.is_string:
        return Literal(text, "STRING")
    if not text.isdigit():
        return Literal(float(text), "DOUBLE")
    return _whole(int(text[:100]))  # Python refuses very long numbers; 100 digits are too many anyway


def _whole(value: int) -> Literal:
    for type_ in ("INT", "BIGINT"):
        if fits((value, value), type_):
            return Literal(value, type_)
    raise ExpressionError(
        f"{value} is too large for a whole number",
        expected="at most 9223372036854775807",
        hint="write it with a decimal point for a DOUBLE",
    )


def _negative(node: exp.Expression, schema: Schema) -> Typed:
    inner = node.this
    # -2147483648 is one literal, not the negation of one that is too large for an INT.
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return (
            _whole(-int(inner.name[:100])) if inner.name.isdigit() else Literal(-float(inner.name), "DOUBLE")
        )
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and not inner.this.is_string:
        return cast(_negative(exp.Neg(this=inner.this), schema), _type(inner))
    bound = _bind(inner, schema)
    if isinstance(bound, Literal) and bound.type == INTERVAL:
        return Literal(-bound.value, INTERVAL)
    return call("negative", (bound,))


def _column(node: exp.Column, schema: Schema) -> Typed:
    if node.table:
        raise ExpressionError(
            f"'{_sql(node)}' names a table",
            expected="a column name alone",
            hint=did_you_mean(node.name, schema.names),
        )
    return ColumnRef(node.name, schema.type_of(node.name))


def _add(node: exp.Expression, schema: Schema) -> Typed:
    left, right = _bind(node.this, schema), _bind(node.expression, schema)
    # sqlglot reads INTERVAL 1 DAY 2 HOURS as a sum.
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
    # A cast that cannot fail is the same with and without TRY_.
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
    # Spark and sqlglot disagree about which of || and + binds tighter.
    if isinstance(node.expression, exp.Add | exp.Sub):
        raise ExpressionError(f"'{_sql(node)}' can be read in two ways", hint="put the sum in parentheses")
    return call("concat", (_bind(node.this, schema), _bind(node.expression, schema)))


def _escape(node: exp.Expression, _: Schema) -> Typed:
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
            hint="aggregates belong in tumble, slide and latch",
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
    # Engines need not know these: they are CASE, NOT and isnull in other words.
    if name == "nullif" and len(args) == 2:
        return call("CASE", (call("=", args), Literal(None, VOID), args[0]))
    if name == "isnotnull" and len(args) == 1:
        return call("NOT", (call("isnull", args),))
    if name in SUGAR:
        raise ExpressionError(
            f"{written} takes {'two values' if name == 'nullif' else 'one value'}",
            found=count_text(len(args)),
        )
    return call(name, args)


def _concat(node: exp.Concat, schema: Schema) -> Typed:
    return call("concat", tuple(_bind(each, schema) for each in node.expressions))


_OPERATORS: dict[type, str] = {
    exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "DIV", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "AND", exp.Or: "OR", exp.Like: "LIKE", exp.RegexpLike: "RLIKE",
}  # fmt: skip
# Each function takes the class of its line.
_FORMS: dict[type, Callable[[Never, Schema], Typed]] = {
    exp.Literal: _literal, exp.Neg: _negative, exp.Column: _column, exp.Add: _add, exp.Interval: _interval,
    exp.Cast: _cast, exp.TryCast: _cast, exp.Is: _is, exp.Between: _between, exp.In: _in, exp.Case: _case,
    exp.If: _if, exp.DPipe: _pipe, exp.Escape: _escape, exp.Anonymous: _function,
    exp.Paren: lambda node, schema: _bind(node.this, schema),
    exp.Not: lambda node, schema: call("NOT", (_bind(node.this, schema),)),
    exp.Null: lambda _node, _schema: Literal(None, VOID),
    exp.Boolean: lambda node, _schema: Literal(bool(node.this), "BOOLEAN"),
    exp.RawString: lambda node, _schema: Literal(node.name, "STRING"),
    exp.Concat: _concat,
}  # fmt: skip


def _sql(node: exp.Expression) -> str:
    return node.sql(dialect=Dialect, comments=False)
