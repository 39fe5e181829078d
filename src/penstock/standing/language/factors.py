"""WHERE in normal form: negations at the leaves, OR and IN multiplied out, comparisons as spans.

PSoup takes conjunctions only (P02); a disjunction is registered as several. A product that would give too
many branches stays together as a residual, so no query is refused for its shape. Three-valued logic allows
it: a filter passes what is true, and `NOT (a < 5)` is true exactly where `a >= 5` is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
from sqlglot import exp

from penstock.model.types import INTEGRAL, NUMERIC
from penstock.standing.errors import QueryError
from penstock.standing.language.query import Constant, Span
from penstock.standing.language.windows import moment

MOST_BRANCHES = 64
MOST_POINTS = 4096  # indexed values of IN, in all combinations with those of other columns
MOST_FLOAT = float(np.finfo(np.float32).max)
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_OPERATORS: dict[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_CLASSES = {sign: kind for kind, sign in _OPERATORS.items()}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Atoms = tuple[exp.Expression, ...]


def branches(where: exp.Expression | None) -> list[Atoms]:
    """The conjunctions whose disjunction is the condition.

    >>> import sqlglot
    >>> [[a.sql() for a in b] for b in branches(sqlglot.parse_one("a > 1 AND NOT (b < 2 AND c IN (3, 4))"))]
    [['a > 1', 'b >= 2'], ['a > 1', 'c <> 3', 'c <> 4']]
    """
    return [()] if where is None else _product(_pushed(where, negated=False))


def comparison(atom: exp.Expression) -> tuple[exp.Expression, str, exp.Expression] | None:
    """Left side, operator and right side of a comparison; None for anything else."""
    sign = _OPERATORS.get(type(atom))
    return None if sign is None else (_bare(atom.this), sign, _bare(atom.expression))


def _bare(node: exp.Expression) -> exp.Expression:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _pushed(node: exp.Expression, *, negated: bool) -> exp.Expression:
    """The same condition with negations at the leaves, without BETWEEN and IN."""
    match node:
        case exp.Paren():
            return _pushed(node.this, negated=negated)
        case exp.Not():
            return _pushed(node.this, negated=not negated)
        case exp.And() | exp.Or():
            sides = [_pushed(each, negated=negated) for each in _operands(node)]
            return _tied(exp.And if isinstance(node, exp.And) != negated else exp.Or, sides)
        case exp.Between() if not node.args.get("symmetric"):
            within = exp.And(
                this=exp.GTE(this=node.this, expression=node.args["low"]),
                expression=exp.LTE(this=node.this, expression=node.args["high"]),
            )
            return _pushed(within, negated=negated)
        case exp.In() if not negated and listed(node) is not None:
            return node
        case exp.In() if node.expressions and len(node.expressions) <= MOST_BRANCHES:
            each = [exp.EQ(this=node.this, expression=value) for value in node.expressions]
            return _pushed(_tied(exp.Or, each), negated=negated)
    sign = _OPERATORS.get(type(node))
    if not negated:
        return node
    if sign is not None:
        flipped: exp.Expression = _CLASSES[_NEGATED[sign]](this=node.this, expression=node.expression)
        return flipped
    return exp.Not(this=exp.Paren(this=node))


def _product(node: exp.Expression) -> list[Atoms]:
    if isinstance(node, exp.Or):
        sides = _folded(_operands(node))
        either = [atoms for side in sides for atoms in _product(side)]
        return either if len(either) <= MOST_BRANCHES else [(exp.Paren(this=_tied(exp.Or, sides)),)]
    if isinstance(node, exp.And):
        joined: list[Atoms] = [()]
        wide = []  # the widest come last: what would give too many branches stays together
        for side, branches_so_far in sorted(
            ((s, _product(s)) for s in _operands(node)), key=lambda each: len(each[1])
        ):
            if len(joined) * len(branches_so_far) > MOST_BRANCHES:
                wide.append(side)
            else:
                joined = [(*one, *other) for one in joined for other in branches_so_far]
        rest = (exp.Paren(this=_tied(exp.And, wide)),) if wide else ()
        return [(*one, *rest) for one in joined]
    return [(node,)]


def _operands(node: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of one connective, without recursion: chains may have thousands."""
    kind, operands, left = type(node), [], [node]
    while left:
        each = _bare(left.pop())
        if type(each) is kind:
            left += [each.expression, each.this]
        else:
            operands.append(each)
    return operands


def _tied(kind: type[exp.Connector], sides: Sequence[exp.Expression]) -> exp.Expression:
    """The same chain as a balanced tree, in brackets, so that parsing it again needs little recursion."""
    if len(sides) == 1:
        return sides[0]
    middle = len(sides) // 2
    halves = [_tied(kind, part) for part in (sides[:middle], sides[middle:])]
    bracketed = [exp.Paren(this=half) if isinstance(half, exp.Connector) else half for half in halves]
    left, right = bracketed
    return kind(this=left, expression=right)  # type: ignore[return-value]  # sqlglot's own types


def _folded(sides: Sequence[exp.Expression]) -> list[exp.Expression]:
    """Combine equalities of one column with constants into one IN (...), at the place of the first."""
    folded: list[exp.Expression] = []
    lists: dict[str, exp.In] = {}
    for side in sides:
        column, values = _equal_to(side)
        if column is None:
            folded.append(side)
            continue
        name = column.sql()
        if name not in lists:
            lists[name] = exp.In(this=column.copy(), expressions=[])
            folded.append(lists[name])
        for value in values:
            lists[name].append("expressions", value.copy())
    return folded


def _equal_to(side: exp.Expression) -> tuple[exp.Expression | None, list[exp.Expression]]:
    """The column and the constants of `column = constant` or `column IN (constants)`."""
    if isinstance(side, exp.In) and listed(side) is not None:
        return side.this, side.expressions
    sides = comparison(side)
    if sides is not None and sides[1] == "=":
        for one, other in ((sides[0], sides[2]), (sides[2], sides[0])):
            if isinstance(one, exp.Column) and constant(other) is not None:
                return one, [other]
    return None, []


def listed(node: exp.In) -> list[_Constant] | None:
    """The constants of `column IN (constants)`, without null, which equals nothing.

    None for anything else.
    """
    if not isinstance(node.this, exp.Column) or not node.expressions:
        return None
    values = [constant(value) for value in node.expressions if not isinstance(value, exp.Null)]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


# -- constants


@dataclass(frozen=True)
class _Constant:
    """A literal as written in the text."""

    kind: str  # number, text, truth, time, date
    value: Decimal | str | bool
    double: bool = False  # a number with an exponent, which SQL treats as a double


def constant(node: exp.Expression) -> _Constant | None:
    """The literal of a node, with its sign; None if it is not a literal."""
    node = _bare(node)
    match node:
        case exp.Neg():
            inner = constant(node.this)
            if inner is None or not isinstance(inner.value, Decimal):
                return None
            return _Constant("number", inner.value.copy_negate(), inner.double)
        case exp.Literal() if node.is_string:
            return _Constant("text", node.this)
        case exp.Literal():
            return _Constant("number", Decimal(node.this), double="e" in node.this.lower())
        case exp.Boolean():
            return _Constant("truth", bool(node.this))
        case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
            kind = node.to.this.name
            if kind in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"):
                return _Constant("time", node.this.this)
            if kind == "DATE":
                return _Constant("date", node.this.this)
    return None


def span_of(column: str, type_: str, sign: str, given: _Constant) -> Span | None:
    """The span of `column sign literal`; None where it cannot be one (then it is a residual)."""
    if sign == "<>" or type_ == "BINARY":
        return None
    if type_ in INTEGRAL:
        return _whole_span(column, sign, Fraction(_tame(_number(column, type_, given))))
    if type_ in NUMERIC:
        value = float(_number(column, type_, given))
        return _between(column, sign, as_float(value) if type_ == "FLOAT" and not given.double else value)
    return _between(column, sign, _plain(column, type_, given))


def _tame(value: Decimal) -> Decimal:
    """Limit a number to what 64-bit integers can tell apart.

    Written out, 1e999999999 would fill the memory.

    >>> _tame(Decimal("-1e999999999"))
    Decimal('-1E+40')
    """
    if value and abs(value.adjusted()) > 40:
        return Decimal((value.is_signed(), (1,), 40 if value.adjusted() > 0 else -40))
    return value


def as_float(value: float) -> float:
    """A constant as a FLOAT column compares it: 0.1 becomes the nearest 32-bit value.

    Beyond the range of FLOAT, doubles are compared.

    >>> as_float(0.1)
    0.10000000149011612
    """
    return float(np.float32(value)) if abs(value) <= MOST_FLOAT else value


def _number(column: str, type_: str, given: _Constant) -> Decimal:
    if not isinstance(given.value, Decimal):
        raise _unlike(column, type_, given, "a number")
    return given.value


def _plain(column: str, type_: str, given: _Constant) -> Constant:
    """The literal in the units in which the column is compared."""
    match type_:
        case "STRING" if given.kind == "text":
            return str(given.value)
        case "BOOLEAN" if given.kind == "truth":
            return int(given.value)
        case "TIMESTAMP" if given.kind in ("text", "time", "date"):
            return moment(str(given.value))
        case "DATE" if given.kind in ("text", "date"):
            return _days(str(given.value))
    wanted = {"STRING": "a text in quotes", "BOOLEAN": "TRUE or FALSE"}.get(type_, "a time in quotes")
    raise _unlike(column, type_, given, wanted)


def _days(text: str) -> int:
    try:
        return (date.fromisoformat(text.strip()) - date(1970, 1, 1)).days
    except ValueError:
        raise QueryError(
            f"'{text}' is not a date", expected="ISO form", hint="for example '2026-01-31'"
        ) from None


def _unlike(column: str, type_: str, given: _Constant, wanted: str) -> QueryError:
    actual = f"'{given.value}'" if given.kind in ("text", "time", "date") else str(given.value).upper()
    return QueryError(f"column '{column}' is {type_} and cannot be compared with {actual}", expected=wanted)


def _between(column: str, sign: str, value: Constant) -> Span:
    match sign:
        case "=":
            return Span(column, value, value)
        case "<" | "<=":
            return Span(column, high=value, high_open=sign == "<")
        case _:
            return Span(column, low=value, low_open=sign == ">")


def _whole_span(column: str, sign: str, value: Fraction) -> Span:
    """Whole numbers as closed ends within 64 bits; 20.5 or numbers beyond the column's range do no harm."""
    floor, ceil = math.floor(value), math.ceil(value)
    match sign:
        case "=" if floor != ceil:
            return Span(column, 1, 0)
        case "=":
            low: int | None = floor
            high: int | None = floor
        case "<":
            low, high = None, ceil - 1
        case "<=":
            low, high = None, floor
        case ">":
            low, high = floor + 1, None
        case _:
            low, high = ceil, None
    if (low is not None and low > _GREATEST) or (high is not None and high < _LEAST):
        return Span(column, 1, 0)
    return Span(
        column,
        None if low is None or low <= _LEAST else low,
        None if high is None or high >= _GREATEST else high,
    )
