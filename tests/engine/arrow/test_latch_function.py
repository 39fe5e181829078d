"""Latch with a function: state per key, tuples in canonical order, several inputs."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.boxes import Latch
from penstock.model.durations import Count, Time
from penstock.model.errors import NetworkError
from penstock.model.types import Schema
from penstock.model.user_functions import Function

from .driving import CUTS, KEY, MOVES, arrivals, cut, drive, reference, same, stream, tuples

CARS = stream("time TIMESTAMP, car INT, v BIGINT", "car")
ALL = stream("time TIMESTAMP, car INT, v BIGINT")


def running(batch, state):
    """The sum of v per car so far, and the v before: depends on the order."""
    known = {row["car"]: row for row in state.to_pylist()}
    out, changed = [], {}
    for row in batch.to_pylist():
        before = (
            changed.get(row["car"]) or known.get(row["car"]) or {"car": row["car"], "total": 0, "last": None}
        )
        changed[row["car"]] = {
            "car": row["car"],
            "total": before["total"] + row["v"] + row.get("input", 0) * 100,
            "last": row["v"],
        }
        out.append({"car": row["car"], "total": changed[row["car"]]["total"], "before": before["last"]})
    made = pa.schema([("car", pa.int32()), ("total", pa.int64()), ("before", pa.int64())])
    kept = pa.schema([("car", pa.int32()), ("total", pa.int64()), ("last", pa.int64())])
    return pa.Table.from_pylist(out, schema=made), pa.Table.from_pylist(list(changed.values()), schema=kept)


def latch(
    function=running,
    state="total BIGINT, last BIGINT",
    produces="car INT, total BIGINT, before BIGINT",
    inputs=("s",),
):
    return Latch(
        name="sums",
        inputs=inputs,
        function=Function(function, "tests:function"),
        state=Schema.parse(state),
        produces=Schema.parse(produces),
    )


def test_state_is_kept_by_key():
    rows = tuples(CARS, [(1, 7, 10), (2, 8, 5), (3, 7, 1), (4, None, 3), (5, None, 4)])
    given_ = drive(latch(), [CARS], cut([rows], [50]), moves=["delta"])
    assert given_.visible("car", "total", "before") == [
        (7, 10, None),
        (8, 5, None),
        (7, 11, 10),
        (None, 3, None),
        (None, 7, 3),
    ]


def test_without_keys_there_is_one_state():
    def count(batch, state):
        seen = state.column("seen").to_pylist()[0] if state.num_rows else 0
        return {"n": [seen + i + 1 for i in range(batch.num_rows)]}, {"seen": [seen + batch.num_rows]}

    rows = tuples(ALL, [(t, t, 0) for t in range(6)])
    found = drive(latch(count, "seen BIGINT", "n BIGINT"), [ALL], cut([rows], [30, 50]), moves=["delta"])
    assert found.visible("n") == [(n,) for n in range(1, 7)]


def test_a_function_may_make_its_own_timestamps():
    def hourly(batch, state):
        del state
        late = [
            value.replace(minute=59) if i else None
            for i, value in enumerate(batch.column("time").to_pylist())
        ]
        return {"time": pa.array(late, pa.timestamp("us", tz="UTC")), "v": batch.column("v")}, {
            "car": [],
            "x": [],
        }

    rows = tuples(CARS, [(1, 7, 10), (2, 8, 5)])
    found = drive(latch(hourly, "x INT", "time TIMESTAMP, v BIGINT"), [CARS], [[rows]])
    assert [(row["_ts"], row["_seq"], row["v"]) for row in found.out] == [((59 * 60 + 2) * 1_000_000, 0, 5)]
    assert [(row["reason"], row["box"]) for row in found.dead] == [("timestamp is null", "sums")]


@pytest.mark.parametrize(
    ("answer", "found", "expected"),
    [
        (lambda b, s: b, "Table", "a pair: (batch, changed state rows)"),
        (lambda b, s: ({"car": [1]}, s), "columns car", "columns car, total, before"),
        (lambda b, s: ({"car": [1], "total": [1], "before": [1]}, s), "1 rows", "2: one row for each tuple"),
        (
            lambda b, s: ({"car": ["x", "y"], "total": [1, 2], "before": [1, 2]}, s),
            "columns that do not fit",
            "car INT, total BIGINT, before BIGINT",
        ),
        (lambda b, s: (7, s), "int", "a table, a record batch or a dict of columns"),
    ],
)
def test_a_wrong_answer_is_refused(answer, found, expected):
    rows = tuples(CARS, [(1, 7, 10), (2, 8, 5)])
    with pytest.raises(NetworkError) as error:
        drive(latch(answer), [CARS], [[rows]])
    assert error.value.problem == "its function gave something else than declared"
    assert error.value.box == "sums"
    assert error.value.found.startswith(found)
    assert error.value.expected == expected


def test_a_failing_function_names_its_box():
    def broken(batch, state):
        raise ValueError("no fuel")

    with pytest.raises(NetworkError, match=r"box 'sums': function tests:function failed: no fuel"):
        drive(latch(broken), [CARS], [[tuples(CARS, [(1, 7, 10)])]])


@settings(max_examples=12, deadline=None)
@given(arrivals(KEY, st.integers(-5, 5)), CUTS, MOVES)
def test_any_cutting_gives_the_same(rows, cuts, moves):
    made = [tuples(CARS, rows)]
    found = drive(latch(), [CARS], cut(made, cuts), lateness=3_000_000, moves=moves)
    assert found == drive(latch(), [CARS], [made])
    same(found, reference(latch(), [CARS], [made]))


@settings(max_examples=12, deadline=None)
@given(arrivals(KEY, st.integers(-5, 5)), arrivals(KEY, st.integers(-5, 5)), CUTS, MOVES)
def test_several_inputs_are_merged_by_time(left, right, cuts, moves):
    made, node = [tuples(CARS, left), tuples(CARS, right)], latch(inputs=("s", "t"))
    found = drive(node, [CARS, CARS], cut(made, cuts), lateness=3_000_000, moves=moves)
    assert found == drive(node, [CARS, CARS], [made])
    same(found, reference(node, [CARS, CARS], [made]))


def test_inputs_may_have_different_columns():
    def see(batch, state):
        del state
        return {"v": batch.column("v"), "w": batch.column("w"), "by": batch.column("input")}, {
            "car": [],
            "x": [],
        }

    other = stream("time TIMESTAMP, car INT, w INT", "car")
    node = latch(see, "x INT", "v BIGINT, w INT, by INT", inputs=("s", "t"))
    found = drive(node, [CARS, other], [[tuples(CARS, [(1, 7, 10)]), tuples(other, [(2, 7, 3)])]])
    assert found.visible("v", "w", "by") == [(10, None, 0), (None, 3, 1)]


def seen(batch, state):
    """Each tuple's a, and that of the tuple before it."""
    del state
    a = batch.column("a").to_pylist()
    return {"a": a, "before": [None, *a[:-1]]}, {"x": []}


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ({"size": Time(10_000_000), "aggregates": (("a", "last(a)"),)}, [(2,)]),
        ({"size": Count(3), "aggregates": (("a", "last(a)"),), "stamp": "latest"}, [(2,)]),
        ({"function": Function(seen, "tests:seen"), "state": Schema.parse("x INT"),
            "produces": Schema.parse("a BIGINT, before BIGINT")}, [(0, None), (1, 0), (2, 1)]),
    ],
)  # fmt: skip
def test_ties_of_a_later_input_go_by_the_columns_of_the_merged_stream(box, expected):
    """In a union of two sources, two tuples may have one time and one place of arrival."""
    x = stream("time TIMESTAMP, a BIGINT, b BIGINT")
    u = stream("time TIMESTAMP, b BIGINT, a BIGINT", arrival_order=False)
    twins = [{**row, "_seq": 0} for row in tuples(u, [(1, 2, 1), (1, 1, 2)])]
    node, made = Latch(name="l", inputs=("x", "u"), **box), [tuples(x, [(0, 0, 0)]), twins]
    found = drive(node, [x, u], [made])
    same(found, reference(node, [x, u], [made]))
    names = [name for name in ("a", "before") if name in found.out[0]]
    assert found.visible(*names) == expected
