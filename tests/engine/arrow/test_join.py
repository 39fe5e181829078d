"""Join: pairs near in time, each once, as soon as both are there."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.boxes.join import JoinLogic
from penstock.engine.arrow.logic import logic_for
from penstock.model.boxes import Join
from penstock.model.checks.stream_types import output_type
from penstock.model.types import arrow_schema

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

CARS = stream("time TIMESTAMP, car INT, v INT, t STRING")
TOLLS = stream("time TIMESTAMP, car INT, v INT, t STRING")
WIDE = stream("time TIMESTAMP, id BIGINT, x DOUBLE, t STRING")


def box(on=(("car", "car"),), within=(2, 1), predicate=""):
    return Join(
        name="j",
        inputs=("s", "t"),
        on=on,
        within=(within[0] * SECOND, within[1] * SECOND),
        predicate=predicate,
    )


def test_both_ends_of_the_distance_are_included():
    left = tuples(CARS, [(10, 7, 0, "l")])
    right = tuples(TOLLS, [(t, 7, t, "r") for t in (8, 9, 10, 12, 13)])
    found = drive(box(), [CARS, TOLLS], [[left, right]])
    assert found.visible("time", "time_right", "v_right", "t_right") == [
        (10, 9, 9, "r"),
        (10, 10, 10, "r"),
        (10, 12, 12, "r"),
    ]
    assert [row["_ts"] // SECOND for row in found.out] == [9, 10, 10]


def test_null_equals_nothing_and_the_predicate_decides():
    left = tuples(CARS, [(1, None, 0, "l"), (1, 7, 5, "l")])
    right = tuples(TOLLS, [(1, None, 0, "r"), (1, 7, 6, "r"), (1, 7, None, "r"), (1, 7, 4, "r")])
    found = drive(box(predicate="v_right > v"), [CARS, TOLLS], [[left, right]])
    assert found.visible("v", "v_right") == [(5, 6)]


def test_a_predicate_that_fails_sends_the_pair_to_dead_letters():
    left, right = tuples(CARS, [(1, 7, 5, "l")]), tuples(TOLLS, [(1, 7, 0, "r"), (1, 7, 1, "r")])
    node = box(predicate="v / v_right > 1")
    found = drive(node, [CARS, TOLLS], [[left, right]])
    assert found.visible("v_right") == [(1,)]
    assert [row["box"] for row in found.dead] == ["j"]
    same(found, reference(node, [CARS, TOLLS], [[left, right]]))


def test_bytes_in_the_dead_letter_of_a_pair_are_base64_as_everywhere():
    left_type, right_type = stream("time TIMESTAMP, car INT, b BINARY"), TOLLS
    left, right = tuples(left_type, [(1, 7, b"\x00\xff")]), tuples(TOLLS, [(1, 7, 0, "r")])
    node = box(predicate="1 / v > 1")
    found, wanted = (run(node, [left_type, right_type], [[left, right]]) for run in (drive, reference))
    assert [json.loads(row["raw"])["b"] for row in found.dead] == ["AP8="]
    assert [row["raw"] for row in found.dead] == [row["raw"] for row in wanted.dead]


def test_expired_tuples_are_let_go():
    node, inputs = box(), [CARS, TOLLS]
    logic = logic_for(node, inputs, output_type(node, inputs))
    rows = [
        pa.Table.from_pylist(
            tuples(kind, [(t, 7, t, "x") for t in range(10)]), schema=arrow_schema(kind.schema)
        )
        for kind in inputs
    ]
    logic.process(rows, (9 * SECOND, 9 * SECOND), final=False)
    assert [row["v"] for row in logic.snapshot()["left/rows"].to_pylist()] == [7, 8, 9]
    assert [row["v"] for row in logic.snapshot()["right/rows"].to_pylist()] == [8, 9]
    logic.process([table.slice(0, 0) for table in rows], (9 * SECOND, 9 * SECOND), final=True)
    assert not {"left/rows", "right/rows"} & set(logic.snapshot())


SIDE = arrivals(KEY, FEW, TEXT, most=15)
BOXES = st.builds(
    box,
    st.sampled_from([(("car", "car"),), (("car", "car"), ("t", "t")), (("car", "v"),), ()]),
    st.sampled_from([(2, 1), (0, 0), (0, 5)]),
    st.sampled_from(["", "v > v_right"]),
)


@settings(max_examples=12, deadline=None)
@given(BOXES, SIDE, SIDE, CUTS, MOVES)
def test_any_cutting_gives_the_same(node, left, right, cuts, moves):
    made = [tuples(CARS, left), tuples(TOLLS, right)]
    found = drive(node, [CARS, TOLLS], cut(made, cuts), lateness=3 * SECOND, moves=moves)
    assert found == drive(node, [CARS, TOLLS], [made])
    same(found, reference(node, [CARS, TOLLS], [made]))


@pytest.mark.parametrize("on", [(("car", "id"),), (("car", "x"),)])
def test_numbers_of_different_types_are_compared(on):
    left, right = (
        tuples(CARS, [(1, 2, 0, "l"), (1, 3, 0, "l")]),
        tuples(WIDE, [(1, 2, 2.0, "r"), (1, 5, 3.5, "r"), (1, None, None, "r")]),
    )
    found = drive(box(on=on), [CARS, WIDE], [[left, right]])
    assert found.visible("car") == [(2,)]


def test_whole_numbers_and_fractions_are_compared_as_doubles():
    left = tuples(WIDE, [(1, 2**53 + 1, 0.5, "l"), (1, 2**53 + 2, 0.5, "l"), (1, None, 0.5, "l")])
    right = tuples(WIDE, [(1, 0, float(2**53), "r"), (1, 0, math.nan, "r")])
    node = box(on=(("id", "x"),))
    found, wanted = (run(node, [WIDE, WIDE], [[left, right]]) for run in (drive, reference))
    assert found.visible("id") == [(2**53 + 1,)]
    same(found, wanted)


def test_a_key_with_many_tuples_is_no_cross_product(monkeypatch):
    count = 50_000
    ts = np.arange(count) * SECOND
    node, inputs = box(within=(1, 1)), [CARS, TOLLS]
    table = pa.table(
        {
            "time": pa.array(ts).cast(pa.timestamp("us", tz="UTC")),
            "car": pa.array(np.zeros(count, np.int32)),
            "v": pa.array(np.zeros(count, np.int32)),
            "t": pa.nulls(count, pa.string()),
            "_ts": ts,
            "_seq": np.arange(count),
        }
    )
    logic = logic_for(node, inputs, output_type(node, inputs))
    assert isinstance(logic, JoinLogic)
    found, find = [], logic.pairing.find
    monkeypatch.setattr(logic.pairing, "find", lambda *sides: found.append(find(*sides)) or found[-1])
    assert logic.process([table, table], (0, 0), final=True).out.num_rows == 3 * count - 2
    # the cross product of this key would be 2.5 thousand million pairs
    assert sum(pairs.operations for pairs in found) == 3 * count - 2
