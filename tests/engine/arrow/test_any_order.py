"""A retried task may get its rows in another order: it must answer the same and write the same changes."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.logic import logic_for
from penstock.model.boxes import Join, Latch, Resample, Slide, Tumble
from penstock.model.checks.stream_types import output_type
from penstock.model.durations import Count, Time
from penstock.model.types import Schema, arrow_schema
from penstock.model.user_functions import Function

from .driving import FEW, KEY, SECOND, TEXT, arrivals, cut, horizons_of, stream, tuples

CARS = stream("time TIMESTAMP, car INT, v INT, t STRING", "car")
ALL = stream("time TIMESTAMP, car INT, v INT, t STRING")
SUMS = (("total", "sum(v)"), ("mean", "avg(v / 3)"), ("kinds", "count(distinct t)"))
ORDERED = (*SUMS, ("first", "first(v)"), ("last", "last(t)"))


def latest(batch, state):
    del state
    last = {row["car"]: row["v"] for row in batch.to_pylist()}
    changed = {"car": pa.array(list(last), pa.int32()), "last": pa.array(list(last.values()), pa.int32())}
    return {"v": batch.column("v")}, changed


BOXES = [
    (Tumble(name="b", inputs=("s",), size=Time(4 * SECOND), aggregates=SUMS), [CARS]),
    (Slide(name="b", inputs=("s",), size=Time(4 * SECOND), every=Time(SECOND), aggregates=ORDERED), [CARS]),
    (Slide(name="b", inputs=("s",), size=Count(3), every=Count(2), aggregates=ORDERED, stamp="latest"),
        [CARS]),
    (Latch(name="b", inputs=("s",), size=Time(4 * SECOND), aggregates=SUMS), [CARS]),
    (Latch(name="b", inputs=("s",), size=Count(2), aggregates=ORDERED, stamp="latest"), [CARS]),
    (Latch(name="b", inputs=("s",), function=Function(latest, "tests:latest"), state=Schema.parse("last INT"),
        produces=Schema.parse("v INT")), [CARS]),
    (Resample(name="b", inputs=("s",), every=SECOND, limit=5 * SECOND, columns=("v",)), [CARS]),
    (Join(name="b", inputs=("s", "t"), on=(("car", "car"),), within=(2 * SECOND, SECOND)), [ALL, ALL]),
]  # fmt: skip


@pytest.mark.parametrize(("node", "inputs"), BOXES, ids=lambda each: getattr(each, "kind", ""))
@settings(max_examples=8, deadline=None)
@given(
    rows=arrivals(KEY, FEW, TEXT),
    cuts=st.lists(st.integers(20, 80), min_size=1, max_size=3),
    random=st.randoms(),
)
def test_answers_and_changes_do_not_depend_on_the_order_of_rows(node, inputs, rows, cuts, random):
    trains = cut([tuples(kind, rows) for kind in inputs], cuts)
    one, other = (logic_for(node, inputs, output_type(node, inputs)) for _ in range(2))
    for number, (train, horizon) in enumerate(zip(trains, horizons_of(trains, 3 * SECOND), strict=True)):
        final = number == len(trains) - 1
        mine = one.process(tables(inputs, train), horizon, final=final)
        shuffled = [random.sample(each, len(each)) for each in train]
        theirs = other.process(tables(inputs, shuffled), horizon, final=final)
        assert mine.out.equals(theirs.out)
        assert equal(one.delta(), other.delta())


def tables(inputs, train):
    return [
        pa.Table.from_pylist(rows, schema=arrow_schema(kind.schema))
        for rows, kind in zip(train, inputs, strict=True)
    ]


def equal(one, other):
    return list(one) == list(other) and all(table.equals(other[name]) for name, table in one.items())
