"""Texts that are short to send and endless to read: each is answered or refused in little time."""

from __future__ import annotations

import time

import pytest

from penstock.model.expressions.patterns import like_pattern
from penstock.model.types import Schema
from penstock.standing.errors import QueryError
from penstock.standing.language.language import parse
from penstock.standing.language.query import StreamInfo
from penstock.standing.language.scan import scan

REPORTS = StreamInfo("reports", Schema.parse("time TIMESTAMP, vid INT, spd INT, s STRING"))
STREAMS = {"reports": REPORTS}
SIZE = 48_000
START = "SELECT vid FROM reports "
# Each of these took seconds before, 10 to 27 of them, or would have filled the memory of a task.
SLOW = {
    "double quotes": START + "WHERE " + '"\\' * (SIZE // 2),
    "single quotes": START + "WHERE " + "'\\" * (SIZE // 2),
    "comments": START + "WHERE " + "/*" * (SIZE // 2),
    "blanks of BEGIN": START + "BEGIN now" + " " * SIZE + "-",
    "blanks": START + "BEGIN now " + " " * SIZE + "x",
    "windows": START + "BEGIN now END now FOR " * (SIZE // 22),
    "streams": "SELECT * FROM reports" + "".join(f",reports r{i}" for i in range(SIZE // 14)),
    "brackets": START + "WHERE " + "(" * SIZE,
    "negations": START + "WHERE " + "NOT " * (SIZE // 4) + "TRUE",
    "a long sum": START + "WHERE vid = 1" + " + 1" * 300,
    "a long list": START + "WHERE vid IN (1" + ",1" * 10_000 + ")",
    "texts that grow": START + "WHERE s = " + "replace(" * 20 + "s" + ", 'a', 'aaaaaaaa')" * 20,
    "long texts": START + "WHERE s = concat(" + "s, " * 100 + "s)",
    "a nested pattern": START + "WHERE s RLIKE '(a*)*b'",
    "a nested counted pattern": START + "WHERE s RLIKE '(a{1,9}){1,9}b'",
    "a long pattern": START + "WHERE s RLIKE 'a*a*a*b'",
    "a lone surrogate": START + "WHERE s = '\ud800'",
    "too long": START + " " * (64 << 10),
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_a_hostile_text_is_refused_at_once(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(QueryError):
        parse(text, STREAMS)
    assert time.thread_time() - began < 3.0


@pytest.mark.parametrize(
    "condition",
    [
        "vid IN (" + ", ".join(map(str, range(10_000))) + ")",
        "vid <> 1" + " AND vid <> 2" * 300,
        "((((((((vid = 1))))))))",
        "s LIKE '%a%b%c%d%'",
        "s RLIKE '^[a-z]+[0-9]{3}.*x$'",
        "concat(s, '-', s) = 'a-a'",
        "s = 'BEGIN -- no comment' -- a comment BEGIN",
        "s = \"it''s\" /* BEGIN */ AND s <> `s`",
    ],
)
def test_what_is_large_but_fair_is_taken(condition: str) -> None:
    assert parse(f"{START} WHERE {condition}\nBEGIN now - 1 minute", STREAMS).branches


def test_limits_do_not_depend_on_where_quotes_stand() -> None:
    scanned = scan("a 'b''c\\'d' \"e\" `f` -- g\nh /* i */ j")
    assert scanned.text == "a 'b''c\\'d' \"e\" `f`  \nh   j"
    assert scanned.masked == "a xxxxxxxxx xxx xxx  \nh   j"


@pytest.mark.parametrize("open_", ["'a", '"a', "`a", "/* a", "'a\\'", "'a''"])
def test_what_is_never_closed_is_refused(open_: str) -> None:
    with pytest.raises(QueryError, match="is not closed"):
        scan(f"SELECT {open_}")


def test_like_takes_little_time_whatever_the_pattern() -> None:
    pattern, began = like_pattern("%a" * 30 + "%b"), time.thread_time()
    assert pattern.fullmatch("a" * 2000) is None
    assert pattern.fullmatch("a" * 2000 + "b") is not None
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%b", "ab", True), ("a%b", "aab", True), ("a%b", "abc", False), ("%", "", True), ("%%", "x", True),
        ("a%a", "a", False), ("%ab%ab", "abab", True), ("%ab%ab", "ab", False), ("a_%_b", "axxb", True),
        ("a_%_b", "axb", False), ("%_a%", "ba", True), ("%_a%", "a", False), ("a\\%%", "a%z", True),
    ],
)  # fmt: skip
def test_like_matches_as_before(pattern: str, text: str, matches: bool) -> None:
    assert (like_pattern(pattern).fullmatch(text) is not None) == matches
