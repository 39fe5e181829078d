"""Resample: synthetic tuples on a grid between actual ones."""

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.boxes import Resample

from .driving import CUTS, FEW, KEY, MOVES, SECOND, arrivals, cut, drive, reference, same, stream, tuples

CARS = stream("time TIMESTAMP, car INT, v INT, t STRING", "car")
ALL = stream("time TIMESTAMP, car INT, v INT, t STRING")


def box(every=2, limit=6):
    return Resample(name="r", inputs=("s",), every=every * SECOND, limit=limit * SECOND, columns=("v",))


def test_the_grid_is_filled_between_near_neighbours():
    rows = tuples(ALL, [(1, 0, 10, "a"), (5, 0, 50, "b"), (12, 0, 0, "c")])
    found = drive(box(), [ALL], cut([rows], [40]), moves=["delta"])
    assert found.visible("time", "v", "t", "synthetic") == [
        (1, 10.0, "a", False),
        (2, 20.0, "a", True),
        (4, 40.0, "a", True),
        (5, 50.0, "b", False),
        (12, 0.0, "c", False),
    ]
    assert [row["_seq"] for row in found.out] == [0, 0, 0, 1, 2]


def test_null_ends_give_null_between():
    rows = tuples(ALL, [(1, 0, None, "a"), (3, 0, 50, "b")])
    assert drive(box(), [ALL], [[rows]]).visible("time", "v") == [(1, None), (2, None), (3, 50.0)]


def test_points_of_the_grid_that_are_actual_are_not_doubled():
    rows = tuples(ALL, [(2, 0, 1, "a"), (4, 0, 2, "b")])
    assert drive(box(), [ALL], [[rows]]).visible("time", "synthetic") == [(2, False), (4, False)]


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([box(), box(1, 3), box(5, 20)]),
    st.sampled_from([CARS, ALL]),
    arrivals(KEY, FEW, st.just("x")),
    CUTS,
    MOVES,
)
def test_any_cutting_gives_the_same(node, kind, rows, cuts, moves):
    made = [tuples(kind, rows)]
    found = drive(node, [kind], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [kind], [made])
    same(found, reference(node, [kind], [made]))
