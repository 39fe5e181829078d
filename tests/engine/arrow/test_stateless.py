"""Filter, Map, Drop, Union, GroupBy on Arrow tables."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.logic import LOGICS, logic_for
from penstock.model.boxes import ConnectionPoint, Drop, Filter, GroupBy, Map, Union
from penstock.model.errors import NetworkError
from penstock.model.types import Schema
from penstock.model.user_functions import Function

from .driving import FEW, TEXT, arrivals, drive, reference, same, stream, tuples

CARS = stream("time TIMESTAMP, v INT, t STRING")
ROWS = [(1, 4, "a"), (2, None, "b"), (3, 0, None), (4, -2, "d")]


def function(call):
    return Function(call, "tests:call")


def test_filter_passes_what_is_true_and_buries_what_fails():
    node = Filter(name="f", inputs=("s",), predicate="8 / v > 1")
    found = drive(node, [CARS], [[tuples(CARS, ROWS)]])
    assert found.visible("v") == [(4,)]
    assert [(row["offset"], row["box"], row["raw"]) for row in found.dead] == [
        (2, "f", '{"time": "1970-01-01T00:00:03+00:00", "v": 0, "t": null}')
    ]
    same(found, reference(node, [CARS], [[tuples(CARS, ROWS)]]))


@pytest.mark.parametrize(
    "node",
    [
        Map(name="m", inputs=("s",), columns=(("w", "v * 2"), ("u", "upper(t)"))),
        Map(name="m", inputs=("s",), columns=(("time", "time"), ("w", "10 / v")), keep=False),
    ],
)
def test_map_by_expressions(node):
    found = drive(node, [CARS], [[tuples(CARS, ROWS)]])
    assert len(found.out) + len(found.dead) == len(ROWS)
    same(found, reference(node, [CARS], [[tuples(CARS, ROWS)]]))


def test_a_function_map_adds_its_columns():
    node = Map(
        name="m",
        inputs=("s",),
        function=function(lambda batch: {"w": pc.add(batch.column("v"), 1)}),
        produces=Schema.parse("w INT"),
    )
    assert drive(node, [CARS], [[tuples(CARS, ROWS)]]).visible("v", "w") == [
        (4, 5),
        (None, None),
        (0, 1),
        (-2, -1),
    ]


def test_a_function_that_raises_loses_only_the_tuples_that_make_it():
    calls = []

    def picky(batch):
        calls.append(batch.num_rows)
        if 13 in batch.column("v").to_pylist():
            raise ValueError("unlucky")
        return {"w": batch.column("v")}

    node = Map(name="m", inputs=("s",), function=function(picky), produces=Schema.parse("w INT"))
    found = drive(node, [CARS], [[tuples(CARS, [(t, t, "x") for t in range(64)])]])
    assert [row["w"] for row in found.out] == [v for v in range(64) if v != 13]
    assert [(row["offset"], row["reason"]) for row in found.dead] == [
        (13, "function tests:call failed: ValueError: unlucky")
    ]
    assert len(calls) == 13  # 1 + 2 * log2(64)


def test_a_function_filter_takes_booleans_of_any_kind():
    for call in (
        lambda b: pc.greater(b.column("v"), 0),
        lambda b: [v is not None and v > 0 for v in b.column("v").to_pylist()],
    ):
        node = Filter(name="f", inputs=("s",), function=function(call))
        assert drive(node, [CARS], [[tuples(CARS, ROWS)]]).visible("v") == [(4,)]


@pytest.mark.parametrize(
    ("call", "found"), [(lambda b: [True], "1 values"), (lambda b: [1] * b.num_rows, "values of type int64")]
)
def test_a_wrong_answer_of_a_function_filter_is_refused(call, found):
    with pytest.raises(NetworkError, match=found):
        drive(Filter(name="f", inputs=("s",), function=function(call)), [CARS], [[tuples(CARS, ROWS)]])


def test_a_function_map_must_answer_row_for_row():
    node = Map(
        name="m", inputs=("s",), function=function(lambda _: {"w": [1]}), produces=Schema.parse("w INT")
    )
    with pytest.raises(NetworkError, match="4: one row for each tuple"):
        drive(node, [CARS], [[tuples(CARS, ROWS)]])


@settings(max_examples=12, deadline=None)
@given(st.floats(0, 1), st.integers(-(2**63), 2**63 - 1), arrivals(FEW, TEXT))
def test_drop_loses_the_same_tuples_as_row_by_row(rate, seed, rows):
    node = Drop(name="d", inputs=("s",), rate=rate, seed=seed)
    same(drive(node, [CARS], [[tuples(CARS, rows)]]), reference(node, [CARS], [[tuples(CARS, rows)]]))


def test_the_rate_of_a_drop_box_can_be_changed():
    logic = logic_for(Drop(name="d", inputs=("s",), rate=1.0), [CARS], CARS)
    table = pa.Table.from_pylist(tuples(CARS, [(t, t, "x") for t in range(1000)]))
    kept = []
    for rate in (1.0, 0.25, 0.0):
        logic.rate = rate
        kept.append(logic.process([table], (0,), final=False).out.num_rows)
    assert kept[0] == 0
    assert 700 < kept[1] < 800
    assert kept[2] == 1000


@pytest.mark.parametrize(
    "node", [Union(name="u", inputs=("s", "t")), GroupBy(name="g", inputs=("s", "t"), keys=("v",))]
)
def test_streams_are_put_together(node):
    found = drive(node, [CARS, CARS], [[tuples(CARS, ROWS), tuples(CARS, ROWS[:1])]])
    assert len(found.out) == 5
    same(found, reference(node, [CARS, CARS], [[tuples(CARS, ROWS), tuples(CARS, ROWS[:1])]]))


def test_what_an_engine_runs_itself_has_no_logic():
    with pytest.raises(NetworkError) as error:
        logic_for(ConnectionPoint(name="p", inputs=("s",)), [CARS], CARS)
    assert error.value.message() == (
        "box 'p': a connection_point has no logic on Arrow tables\n"
        f"  expected: one of: {', '.join(sorted(LOGICS))}\n"
        "  hint:     sources, connection points, views and outputs are run by the engine itself"
    )
