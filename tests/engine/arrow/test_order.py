"""The reorder buffer: tuples leave in canonical order, as soon as nothing smaller can still come."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.logic import MIN
from penstock.engine.arrow.order import Reorder, canonical
from penstock.model.boxes import ColumnLatch
from penstock.model.types import SEQ, STAMP, Schema, arrow_schema
from penstock.model.user_functions import Function

from .driving import CUTS, arrivals, at, cut, drive, horizons_of, micros, reference, stream, tuples

KIND = stream("time TIMESTAMP, v INT")


def train(kind, *rows):
    made = [{"time": at(t), "v": v, STAMP: micros(at(t)), SEQ: seq} for t, seq, v in rows]
    return pa.Table.from_pylist(made, schema=arrow_schema(kind.schema))


def released(order, tables, seconds, *, final=False):
    rows, dead = order.release(tables, tuple(s if s == MIN else s * 1_000_000 for s in seconds), final=final)
    return [row["v"] for row in rows.to_pylist()], dead.to_pylist()


def test_in_arrival_order_a_time_goes_when_it_is_reached():
    order = Reorder("box", [KIND])
    assert released(order, [train(KIND, (3, 0, 30), (1, 1, 10), (2, 2, 20))], [2])[0] == [10, 20]
    assert released(order, [train(KIND, (2, 3, 21))], [2])[0] == [21]
    assert released(order, [train(KIND)], [2], final=True)[0] == [30]


def test_otherwise_a_time_must_be_passed():
    order = Reorder("box", [stream("time TIMESTAMP, v INT", arrival_order=False)])
    assert released(order, [train(KIND, (1, 0, 10), (2, 1, 20))], [2])[0] == [10]
    assert released(order, [train(KIND, (2, 0, 19))], [3])[0] == [19, 20]


def test_two_inputs_wait_for_each_other_and_ties_go_by_input():
    order = Reorder("box", [KIND, KIND])
    assert released(order, [train(KIND, (1, 0, 10), (2, 1, 20)), train(KIND)], [2, MIN])[0] == []
    assert released(order, [train(KIND), train(KIND, (1, 0, 11), (2, 1, 21))], [2, 2])[0] == [10, 11, 20]
    # the second input may not go at time 2 as long as the first may still bring that time
    assert released(order, [train(KIND), train(KIND)], [3, 2])[0] == [21]


def test_a_tuple_behind_what_was_released_is_late():
    order = Reorder("box", [KIND, KIND])
    assert released(order, [train(KIND, (5, 0, 50)), train(KIND)], [5, 5])[0] == [50]
    rows, dead = released(order, [train(KIND), train(KIND, (4, 7, 40), (5, 8, 51))], [6, 5])
    assert rows == [51]
    assert [(row["offset"], row["box"], row["reason"]) for row in dead] == [
        (7, "box", "late: timestamp 4000000 us is behind the horizon 5000000 us that the box has acted on")
    ]


def test_canonical_order_breaks_ties_by_visible_values_nulls_first():
    table = pa.table({"b": [True, False, None], "v": [1, 2, 3], STAMP: [5, 5, 5], SEQ: [1, 1, 1]})
    assert [row["v"] for row in canonical(table).to_pylist()] == [3, 2, 1]


def test_times_too_far_apart_to_pack_are_sorted_too():
    stamps = np.array([2**62, -(2**62), 0, 2**62])
    table = pa.table({"v": [1, 2, 3, 4], STAMP: stamps, SEQ: [2**40, 0, 5, 7]})
    assert [row["v"] for row in canonical(table).to_pylist()] == [2, 3, 4, 1]


@settings(max_examples=12, deadline=None)
@given(arrivals(st.integers(0, 9)), arrivals(st.integers(0, 9)), CUTS)
def test_any_cutting_gives_one_sequence(left, right, cuts):
    inputs = [tuples(KIND, left), tuples(KIND, right)]
    order, found = Reorder("box", [KIND, KIND]), []
    trains = cut(inputs, cuts)
    for number, (rows, horizon) in enumerate(zip(trains, horizons_of(trains, 3_000_000), strict=True)):
        tables = [pa.Table.from_pylist(each, schema=arrow_schema(KIND.schema)) for each in rows]
        out, dead = order.release(tables, horizon, final=number == len(trains) - 1)
        assert not dead.num_rows
        found += [(row[STAMP], row["_input"], row[SEQ]) for row in out.to_pylist()]
    assert found == sorted((row[STAMP], place, row[SEQ]) for place, rows in enumerate(inputs) for row in rows)


class Numbering:
    """A column latch that numbers its rows as they come."""

    def __init__(self):
        self.seen = 0

    def process(self, inputs, until, final):
        del until, final
        (rows,) = inputs
        first, self.seen = self.seen, self.seen + rows.num_rows
        return {"time": rows["time"], "v": rows["v"], "n": list(range(first, self.seen))}


def numbered(engine, kind, *rows, **more):
    """The values of the rows in the order in which a column latch gets them, all in one train."""
    node = ColumnLatch(
        name="latch",
        inputs=("s",),
        logic=Function(Numbering, "tests:Numbering"),
        produces=Schema.parse("time TIMESTAMP, v INT, n BIGINT"),
    )
    found = engine(node, [kind], [[train(kind, *rows).to_pylist()], [[]]], **more)
    return [v for _, v in sorted(found.visible("n", "v"))]


UNION = stream("time TIMESTAMP, v INT", arrival_order=False)


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (KIND, [(5, 1, 10), (5, 0, 20)]),
        (KIND, [(4, 7, 10), (5, 2, 30), (5, 3, 20)]),
        (UNION, [(5, 0, 30), (5, 0, 20)]),
        (UNION, [(5, 0, 30), (5, 1, 20), (5, 0, 25)]),
    ],
)
def test_a_column_latch_gets_rows_of_one_time_in_order(kind, rows):
    """Also where all of them may go at once: one task may have read them before the other."""
    given_ = numbered(drive, kind, *rows, horizons=[(6_000_000,), (6_000_000,)])
    assert given_ == numbered(reference, kind, *rows)
    assert given_ == [v for _, _, v in sorted(rows)]


def test_rows_of_another_column_latch_are_not_sorted():
    """They all have the number 0, and there are millions of them."""
    kind = replace(UNION, numbered=False)
    rows = [(4, 0, 9), (5, 0, 30), (5, 0, 20)]
    assert numbered(drive, kind, *rows, horizons=[(6_000_000,), (6_000_000,)]) == [9, 30, 20]
