"""What the query language takes, and what it says to what it does not take."""

from __future__ import annotations

import contextlib

import pytest

from penstock.standing.errors import QueryError
from penstock.standing.language.language import parse
from penstock.standing.language.query import Conjunction, JoinFactor, Span
from penstock.standing.language.windows import At, Last, Now, Window
from standing.random_cases import INFOS, SECOND


def test_factors_on_one_column_become_one_span() -> None:
    branch = parse("SELECT k FROM cars WHERE k > 1 AND k <= 4.5 AND 3 >= k AND v < 2", INFOS).branches[0]
    assert branch.parts[0].spans == (Span("k", 2, 3), Span("v", None, 2.0, high_open=True))


def test_or_and_in_become_branches() -> None:
    found = parse("SELECT k FROM cars WHERE (k = 1 OR v < 0) AND name IN ('a', 'b')", INFOS).branches
    assert [len(branch.parts[0].spans) for branch in found] == [2, 2]
    assert found[0].parts[0].spans[1] == Span("name", points=("a", "b"))


@pytest.mark.parametrize("count", [64, 65, 550, 1000, 4096])
@pytest.mark.parametrize("form", ["IN", "OR"])
def test_long_lists_are_one_indexed_factor(form: str, count: int) -> None:
    listed = ", ".join(str(i) for i in range(count))
    either = " OR ".join(f"k = {i}" for i in range(count))
    [branch] = parse(
        f"SELECT k FROM cars WHERE {f'k IN ({listed})' if form == 'IN' else either}", INFOS
    ).branches
    assert branch.parts[0] == Conjunction((Span("k", points=tuple(range(count))),))


def test_longer_lists_and_long_mixtures_are_evaluated() -> None:
    listed = ", ".join(str(i) for i in range(5000))
    either = " OR ".join(f"k > {i} AND v < {i}" for i in range(200))
    for where in (f"k IN ({listed})", f"k NOT IN ({listed})", either, f"NOT ({either})"):
        for branch in parse(f"SELECT k FROM cars WHERE {where}", INFOS).branches:
            assert branch.parts[0].residuals
    two = (
        f"k IN ({', '.join(str(i) for i in range(100))}) AND big IN ({', '.join(str(i) for i in range(99))})"
    )
    [branch] = parse(f"SELECT k FROM cars WHERE {two}", INFOS).branches
    assert (len(branch.parts[0].spans), len(branch.parts[0].residuals)) == (1, 1)


def test_too_deep_is_refused() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse(f"SELECT k FROM cars WHERE {'(' * 3000}k = 1{')' * 3000}", INFOS)


def test_comments_are_no_part_of_the_query() -> None:
    text = (
        "SELECT k /* BEGIN */ FROM cars -- BEGIN now\n WHERE name = '--a /* b */' "
        "BEGIN now - 1 minute -- c\n END /* 'x */ now"
    )
    query = parse(text, INFOS)
    assert query.windows == (Window(Now(60 * SECOND)),)
    assert query.branches[0].parts[0].spans == (Span("name", "--a /* b */", "--a /* b */"),)


@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "1e-999999999", "9" * 5000])
def test_numbers_of_any_size(number: str) -> None:
    for column in ("k", "v", "f"):
        parse(f"SELECT k FROM cars WHERE {column} < {number}", INFOS)
        with contextlib.suppress(QueryError):
            parse(f"SELECT k FROM cars WHERE {column} + 1 <> {number}", INFOS)


def test_what_cannot_be_fulfilled_has_no_branch() -> None:
    assert parse("SELECT k FROM cars WHERE k < 1 AND k > 3", INFOS).branches == ()


def test_too_wide_a_disjunction_stays_together() -> None:
    wide = " AND ".join(f"(k > {i} OR v > {i})" for i in range(10))
    query = parse(f"SELECT k FROM cars WHERE {wide}", INFOS)
    assert len(query.branches) <= 64
    assert query.branches[0].parts[0].residuals


def test_other_factors_are_residuals() -> None:
    query = parse("SELECT k FROM cars WHERE k + 1 > 3 AND name LIKE 'a%' AND k <> 7", INFOS)
    assert len(query.branches[0].parts[0].residuals) == 3


def test_joins_have_ties_and_windows_of_their_own() -> None:
    text = (
        "SELECT c.k, toll FROM cars c JOIN tolls t ON c.k = t.k WHERE c.v < 3 "
        "BEGIN now - 1 minute FOR c, BEGIN last 5 tuples FOR t"
    )
    query = parse(text, INFOS)
    assert query.branches[0].joins == (JoinFactor(0, "k", "=", 1, "k"),)
    assert query.windows == (Window(Now(60 * SECOND)), Window(Last(5)))


@pytest.mark.parametrize(
    ("text", "window", "kind"),
    [
        ("", Window(), "landmark"),
        ("BEGIN now - 10 minutes END now", Window(Now(600 * SECOND)), "sliding"),
        (
            "BEGIN now - 1 hour END now - 30 minutes",
            Window(Now(3600 * SECOND), Now(1800 * SECOND)),
            "sliding",
        ),
        ("BEGIN '1970-01-01 00:01' END now", Window(At(60 * SECOND)), "landmark"),
        ("begin 60 end 120.5", Window(At(60 * SECOND), At(120_500_000)), "snapshot"),
        ("BEGIN last 1000 tuples", Window(Last(1000)), "count"),
        ("BEGIN TIMESTAMP '1970-01-01 01:00:00+01:00'", Window(At(0)), "landmark"),
    ],
)
def test_windows(text: str, window: Window, kind: str) -> None:
    found = parse(f"SELECT k FROM cars {text}", INFOS).windows[0]
    assert (found, found.kind) == (window, kind)


REFUSED = [
    ("SELECT k FROM car", "no stream 'car'", "did you mean 'cars'?"),
    ("SELECT kk FROM cars", "unknown column 'kk'", "expected: one of: time, k, v"),
    ("SELECT k FROM cars WHERE spd < 3", "unknown column 'spd'", "one of"),
    (
        "SELECT k FROM cars WHERE name < 3",
        "column 'name' is STRING and cannot be compared with 3",
        "a text in quotes",
    ),
    ("SELECT k FROM cars WHERE k = 'a'", "column 'k' is INT and cannot be compared with 'a'", "a number"),
    ("SELECT k FROM cars WHERE time > 'soon'", "'soon' is not a time", "2026-01-01"),
    ("SELECT k FROM cars WHERE k + 1", "no condition", "BOOLEAN"),
    ("SELECT k FROM cars BEGIN now - 3 hours", "longer than stream 'cars' is retained", "at most 2 hours"),
    ("SELECT k FROM cars BEGIN 0 END 7201", "longer than stream 'cars' is retained", "at most 2 hours"),
    ("SELECT k FROM cars BEGIN now END now - 1 hour", "ends before it begins", "swap"),
    ("SELECT k FROM cars BEGIN tomorrow", "BEGIN does not say when", "last 1000 tuples"),
    ("SELECT k FROM cars BEGIN now - 1 fortnight", "not a length of time", "10 seconds"),
    ("SELECT k FROM cars BEGIN now END last 3 tuples", "END cannot count tuples", "now"),
    ("SELECT k FROM cars BEGIN last 0 tuples", "empty", "one tuple at least"),
    ("SELECT k FROM cars, tolls", "column 'k' is in several streams", "cars.k, tolls.k"),
    ("SELECT k FROM cars, cars", "stands twice in FROM", "FROM cars a, cars b"),
    ("SELECT x.k FROM cars c", "no stream 'x' in FROM", "c"),
    ("SELECT c.k FROM cars c LEFT JOIN tolls t ON c.k = t.k", "only inner joins", "FROM a, b"),
    ("SELECT c.k FROM cars c, tolls t WHERE c.name = t.k", "compares STRING with INT", "same kind"),
    ("SELECT k FROM cars GROUP BY k", "no GROUP BY", "client's side"),
    ("SELECT k FROM cars ORDER BY k", "no ORDER BY", "client's side"),
    ("SELECT k FROM cars SORT BY k", "no SORT BY", "client's side"),
    ("SELECT k FROM cars CLUSTER BY k", "no CLUSTER BY", "client's side"),
    ("SELECT k FROM cars DISTRIBUTE BY k", "no DISTRIBUTE BY", "client's side"),
    ("SELECT k FROM cars FOR UPDATE", "no FOR UPDATE", "client's side"),
    ("SELECT /*+ X */ k FROM cars", "no HINT", "client's side"),
    ("SELECT k FROM cars c(a, b)", "no list of columns", "c(a, b)"),
    ("SELECT * EXCEPT (k) FROM cars", "no EXCEPT", "EXCEPT"),
    ("SELECT c.* EXCEPT (k) FROM cars c", "no EXCEPT", "EXCEPT"),
    ("SELECT * REPLACE (1 AS k) FROM cars", "no REPLACE", "REPLACE"),
    ("SELECT k FROM cars TIMESTAMP AS OF '2020-01-01'", "no AS OF", "2020"),
    ("SELECT k FROM cars TABLESAMPLE (10 PERCENT)", "no TABLESAMPLE", "10"),
    ("SELECT k FROM db.cars", "no database name", "db.cars"),
    ("SELECT DISTINCT ON (k) k FROM cars", "no ON", "DISTINCT"),
    ("SELECT k FROM cars LIMIT 5", "no LIMIT", "client's side"),
    ("SELECT k FROM cars BEGIN now END now FOR", "FOR names no stream", "cars"),
    ("SELECT k FROM cars WHERE name LIKE 3", "text in quotes", "'a%'"),
    ("SELECT k FROM cars BEGIN 99999999999999999999999 END now", "BEGIN is no time", "seconds since 1970"),
    ("SELECT k, COUNT(*) FROM cars", "columns and aggregates", "register two queries"),
    ("SELECT k + 1 FROM cars", "SELECT takes columns and aggregates", "Map box"),
    ("SELECT SUM(name) FROM cars", "column 'name' is STRING", "a number"),
    ("SELECT COUNT(DISTINCT k) FROM cars", "not answered", "COUNT of a column"),
    ("SELECT k, k FROM cars", "stands twice in SELECT", "AS"),
    ("SELECT k FROM (SELECT * FROM cars)", "nested", "join"),
    ("DELETE FROM cars", "one SELECT", "DELETE"),
    ("SELECT k FROM cars WHERE", "does not parse", "SELECT columns FROM"),
    ("SELECT c.k FROM cars c BEGIN now FOR d", "FOR d: no such stream in FROM", "c"),
    ("SELECT k FROM cars BEGIN now END", "END does not say when", "now"),
]


@pytest.mark.parametrize(("text", "problem", "advice"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_refusals_say_what_and_how(text: str, problem: str, advice: str) -> None:
    with pytest.raises(QueryError) as refusal:
        parse(text, INFOS)
    assert problem in str(refusal.value)
    assert advice in str(refusal.value)
