"""Expressions at build time: types, columns, aggregates taken apart, and what is said about wrong ones."""

from __future__ import annotations

import pytest
from tests.engine import expression_cases as cases

from penstock.model.errors import ExpressionError
from penstock.model.expressions.binding import Dialect, bind, parse
from penstock.model.expressions.expression import (
    AggregateCall,
    Aggregation,
    columns_of,
    infer,
    split_aggregates,
)
from penstock.model.expressions.functions import FUNCTIONS, common_type, names
from penstock.model.expressions.typed import can_fail
from penstock.model.types import TYPES, Column, Schema

CARS = Schema.parse(
    "time TIMESTAMP, vid INT, speed DOUBLE, seg TINYINT, name STRING, day DATE, dist BIGINT, raw BINARY"
)


def refused(text: str, schema: Schema = CARS) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        infer(text, schema)
    return caught.value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("vid + 1", "INT"),
        ("vid + dist", "BIGINT"),
        ("vid / 2", "DOUBLE"),
        ("vid DIV 2", "BIGINT"),
        ("seg + seg", "TINYINT"),
        ("seg * vid", "INT"),
        ("ceil(speed)", "BIGINT"),
        ("round(vid, 1)", "INT"),
        ("1.5", "DOUBLE"),
        ("3000000000", "BIGINT"),
        ("-2147483648", "INT"),
        ("vid % 2 = 0", "BOOLEAN"),
        ("IF(vid > 1, vid, speed)", "DOUBLE"),
        ("coalesce(name, 'x')", "STRING"),
        ("nullif(vid, 1.5)", "INT"),
        ("time + INTERVAL 1 HOUR", "TIMESTAMP"),
        ("CAST(NULL AS DATE)", "DATE"),
        ("name || vid", "STRING"),
        ("raw", "BINARY"),
        ("hour(time)", "INT"),
        ("name + 1", "BIGINT"),
        ("day = time", "BOOLEAN"),
    ],
)
def test_types_are_sparks(text: str, type_: str) -> None:
    assert infer(text, CARS) == type_


def test_columns_are_named_once_in_order() -> None:
    assert columns_of("speed * vid + speed - `seg`") == ("speed", "vid", "seg")
    assert columns_of("1 + 1") == ()
    assert columns_of("CASE WHEN name = 'vid' THEN hour(time) END") == ("name", "time")


def test_an_unknown_column_is_named_with_its_neighbours() -> None:
    error = refused("spede < 40")
    assert error.problem == "unknown column 'spede'"
    assert error.expected == "one of: time, vid, speed, seg, name, day, dist, raw"
    assert error.hint == "did you mean 'speed'?"


def test_an_unknown_function_is_named_with_its_neighbours() -> None:
    error = refused("flor(speed)")
    assert error.problem == "unknown function 'flor'"
    assert error.hint == "did you mean 'floor'?"
    assert "date_trunc" in error.expected


@pytest.mark.parametrize(
    ("text", "problem", "found", "hint"),
    [
        ("", "the expression is empty", "", "for example 'speed < 40'"),
        ("vid speed", "'vid speed' names its result", "", "is an operator or a comma missing?"),
        ("sum(vid)", "'sum' is an aggregate", "SUM(vid)", "aggregates belong in tumble, slide and latch"),
        (
            "window_start()",
            "'window_start' is an aggregate",
            "WINDOW_START()",
            "aggregates belong in tumble, slide and latch",
        ),
        (
            "time - time",
            "- takes two numbers, or a TIMESTAMP and an INTERVAL",
            "time TIMESTAMP, time TIMESTAMP",
            "unix_micros(a) - unix_micros(b) is the distance in microseconds",
        ),
        (
            "day + INTERVAL 1 DAY",
            "+ takes two numbers, or a TIMESTAMP and an INTERVAL",
            "day DATE, INTERVAL",
            "CAST(the_date AS TIMESTAMP) + INTERVAL 1 DAY",
        ),
        (
            "speed DIV 2",
            "DIV takes two whole numbers",
            "speed DOUBLE, INT",
            "use / for a DOUBLE, or floor(a / b)",
        ),
        ("NULL", "'NULL' is always NULL and has no type", "", "CAST(NULL AS INT), or another type"),
        (
            "INTERVAL 1 HOUR",
            "'INTERVAL '1' HOUR' is an INTERVAL, which no column can hold",
            "",
            "unix_micros(timestamp) gives a number",
        ),
        (
            "time + INTERVAL 1 MONTH",
            "'INTERVAL '1' MONTH' is not an interval of fixed length",
            "1 MONTH",
            "months and years differ in length",
        ),
        (
            "name LIKE name",
            "LIKE takes a text and a pattern written as a literal",
            "something that changes from tuple to tuple",
            "",
        ),
        (
            "vid = TRUE",
            "= takes two values that can be compared",
            "vid INT, BOOLEAN",
            "CAST(... AS ...) makes one type of another",
        ),
        (
            "CAST(vid AS TIMESTAMP)",
            "there is no cast from INT to TIMESTAMP",
            "",
            "timestamp_seconds(x), timestamp_millis(x) or timestamp_micros(x)",
        ),
        ("time > 'noon'", "'noon' is not a TIMESTAMP", "", ""),
        (
            "99999999999999999999",
            "99999999999999999999 is too large for a whole number",
            "",
            "write it with a decimal point for a DOUBLE",
        ),
        ("cars.vid", "'cars.vid' names a table", "", "did you mean 'vid'?"),
        ("name || vid + 1", "'name || vid + 1' can be read in two ways", "", "put the sum in parentheses"),
        ("substring(name)", "substring takes a text, a position, a length", "1 argument", ""),
        (
            "vid IN (SELECT 1)",
            "'vid IN (SELECT 1)' is not supported",
            "",
            "use a Join box for a lookup in a stream",
        ),
    ],
)
def test_refusals_say_what_and_why(text: str, problem: str, found: str, hint: str) -> None:
    error = refused(text)
    assert (error.problem, error.found, error.hint) == (problem, found, hint)


def test_a_syntax_error_shows_the_place() -> None:
    error = refused("vid + (speed")
    assert error.problem == "'vid + (speed' is not an expression"
    assert "column" in error.found
    assert "\x1b" not in error.found


@pytest.mark.parametrize(
    "text",
    [
        "vid & 1",
        "*",
        "rand()",
        "current_timestamp()",
        "vid OVER ()",
        "count(*) OVER ()",
        "CAST(vid AS DECIMAL(10, 2))",
        "name LIKE 'a' ESCAPE '/'",
        "raw < raw + 1",
        "date_trunc('fortnight', time)",
    ],
)
def test_what_is_not_in_the_table_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\\p{L}", "(?<x>a)", "a{,3}", "[a&&b]", "(", r"\\Qa\\E", "(?=a)"),
        *('{"err', "a{x}", "a{1, 2}", "a{2", "a{9999999999}", r"[\\b]", r"[^a\\B]"),
    ],
)
def test_regular_expressions_that_java_and_python_read_differently_are_refused(pattern: str) -> None:
    refused(f"name RLIKE '{pattern}'")


@pytest.mark.parametrize("pattern", ["a{2}", "a{2,}", "(?:ab){2,3}", "[{]", r"\\{", "a}", r"\\bname\\B"])
def test_braces_may_repeat_or_stand_for_themselves(pattern: str) -> None:
    bind(f"name RLIKE '{pattern}'", CARS)


def test_like_escapes_are_checked_when_built() -> None:
    assert "escapes 'b'" in refused(r"name LIKE 'a\\b'").problem


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("vid < 40", False),
        ("vid + 1", True),
        ("CAST(vid AS BIGINT) + vid", False),
        ("dist + 1", True),
        ("vid / 2", False),
        ("vid / seg", True),
        ("vid % 10 + 1", False),
        ("hour(time) * 3600 + second(time)", False),
        ("CAST(name AS INT)", True),
        ("TRY_CAST(name AS INT)", False),
        ("abs(vid)", True),
        ("abs(vid % 5)", False),
        ("ceil(vid)", False),
        ("ceil(speed)", True),
        ("speed * 2.5", False),
        ("round(speed, 1)", False),
        ("CAST(seg AS INT) * seg", False),
        ("vid + NULL", False),
        ("vid DIV -1", True),
    ],
)
def test_what_cannot_fail_is_known(text: str, fails: bool) -> None:
    assert can_fail(bind(text, CARS)) is fails


def test_aggregates_are_taken_out_and_shared() -> None:
    made = split_aggregates("sum(vid + 1) / count(*) + sum(vid + 1)", CARS)
    assert made == Aggregation(
        (AggregateCall("sum", "vid + 1", "BIGINT"), AggregateCall("count", None, "BIGINT")),
        "a0 / a1 + a0",
        "DOUBLE",
    )


@pytest.mark.parametrize(
    ("text", "function", "argument", "type_"),
    [
        ("avg(vid)", "avg", "vid", "DOUBLE"),
        ("mean(vid)", "avg", "vid", "DOUBLE"),
        ("sum(vid)", "sum", "vid", "BIGINT"),
        ("sum(speed)", "sum", "speed", "DOUBLE"),
        ("min(name)", "min", "name", "STRING"),
        ("max(time)", "max", "time", "TIMESTAMP"),
        ("count(name)", "count", "name", "BIGINT"),
        ("count(1)", "count", "1", "BIGINT"),
        ("count(DISTINCT vid % 10)", "count_distinct", "vid % 10", "BIGINT"),
        ("stddev(vid)", "stddev", "vid", "DOUBLE"),
        ("var_samp(vid)", "variance", "vid", "DOUBLE"),
        ("FIRST(name)", "first", "name", "STRING"),
        ("last(raw)", "last", "raw", "BINARY"),
        ("window_start()", "window_start", None, "TIMESTAMP"),
        ("window_end()", "window_end", None, "TIMESTAMP"),
    ],
)
def test_each_aggregate(text: str, function: str, argument: str | None, type_: str) -> None:
    assert split_aggregates(text, CARS) == Aggregation(
        (AggregateCall(function, argument, type_),), "a0", type_
    )


def test_keys_may_stand_bare() -> None:
    made = split_aggregates("concat(name, '-', max(vid) - min(vid))", CARS, keys=("name",))
    assert made.result == "CONCAT(name, '-', a0 - a1)"
    assert made.schema([Column("name", "STRING")]).ddl() == "name STRING, a0 INT, a1 INT"
    assert infer(made.result, made.schema([Column("name", "STRING")])) == made.type == "STRING"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("vid + max(vid)", "column 'vid' is outside an aggregate in 'vid + max(vid)'"),
        ("sum(avg(vid))", "'SUM(AVG(vid))' has an aggregate inside an aggregate"),
        ("sum(abs(max(vid)))", "'SUM(ABS(MAX(vid)))' has an aggregate inside an aggregate"),
        ("sum(name)", "sum takes a number"),
        ("sum(DISTINCT vid)", "sum(DISTINCT ...) is not supported"),
        ("count(DISTINCT vid, seg)", "count_distinct takes one argument"),
        ("avg()", "avg takes one argument"),
        ("window_start(1)", "window_start() takes no argument"),
        ("count(vidd)", "unknown column 'vidd'"),
        ("nope(vid)", "column 'vid' is outside an aggregate in 'nope(vid)'"),
        ("sum(vid) OVER ()", "'SUM(vid) OVER ()' is not supported"),
        ("max(raw)", "max takes a value that has an order"),
    ],
)
def test_wrong_aggregates_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        split_aggregates(text, CARS)
    assert caught.value.problem == problem


def test_an_expression_without_aggregates_is_over_keys_only() -> None:
    assert split_aggregates("upper(name)", CARS, keys=("name",)) == Aggregation((), "UPPER(name)", "STRING")


def test_a_key_that_looks_like_a_placeholder_is_refused() -> None:
    with pytest.raises(ExpressionError, match="uses inside"):
        split_aggregates("a0 + sum(x)", Schema.parse("a0 INT, x INT"), keys=("a0",))


@pytest.mark.parametrize("group", [cases.NUMBERS, cases.LOGIC, cases.TEXT, cases.TIME, cases.OURS])
def test_written_out_again_an_expression_means_the_same(group: str) -> None:
    """split_aggregates and the YAML form write expressions out again."""
    for text in cases.expressions(group):
        again = parse(text).sql(dialect=Dialect)
        assert bind(again, cases.SCHEMA) == bind(text, cases.SCHEMA), (text, again)


def test_the_table_is_whole() -> None:
    for function in FUNCTIONS.values():
        assert function.fails in ("never", "always", "integral")
        assert 1 <= function.arity[0] <= function.arity[1]
    assert {"floor", "nvl", "if", "cast"} <= set(names())


@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_the_common_type_does_not_depend_on_the_order(left: str, right: str) -> None:
    assert common_type(left, right) == common_type(right, left)
