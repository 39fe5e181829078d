"""Tumble and Slide over tuples, and Latch with aggregates."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.boxes import Latch, Slide, Tumble
from penstock.model.durations import Count, Time
from penstock.model.types import Schema
from penstock.model.user_functions import Function

from .driving import (
    CUTS,
    FEW,
    KEY,
    MOVES,
    SECOND,
    TEXT,
    arrivals,
    cut,
    drive,
    reference,
    same,
    stream,
    tuples,
)

CARS = stream("time TIMESTAMP, car INT, v INT, t STRING", "car")
ALL = stream("time TIMESTAMP, car INT, v INT, t STRING")
SOME = (
    ("n", "count(*)"),
    ("total", "sum(v)"),
    ("mean", "avg(v)"),
    ("low", "min(v)"),
    ("high", "max(t)"),
    ("first", "first(t)"),
    ("last", "last(v)"),
    ("kinds", "count(distinct t)"),
    ("spread", "variance(v)"),
    ("numbers", "count(distinct v)"),
)
UNORDERED = tuple(pair for pair in SOME if pair[0] not in ("first", "last"))


def box(size, every=None, aggregates=SOME, stamp="latest", **more):
    if every is None:
        return Tumble(name="w", inputs=("s",), size=Count(size), aggregates=aggregates, stamp=stamp, **more)
    return Slide(
        name="w",
        inputs=("s",),
        size=Count(size),
        every=Count(every),
        aggregates=aggregates,
        stamp=stamp,
        **more,
    )


def latch(size, aggregates=SOME, stamp="earliest", inputs=("s",)):
    return Latch(name="l", inputs=inputs, size=size, aggregates=aggregates, stamp=stamp)


def test_every_so_many_tuples_of_a_key():
    rows = tuples(CARS, [(t, t % 2, t, "x") for t in range(7)])
    found = drive(
        box(2, aggregates=(("total", "sum(v)"), ("n", "count(*)"))),
        [CARS],
        cut([rows], [30, 60]),
        moves=["delta"],
    )
    assert found.visible("car", "time", "total", "n") == [
        (0, 2, 2, 2),
        (1, 3, 4, 2),
        (0, 6, 10, 2),
        (1, 6, 5, 1),
    ]


def test_rolling_windows_and_the_rest_at_the_end():
    rows = tuples(ALL, [(t, 0, t, "x") for t in range(5)])
    found = drive(box(3, 1, aggregates=(("total", "sum(v)"),)), [ALL], cut([rows], [50]))
    assert found.visible("time", "total") == [(2, 3), (3, 6), (4, 9), (4, 7), (4, 4)]


def test_a_tuple_whose_argument_fails_takes_no_place():
    rows = tuples(ALL, [(0, 0, 1, "x"), (1, 0, 0, "x"), (2, 0, 2, "x")])
    node = box(2, aggregates=(("total", "sum(6 / v)"),))
    found = drive(node, [ALL], [[rows]])
    assert (found.visible("total"), [row["offset"] for row in found.dead]) == ([(9.0,)], [1])


ROWS = arrivals(KEY, FEW, TEXT, most=20)
BOXES = st.builds(
    box,
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 5)),
    stamp=st.sampled_from(["earliest", "latest"]),
)
LATCHES = st.builds(
    latch,
    st.sampled_from([Time(SECOND), Time(4 * SECOND), Count(1), Count(3)]),
    st.sampled_from([SOME, UNORDERED]),
    st.sampled_from(["earliest", "latest"]),
)


@settings(max_examples=12, deadline=None)
@given(BOXES, st.sampled_from([CARS, ALL]), ROWS, CUTS, MOVES)
def test_any_cutting_gives_the_same(node, kind, rows, cuts, moves):
    made = [tuples(kind, rows)]
    found = drive(node, [kind], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [kind], [made], lateness=3 * SECOND)
    same(found, reference(node, [kind], [made], lateness=3 * SECOND))


def joined(table):
    return {"seen": [",".join(map(str, table.column("v").to_pylist()))]}


@settings(max_examples=8, deadline=None)
@given(ROWS, CUTS, MOVES)
def test_a_function_sees_so_many_tuples_in_order(rows, cuts, moves):
    node = box(3, 2, (), function=Function(joined, "tests:joined"), produces=Schema.parse("seen STRING"))
    made = [tuples(CARS, rows)]
    found = drive(node, [CARS], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [CARS], [made], lateness=3 * SECOND)
    same(found, reference(node, [CARS], [made], lateness=3 * SECOND))


@pytest.mark.parametrize("size", [Time(10 * SECOND), Count(2)])
def test_a_latch_answers_for_all_tuples_so_far(size):
    rows = tuples(
        CARS,
        [(1, 7, 1, "a"), (2, 7, 2, "b"), (11, 7, 3, "a"), (12, 7, 4, "c"), (25, 7, 5, "a"), (26, 7, 6, "a")],
    )
    node = latch(
        size,
        (("total", "sum(v)"), ("kinds", "count(distinct t)"), ("first", "first(v)"), ("last", "last(v)")),
    )
    for cuts in ([], [50], [20, 40, 50]):
        found = drive(node, [CARS], cut([rows], cuts), moves=["delta"])
        assert found.visible("time", "total", "kinds", "first", "last") == [
            (1, 3, 2, 1, 2),
            (11, 10, 3, 1, 4),
            (25, 21, 3, 1, 6),
        ]


@settings(max_examples=12, deadline=None)
@given(LATCHES, st.sampled_from([CARS, ALL]), ROWS, CUTS, MOVES)
def test_any_cutting_gives_the_same_latch(node, kind, rows, cuts, moves):
    made = [tuples(kind, rows)]
    found = drive(node, [kind], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [kind], [made], lateness=3 * SECOND)
    same(found, reference(node, [kind], [made], lateness=3 * SECOND))


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([Time(4 * SECOND), Count(3)]),
    st.sampled_from(["earliest", "latest"]),
    ROWS,
    ROWS,
    CUTS,
    MOVES,
)
def test_a_latch_merges_its_inputs(size, stamp, left, right, cuts, moves):
    node, made = latch(size, stamp=stamp, inputs=("s", "t")), [tuples(CARS, left), tuples(CARS, right)]
    found = drive(node, [CARS, CARS], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [CARS, CARS], [made], lateness=3 * SECOND)
    same(found, reference(node, [CARS, CARS], [made], lateness=3 * SECOND))
