"""Ranges from WHERE expressions: what is understood, what restricts nothing, and that no matching tuple is
lost.
"""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.store.points.predicates import key_ranges
from penstock.store.points.ranges import Interval, touches


def between(low, high, low_open=False, high_open=False):
    return Interval(low, high, low_open, high_open)


@pytest.mark.parametrize(
    ("where", "kind", "wanted"),
    [
        ("k = 5", "INT", (between(5, 5),)),
        ("5 = K", "INT", (between(5, 5),)),
        ("k < 5", "INT", (between(None, 5, high_open=True),)),
        ("5 < k", "BIGINT", (between(5, None, low_open=True),)),
        ("k >= -5", "INT", (between(-5, None),)),
        ("k = 9007199254740993", "DOUBLE", (between(9007199254740992.0, 9007199254740992.0),)),
        ("k = 9007199254740993", "BIGINT", (between(9007199254740993, 9007199254740993),)),
        ("k > 1.5", "INT", (between(1.5, None, low_open=True),)),
        ("k BETWEEN 2 AND 4", "INT", (between(2, 4),)),
        ("k BETWEEN 4 AND 2", "INT", ()),
        ("k IN (3, 1)", "INT", (between(3, 3), between(1, 1))),
        ("k > 1 AND k <= 3", "INT", (between(1, 3, low_open=True),)),
        ("(k > 1) AND other = 7", "INT", (between(1, None, low_open=True),)),
        ("k = 1 OR k > 8", "INT", (between(1, 1), between(8, None, low_open=True))),
        (
            "(k < 3 OR k > 8) AND k BETWEEN 2 AND 9",
            "INT",
            (between(2, 3, high_open=True), between(8, 9, low_open=True)),
        ),
        ("k = 1 AND k = 2", "INT", ()),
        ("k = 'x'", "STRING", (between("x", "x"),)),
        ("k >= TIMESTAMP '1970-01-01 00:00:01'", "TIMESTAMP", (between(1_000_000, None),)),
        ("k >= '1970-01-01T00:00:01+01:00'", "TIMESTAMP", (between(-3_599_000_000, None),)),
        ("k < DATE '1970-01-02'", "TIMESTAMP", (between(None, 86_400_000_000, high_open=True),)),
        ("k = DATE '1970-01-02'", "DATE", (between(1, 1),)),
        ("k = true", "BOOLEAN", (between(1, 1),)),
        ("false", "INT", ()),
        ("t.k = 5", "INT", (between(5, 5),)),
    ],
)
def test_understood(where, kind, wanted):
    assert key_ranges(where, "k", kind) == wanted


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("k = 1 OR other = 2", "INT"),
        ("NOT k = 1", "INT"),
        ("k <> 1", "INT"),
        ("k + 1 = 2", "INT"),
        ("k = other", "INT"),
        ("k IN (1, other)", "INT"),
        ("k IN (SELECT 1)", "INT"),
        ("k <=> NULL", "INT"),
        ("k IS NULL", "INT"),
        ("k = '5'", "INT"),
        ("abs(k) < 3", "INT"),
        ("k = 0.1", "FLOAT"),
        ("k = 5", "STRING"),
        ("k = 'monday'", "TIMESTAMP"),
        ("k NOT IN (1)", "INT"),
        ("k NOT BETWEEN 1 AND 2", "INT"),
        ("k = NULL", "INT"),
        ("k > cast('1' AS INT)", "INT"),
        ("k ( = 1", "INT"),
        ("k = -true", "BOOLEAN"),
        ("k = 9007199254740993.0", "BIGINT"),
        ("k > 1e999", "DOUBLE"),
    ],
)
def test_not_understood_restricts_nothing(where, kind):
    assert key_ranges(where, "k", kind) is None


def test_files_without_keys_match_no_range():
    assert not touches((Interval(),), None, None, 0)
    assert touches(None, None, None, 0)


def conditions():
    number = st.integers(-4, 4)
    atom = st.one_of(
        st.builds("k {} {}".format, st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]), number),
        st.builds("{} {} k".format, number, st.sampled_from(["=", "<", "<=", ">", ">="])),
        st.builds("k BETWEEN {} AND {}".format, number, number),
        st.builds("k IN ({}, {})".format, number, number),
        st.builds("j > {}".format, number),
        st.just("k IS NULL"),
    )
    words = st.sampled_from(["AND", "OR"])

    def larger(inner):
        return st.builds("({} {} {})".format, inner, words, inner) | st.builds("NOT ({})".format, inner)

    return st.recursive(atom, larger, max_leaves=6)


@settings(max_examples=150, deadline=None)
@given(
    conditions(),
    st.lists(st.tuples(st.none() | st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=5),
)
def test_no_matching_tuple_is_lost(where, rows):
    values = ", ".join(f"({'NULL' if k is None else k}, {j})" for k, j in rows)
    hits = duckdb.sql(f"SELECT k FROM (VALUES {values}) t(k, j) WHERE {where}").fetchall()
    keys = [k for k, _ in rows if k is not None]
    if hits:
        assert touches(
            key_ranges(where, "k", "INT"), min(keys, default=None), max(keys, default=None), len(keys)
        )
    for (key,) in hits:
        assert touches(key_ranges(where, "k", "INT"), key, key, int(key is not None))
