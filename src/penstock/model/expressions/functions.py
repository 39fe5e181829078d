"""The one table of functions that an expression may use: name, arity, type rule, whether it can fail.

Types and coercions are Spark's with ANSI on. A rule takes the types of the arguments. It returns the types
they are cast to and the type of the result, or None where Spark would refuse. Engines see casts only, never
coercions. We depart from Spark twice: a number with a decimal point is a DOUBLE (Spark: DECIMAL), and
TIMESTAMP and DATE reach from year 1 to year 9999, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from penstock.model.types import INTEGRAL, NUMERIC

VOID = "VOID"  # the type of a bare NULL
INTERVAL = "INTERVAL"  # days to microseconds; stands only beside a timestamp
RANGES = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}
_FRACTIONAL = ("FLOAT", "DOUBLE")

Types = tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """What a rule answers: the types that the arguments are cast to, and the type of the result."""

    arguments: Types
    result: str


Rule = Callable[[Types], Signature | None]


@dataclass(frozen=True)
class Function:
    """One function of the table.

    `fails`: 'never', 'always' (some value makes it fail) or 'integral' (only if the result is a whole
    number). `strict`: NULL if any argument is NULL. `constants`: the arguments that must be written as
    literals.
    """

    name: str
    arity: tuple[int, int]
    takes: str
    rule: Rule
    fails: str = "never"
    strict: bool = True
    constants: tuple[int, ...] = ()


def common_type(left: str, right: str, *, text: bool = True) -> str | None:
    """The type both are cast to, as Spark's ANSI coercion has it.

    >>> common_type("INT", "BIGINT"), common_type("INT", "FLOAT"), common_type("STRING", "INT")
    ('BIGINT', 'DOUBLE', 'BIGINT')
    """
    if right in (left, VOID):
        return left
    if left == VOID:
        return right
    if left in NUMERIC and right in NUMERIC:
        return _common_number(left, right)
    if {left, right} == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    if text and "STRING" in (left, right):
        other = right if left == "STRING" else left
        return "BIGINT" if other in INTEGRAL else "DOUBLE" if other in _FRACTIONAL else other
    return None


def _common_number(left: str, right: str) -> str:
    if left in INTEGRAL and right in INTEGRAL:
        return max(left, right, key=INTEGRAL.index)
    # A FLOAT cannot hold every whole number, so Spark takes DOUBLE.
    return "DOUBLE"


def common_of(types: Types, *, text: bool = True) -> str | None:
    """The common type of any number of types."""
    common: str | None = VOID
    for each in types:
        common = None if common is None else common_type(common, each, text=text)
    return common


def implicit(type_: str, wanted: str) -> bool:
    """Whether Spark casts an argument of this type to the wanted one implicitly."""
    if type_ in (wanted, VOID):
        return True
    if wanted == "STRING":
        return type_ not in ("BINARY", INTERVAL)
    if type_ == "STRING":
        return wanted in (*NUMERIC, "DATE", "TIMESTAMP", "BOOLEAN")
    if {type_, wanted} == {"DATE", "TIMESTAMP"}:
        return True
    return (
        type_ in NUMERIC
        and wanted in NUMERIC
        and (wanted in _FRACTIONAL or NUMERIC.index(type_) <= NUMERIC.index(wanted))
    )


def cast_fails(source: str, target: str) -> bool | None:
    """Whether a cast can fail; None: there is no such cast."""
    if source in (target, VOID):
        return False
    if INTERVAL in (source, target) or source == "BINARY":
        return None
    if source == "STRING":
        return target != "BINARY"
    if target == "STRING":
        return False
    if source in NUMERIC and target in NUMERIC:
        return target in INTEGRAL and (
            source in _FRACTIONAL or INTEGRAL.index(source) > INTEGRAL.index(target)
        )
    if source == "TIMESTAMP" and target in NUMERIC:
        return target in INTEGRAL and target != "BIGINT"
    possible = {source, target} == {"DATE", "TIMESTAMP"} or {source, target} <= {"BOOLEAN", *NUMERIC}
    return False if possible else None


def _fixed(arguments: Types, result: str) -> Rule:
    """Arguments of the given types, cast where Spark casts implicitly; the last ones may be left out."""

    def rule(types: Types) -> Signature | None:
        wanted = arguments[: len(types)]
        return Signature(wanted, result) if all(map(implicit, types, wanted)) else None

    return rule


def _arithmetic(types: Types) -> Signature | None:
    if types == (VOID, VOID):
        types = ("DOUBLE", "DOUBLE")
    common = common_of(types)
    return Signature((common, common), common) if common in NUMERIC else None


def _plus(types: Types) -> Signature | None:
    if types == ("TIMESTAMP", INTERVAL):
        return Signature(types, "TIMESTAMP")
    if types == (INTERVAL, "TIMESTAMP"):
        return Signature(types, "TIMESTAMP")
    return _arithmetic(types)


def _minus(types: Types) -> Signature | None:
    return _plus(types) if types[0] != INTERVAL else None


def _whole_division(types: Types) -> Signature | None:
    signature = _arithmetic(types)
    whole = signature is not None and signature.result in INTEGRAL
    return Signature(("BIGINT", "BIGINT"), "BIGINT") if whole else None


def _one_number(types: Types) -> Signature | None:
    """The type of a number stays; text and NULL become DOUBLE."""
    type_ = "DOUBLE" if types[0] in ("STRING", VOID) else types[0]
    return Signature((type_, *(["INT"] * (len(types) - 1))), type_) if type_ in NUMERIC else None


def _to_whole(types: Types) -> Signature | None:
    signature = _one_number(types)
    if signature is None:
        return None
    return Signature(("BIGINT" if signature.result in INTEGRAL else "DOUBLE",), "BIGINT")


def _comparison(types: Types) -> Signature | None:
    common = common_of(types)
    common = "BOOLEAN" if common == VOID else common
    return Signature((common,) * len(types), "BOOLEAN") if common and common != INTERVAL else None


def _alike(types: Types) -> Signature | None:
    common = common_of(types)
    return Signature((common,) * len(types), common) if common and common != INTERVAL else None


def _ordered(types: Types) -> Signature | None:
    """Like _alike, but text and numbers do not mix and BINARY has no order here."""
    common = common_of(types, text=False)
    return (
        Signature((common,) * len(types), common) if common and common not in (INTERVAL, "BINARY") else None
    )


def _case(types: Types) -> Signature | None:
    """Condition, value, condition, value, ..., value otherwise."""
    conditions, values = types[:-1:2], (*types[1::2], types[-1])
    common = common_of(values)
    if not common or common == INTERVAL or not set(conditions) <= {"BOOLEAN", VOID}:
        return None
    pairs = chain.from_iterable(("BOOLEAN", common) for _ in conditions)
    return Signature((*pairs, common), common)


def _any(types: Types) -> Signature | None:
    return Signature(types, "BOOLEAN") if INTERVAL not in types else None


def _texts(types: Types) -> Signature | None:
    ok = all(implicit(t, "STRING") for t in types)
    return Signature(("STRING",) * len(types), "STRING") if ok else None


def _length(types: Types) -> Signature | None:
    if types == ("BINARY",):
        return Signature(types, "INT")
    return Signature(("STRING",), "INT") if implicit(types[0], "STRING") else None


def _nan_test(types: Types) -> Signature | None:
    if types == ("FLOAT",):
        return Signature(types, "BOOLEAN")
    return Signature(("DOUBLE",), "BOOLEAN") if implicit(types[0], "DOUBLE") else None


def _stamp_of_seconds(types: Types) -> Signature | None:
    if types[0] in _FRACTIONAL:
        return Signature(("DOUBLE",), "TIMESTAMP")
    return Signature(("BIGINT",), "TIMESTAMP") if types[0] in (*INTEGRAL, VOID) else None


def _stamp_of_whole(types: Types) -> Signature | None:
    return Signature(("BIGINT",), "TIMESTAMP") if types[0] in (*INTEGRAL, VOID) else None


def _to_stamp(target: str) -> Rule:
    def rule(types: Types) -> Signature | None:
        return Signature((target,), target) if types[0] in ("STRING", "DATE", "TIMESTAMP", VOID) else None

    return rule


_MANY = 1_000
_VALUES = 100_000  # of IN
_DOUBLE, _STAMP = _fixed(("DOUBLE",), "DOUBLE"), ("TIMESTAMP",)
_TWO_TEXTS = _fixed(("STRING", "STRING"), "BOOLEAN")


def _seconds(types: Types) -> Signature | None:
    """unix_timestamp takes no text: that would need a format."""
    return Signature(_STAMP, "BIGINT") if types[0] in ("TIMESTAMP", "DATE", VOID) else None


def _exact_stamp(types: Types) -> Signature | None:
    return Signature(_STAMP, "BIGINT") if types[0] in ("TIMESTAMP", VOID) else None


_TABLE = (
    # operators
    Function("+", (2, 2), "two numbers, or a TIMESTAMP and an INTERVAL", _plus, fails="integral"),
    Function("-", (2, 2), "two numbers, or a TIMESTAMP and an INTERVAL", _minus, fails="integral"),
    Function("*", (2, 2), "two numbers", _arithmetic, fails="integral"),
    Function("/", (2, 2), "two numbers", _fixed(("DOUBLE", "DOUBLE"), "DOUBLE"), fails="always"),
    Function("DIV", (2, 2), "two whole numbers", _whole_division, fails="always"),
    Function("%", (2, 2), "two numbers", _arithmetic, fails="always"),
    Function("negative", (1, 1), "a number", _one_number, fails="integral"),
    *(
        Function(name, (2, 2), "two values that can be compared", _comparison)
        for name in ("=", "<>", "<", "<=", ">", ">=")
    ),
    Function("<=>", (2, 2), "two values that can be compared", _comparison, strict=False),
    Function("AND", (2, 2), "two conditions", _fixed(("BOOLEAN", "BOOLEAN"), "BOOLEAN"), strict=False),
    Function("OR", (2, 2), "two conditions", _fixed(("BOOLEAN", "BOOLEAN"), "BOOLEAN"), strict=False),
    Function("NOT", (1, 1), "a condition", _fixed(("BOOLEAN",), "BOOLEAN")),
    Function("IN", (2, _VALUES), "values that can be compared", _comparison, strict=False),
    Function("LIKE", (2, 2), "a text and a pattern written as a literal", _TWO_TEXTS, constants=(1,)),
    Function("RLIKE", (2, 2), "a text and a pattern written as a literal", _TWO_TEXTS, constants=(1,)),
    Function("isnull", (1, 1), "any value", _any, strict=False),
    # choices
    Function("CASE", (3, _MANY), "conditions, and values of one type", _case, strict=False),
    Function("coalesce", (1, _MANY), "values of one type", _alike, strict=False),
    Function("least", (2, _MANY), "values of one type", _ordered, strict=False),
    Function("greatest", (2, _MANY), "values of one type", _ordered, strict=False),
    # numbers
    Function("abs", (1, 1), "a number", _one_number, fails="integral"),
    Function("ceil", (1, 1), "a number", _to_whole, fails="always"),
    Function("floor", (1, 1), "a number", _to_whole, fails="always"),
    Function(
        "round", (1, 2), "a number, and how many digits (a literal)", _one_number,
        fails="integral", constants=(1,),
    ),
    Function("pmod", (2, 2), "two numbers", _arithmetic, fails="always"),
    *(Function(name, (1, 1), "a number", _DOUBLE) for name in ("sqrt", "exp", "ln", "log10", "sign")),
    Function("pow", (2, 2), "two numbers", _fixed(("DOUBLE", "DOUBLE"), "DOUBLE")),
    Function("isnan", (1, 1), "a number", _nan_test, strict=False),
    # text
    Function("concat", (1, _MANY), "values that have a text form", _texts),
    *(Function(name, (1, 1), "a text", _texts) for name in ("upper", "lower", "trim", "ltrim", "rtrim")),
    Function("length", (1, 1), "a text or BINARY", _length),
    Function("substring", (2, 3), "a text, a position, a length", _fixed(("STRING", "INT", "INT"), "STRING")),
    Function("replace", (2, 3), "a text, what to find, what to put", _texts),
    *(Function(name, (2, 2), "two texts", _TWO_TEXTS) for name in ("startswith", "endswith", "contains")),
    # time
    *(Function(name, (1, 1), "a TIMESTAMP", _fixed(_STAMP, "INT")) for name in ("hour", "minute", "second")),
    *(
        Function(name, (1, 1), "a DATE or TIMESTAMP", _fixed(("DATE",), "INT"))
        for name in ("year", "month", "day", "dayofweek")
    ),
    Function(
        "date_trunc", (2, 2), "a unit written as a literal, and a TIMESTAMP",
        _fixed(("STRING", "TIMESTAMP"), "TIMESTAMP"), constants=(0,),
    ),
    Function("unix_timestamp", (1, 1), "a TIMESTAMP or DATE", _seconds),
    *(
        Function(name, (1, 1), "a TIMESTAMP", _exact_stamp)
        for name in ("unix_seconds", "unix_millis", "unix_micros")
    ),
    Function("timestamp_seconds", (1, 1), "a number", _stamp_of_seconds, fails="always"),
    Function("timestamp_millis", (1, 1), "a whole number", _stamp_of_whole, fails="always"),
    Function("timestamp_micros", (1, 1), "a whole number", _stamp_of_whole, fails="always"),
    # names for a cast
    Function("to_timestamp", (1, 1), "a text, DATE or TIMESTAMP", _to_stamp("TIMESTAMP")),
    Function("to_date", (1, 1), "a text, DATE or TIMESTAMP", _to_stamp("DATE")),
)  # fmt: skip

FUNCTIONS = {function.name: function for function in _TABLE}
ALIASES = {
    "mod": "%", "ceiling": "ceil", "power": "pow", "log": "ln", "signum": "sign", "ucase": "upper",
    "lcase": "lower", "char_length": "length", "character_length": "length", "substr": "substring",
    "dayofmonth": "day", "nvl": "coalesce", "ifnull": "coalesce", "regexp_like": "RLIKE", "regexp": "RLIKE",
    "rlike": "RLIKE", "like": "LIKE",
}  # fmt: skip
# Written as functions, but binding turns them into others.
SUGAR = ("if", "nullif", "isnotnull", "cast", "try_cast")

AGGREGATES: dict[str, Rule] = {
    "sum": lambda types: _total(types[0]),
    "avg": lambda types: Signature(types, "DOUBLE") if types[0] in NUMERIC else None,
    "stddev": lambda types: Signature(types, "DOUBLE") if types[0] in NUMERIC else None,
    "variance": lambda types: Signature(types, "DOUBLE") if types[0] in NUMERIC else None,
    "min": lambda types: Signature(types, types[0]) if types[0] not in ("BINARY", VOID) else None,
    "max": lambda types: Signature(types, types[0]) if types[0] not in ("BINARY", VOID) else None,
    "first": lambda types: Signature(types, types[0]) if types[0] != VOID else None,
    "last": lambda types: Signature(types, types[0]) if types[0] != VOID else None,
    "count": lambda types: Signature(types, "BIGINT"),
    "count_distinct": lambda types: Signature(types, "BIGINT"),
}
AGGREGATE_ALIASES = {"mean": "avg", "stddev_samp": "stddev", "std": "stddev", "var_samp": "variance"}
WINDOW_EDGES = ("window_start", "window_end")


def _total(type_: str) -> Signature | None:
    if type_ not in NUMERIC:
        return None
    return Signature((type_,), "BIGINT" if type_ in INTEGRAL else "DOUBLE")


def names() -> list[str]:
    """Every name that may be written as a function in an expression."""
    return sorted(
        {n for n in (*FUNCTIONS, *ALIASES, *SUGAR) if n.islower()}
        | {"CASE", "CAST", "TRY_CAST", "IF"} - {"cast", "try_cast", "if"}
    )
