"""Tumble and Slide over time: list in, list out; any cutting; partials from outside."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.boxes.windows import TimeWindows
from penstock.engine.arrow.logic import MIN, logic_for
from penstock.model.boxes import Slide, Tumble
from penstock.model.checks.stream_types import output_type
from penstock.model.durations import Time
from penstock.model.types import Schema, arrow_schema
from penstock.model.user_functions import Function

from .driving import (
    CUTS,
    FEW,
    KEY,
    MOVES,
    NUMBER,
    TEXT,
    arrivals,
    cut,
    drive,
    reference,
    same,
    stream,
    tuples,
)

CARS = stream("time TIMESTAMP, car INT, v INT, x DOUBLE, t STRING", "car")
ALL = stream("time TIMESTAMP, car INT, v INT, x DOUBLE, t STRING")
SECOND = 1_000_000
EVERY = (
    ("n", "count(*)"), ("some", "count(v)"), ("total", "sum(v)"), ("mean", "avg(v)"), ("low", "min(v)"),
    ("high", "max(t)"),
    ("least", "min(t)"), ("kinds", "count(distinct t)"), ("numbers", "count(distinct v)"),
    ("ratio", "sum(v) / (count(*) + 1)"),
    ("start", "window_start()"), ("stop", "window_end()"),
)  # fmt: skip
REAL = (
    ("total", "sum(x)"),
    ("mean", "avg(x)"),
    ("low", "min(x)"),
    ("high", "max(x)"),
    ("spread", "stddev(v)"),
    ("var", "variance(v)"),
)
ORDER = (("first", "first(t)"), ("last", "last(v)"), ("n", "count(*)"), ("kinds", "count(distinct v)"))


def tumble(size=10, aggregates=EVERY, stamp="earliest"):
    return Tumble(name="w", inputs=("s",), size=Time(size * SECOND), aggregates=aggregates, stamp=stamp)


def slide(size, every, aggregates=EVERY, stamp="earliest"):
    return Slide(
        name="w",
        inputs=("s",),
        size=Time(size * SECOND),
        every=Time(every * SECOND),
        aggregates=aggregates,
        stamp=stamp,
    )


def test_windows_close_when_the_horizon_reaches_their_end():
    rows = tuples(
        CARS, [(1, 7, 4, 0.5, "a"), (9, 7, 6, 1.5, None), (10, 7, 1, 2.5, "b"), (12, 8, None, 0.0, "b")]
    )
    node, inputs = tumble(aggregates=(("total", "sum(v)"), ("n", "count(*)"))), [CARS]
    logic = logic_for(node, inputs, output_type(node, inputs))
    table = pa.Table.from_pylist(rows, schema=arrow_schema(CARS.schema))
    nothing = table.slice(0, 0)
    assert logic.process([table], (9_999_999,), final=False).out.num_rows == 0
    assert [
        (r["car"], r["total"], r["n"])
        for r in logic.process([nothing], (10_000_000,), final=False).out.to_pylist()
    ] == [(7, 10, 2)]
    out = logic.process([nothing], (10_000_000,), final=True).out.to_pylist()
    assert [(r["car"], r["total"], r["n"], r["_ts"], r["_seq"]) for r in out] == [
        (7, 1, 1, 10_000_000, 2),
        (8, None, 1, 12_000_000, 3),
    ]
    assert "panes/panes/rows" not in logic.snapshot()


def test_a_tuple_lies_in_all_its_windows():
    rows = tuples(ALL, [(1, 0, 1, None, None), (6, 0, 2, None, None), (11, 0, 4, None, None)])
    found = drive(slide(10, 5, (("start", "window_start()"), ("total", "sum(v)"))), [ALL], [[rows]])
    assert found.visible("start", "time", "total") == [(-5, 1, 1), (0, 1, 3), (5, 6, 6), (10, 11, 4)]


def test_gaps_between_windows_lose_tuples_and_say_nothing():
    rows = tuples(ALL, [(1, 0, 1, None, None), (6, 0, 2, None, None), (11, 0, 4, None, None)])
    found = drive(slide(3, 10, (("total", "sum(v)"),)), [ALL], [[rows]])
    assert (found.visible("total"), found.dead) == ([(1,), (4,)], [])


@pytest.mark.parametrize(("stamp", "expected"), [("earliest", (3_000_000, 0)), ("latest", (9_000_000, 0))])
def test_the_stamp_is_the_first_or_the_latest_time_the_place_the_least(stamp, expected):
    rows = tuples(
        ALL, [(9, 0, 1, None, None), (3, 0, 1, None, None), (3, 0, 1, None, None), (9, 0, 1, None, None)]
    )
    found = drive(tumble(aggregates=(("n", "count(*)"),), stamp=stamp), [ALL], [[rows]])
    assert [(row["_ts"], row["_seq"]) for row in found.out] == [expected]


def test_a_failing_argument_sends_the_tuple_to_dead_letters():
    rows = tuples(ALL, [(1, 0, 1, None, None), (2, 0, 0, None, None)])
    found = drive(tumble(aggregates=(("n", "sum(6 / v)"),)), [ALL], [[rows]])
    assert found.visible("n") == [(6.0,)]
    assert [(row["offset"], row["box"]) for row in found.dead] == [(1, "w")]
    same(found, reference(tumble(aggregates=(("n", "sum(6 / v)"),)), [ALL], [[rows]]))


def test_a_failing_result_sends_the_window_to_dead_letters():
    big = stream("time TIMESTAMP, b BIGINT")
    node = tumble(aggregates=(("total", "sum(b)"),))
    rows = tuples(big, [(1, 2**63 - 1), (2, 1), (11, 5), (12, -(2**63)), (13, -5)])
    found = drive(node, [big], cut([rows], [40]))
    assert found.visible("total") == [(-(2**63),)]
    assert [(row["reason"], row["offset"]) for row in found.dead] == [
        ("sum is out of the range of BIGINT", 0)
    ]
    same(found, reference(node, [big], [[rows]]))


def test_an_edge_beyond_the_years_1_to_9999_sends_the_window_to_dead_letters():
    first, last = -62_135_596_800, 253_402_300_799  # 0001-01-01 00:00:00 and 9999-12-31 23:59:59
    rows = tuples(ALL, [(first, 0, 1, None, None), (0, 0, 2, None, None), (last, 0, 4, None, None)])
    node = tumble(7 * 86_400, (("lo", "window_start()"), ("hi", "window_end()"), ("total", "sum(v)")))
    found = drive(node, [ALL], [[rows]])
    assert found.visible("total") == [(2,)]
    assert [(row["offset"], row["reason"].split()[0]) for row in found.dead] == [
        (0, "window_start"),
        (2, "window_end"),
    ]
    same(found, reference(node, [ALL], [[rows]]))


def test_a_late_tuple_after_an_idle_input_came_back():
    rows = tuples(ALL, [(25, 0, 1, None, None), (19, 0, 1, None, None), (21, 0, 1, None, None)])
    node = tumble(aggregates=(("n", "count(*)"),))
    trains = [[rows[:1]], [rows[1:]]]
    found = drive(node, [ALL], trains, horizons=[(20 * SECOND,), (20 * SECOND,)])
    assert found.visible("n") == [(2,)]
    assert [row["offset"] for row in found.dead] == [1]


def test_an_unknown_horizon_closes_nothing():
    rows = tuples(ALL, [(25, 0, 1, None, None)])
    node, inputs = tumble(), [ALL]
    logic = logic_for(node, inputs, output_type(node, inputs))
    assert (
        logic.process(
            [pa.Table.from_pylist(rows, schema=arrow_schema(ALL.schema))], (MIN,), final=False
        ).out.num_rows
        == 0
    )


ROWS = arrivals(KEY, FEW, NUMBER, TEXT)
BOXES = st.one_of(
    st.builds(
        tumble,
        size=st.sampled_from([1, 4, 10]),
        aggregates=st.sampled_from([EVERY, ORDER]),
        stamp=st.sampled_from(["earliest", "latest"]),
    ),
    st.builds(
        slide,
        size=st.sampled_from([3, 4, 10]),
        every=st.sampled_from([1, 2, 4, 6]),
        aggregates=st.sampled_from([EVERY, ORDER]),
        stamp=st.sampled_from(["earliest", "latest"]),
    ),
)


@settings(max_examples=12, deadline=None)
@given(BOXES, st.sampled_from([CARS, ALL]), ROWS, CUTS, MOVES)
def test_any_cutting_gives_the_same(node, kind, rows, cuts, moves):
    made = [tuples(kind, rows)]
    found = drive(node, [kind], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [kind], [made])
    same(found, reference(node, [kind], [made]))


@settings(max_examples=12, deadline=None)
@given(arrivals(KEY, FEW, st.integers(-(10**9), 10**9).map(lambda n: n / 1000), TEXT), CUTS, MOVES)
def test_sums_of_doubles_do_not_depend_on_the_cutting(rows, cuts, moves):
    made, node = [tuples(CARS, rows)], slide(6, 2, REAL)
    found = drive(node, [CARS], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [CARS], [made])
    same(found, reference(node, [CARS], [made]))


@settings(max_examples=12, deadline=None)
@given(ROWS, CUTS)
def test_nan_and_infinity_mean_the_same_as_row_by_row(rows, cuts):
    node = tumble(4, (("low", "min(x)"), ("high", "max(x)"), ("kinds", "count(distinct x)")))
    same(
        drive(node, [CARS], cut([tuples(CARS, rows)], cuts), lateness=3 * SECOND),
        reference(node, [CARS], [[tuples(CARS, rows)]]),
    )


def test_partials_may_come_from_outside():
    rows = [(t, t % 3, t, t / 7, "abc"[t % 3]) for t in range(40)]
    node, inputs, made = slide(10, 4), [CARS], tuples(CARS, rows)
    outside, inside = (TimeWindows(node, inputs, output_type(node, inputs)) for _ in range(2))
    tables = [pa.Table.from_pylist(made[i::4], schema=arrow_schema(CARS.schema)) for i in range(4)]
    for table in tables:
        partials, distincts, dead = outside.partial([table])
        assert dead.num_rows == 0
        inside.merge(partials, distincts)
    out = inside.close((MIN,), final=True).out
    assert out.to_pylist() == drive(node, inputs, [[made]]).out


def test_a_partial_of_the_documented_columns():
    node = tumble(
        aggregates=(
            ("total", "sum(v)"),
            ("mean", "avg(x)"),
            ("n", "count(*)"),
            ("kinds", "count(distinct t)"),
        )
    )
    logic = TimeWindows(node, [CARS], output_type(node, [CARS]))
    rows = tuples(CARS, [(1, 7, -4, 0.5, "a"), (9, 7, 6, 1.5, None), (9, 7, None, None, "a")])
    partials, distincts, _ = logic.partial([pa.Table.from_pylist(rows, schema=arrow_schema(CARS.schema))])
    assert partials.to_pylist() == [
        {
            "_window": 0,
            "car": 7,
            "_ts": 1_000_000,
            "_input": 0,
            "_seq": 0,
            "s0": -1,
            "s0_low": 2**32 - 4 + 6,
            "s0_n": 2,
            "s1": 2.0,
            "s1_rest": 0.0,
            "s1_n": 2,
            "s2": 3,
            "s3": 0,
        }
    ]
    assert {n: table.to_pylist() for n, table in distincts.items()} == {
        3: [{"_window": 0, "car": 7, "_value": "a"}]
    }


def halves(table):
    """Two rows a window: how many tuples, and their v in order."""
    text = ",".join(map(str, table.column("v").to_pylist()))
    return (
        {"n": [table.num_rows, -1], "seen": [text, text]}
        if table.num_rows > 1
        else {"n": np.zeros(0, int), "seen": pa.array([], pa.string())}
    )


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([CARS, ALL]), ROWS, st.sampled_from([2, 4, 6]), CUTS, MOVES)
def test_a_function_sees_each_window_in_order(kind, rows, every, cuts, moves):
    node = Slide(
        name="w",
        inputs=("s",),
        size=Time(4 * SECOND),
        every=Time(every * SECOND),
        function=Function(halves, "tests:halves"),
        produces=Schema.parse("n BIGINT, seen STRING"),
    )
    made = [tuples(kind, rows)]
    found = drive(node, [kind], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [kind], [made])
    same(found, reference(node, [kind], [made]))
