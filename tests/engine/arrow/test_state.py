"""State primitives: a delta brings version b - 1 to version b, whatever happened in between."""

import sys

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.state import Buffer, Interner, KeyedTable, Numbers, Parts

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.string()), ("v", pa.float64())])


def rows(*made):
    return pa.Table.from_pylist([dict(zip(("k", "t", "v"), row, strict=True)) for row in made], schema=SCHEMA)


def content(state):
    return {name: sorted(map(repr, table.to_pylist())) for name, table in state.snapshot().items()}


def test_lookup_finds_rows_by_several_columns_and_null_is_a_key():
    table = KeyedTable(SCHEMA, ("k", "t"))
    table.upsert(rows((1, "a", 0.5), (1, None, 1.5), (None, "a", 2.5)))
    at = table.lookup(rows((None, "a", 0), (1, "b", 0), (1, None, 0), (2, "a", 0)))
    assert [None if i < 0 else table.take(np.array([i])).to_pylist()[0]["v"] for i in at] == [
        2.5,
        None,
        1.5,
        None,
    ]


def test_the_last_row_of_a_key_wins_and_null_overwrites():
    table = KeyedTable(SCHEMA, ("k",))
    table.upsert(rows((1, "a", 0.5), (2, "b", 1.0), (1, "c", None)))
    table.upsert(rows((2, None, 9.0)))
    assert (
        sorted(table.table().to_pylist(), key=lambda row: row["k"])
        == rows((1, "c", None), (2, None, 9.0)).to_pylist()
    )


def test_without_keys_there_is_one_row():
    table, twin = KeyedTable(SCHEMA, ()), KeyedTable(SCHEMA, ())
    table.upsert(rows((1, "a", 0.5)))
    table.upsert(rows((2, "b", 1.0)))
    twin.apply(table.delta())
    assert twin.table().to_pylist() == rows((2, "b", 1.0)).to_pylist()
    table.delete_rows(table.rows())
    twin.apply(table.delta())
    assert (len(table), len(twin)) == (0, 0)


def test_a_delta_has_only_what_changed():
    table = KeyedTable(SCHEMA, ("k",))
    table.upsert(rows((1, "a", 0.5), (2, "b", 1.0), (3, "c", 2.0)))
    table.delta()
    table.upsert(rows((2, "B", 1.0), (4, "d", 3.0)))
    table.delete(rows((3, "", 0.0), (4, "", 0.0), (7, "", 0.0)))
    delta = table.delta()
    assert delta["upserted"].to_pylist() == rows((2, "B", 1.0)).to_pylist()
    assert sorted(delta["deleted"].column("k").to_pylist()) == [3, 4]
    assert table.delta() == {}


def test_deleted_rows_are_freed():
    table = KeyedTable(SCHEMA, ("k",))
    for start in range(0, 50_000, 5_000):
        table.upsert(rows(*((k, "x", 0.0) for k in range(start, start + 5_000))))
        table.delete(rows(*((k, "x", 0.0) for k in range(start, start + 4_990))))
        table.delta()
    assert len(table) == 100
    assert table._size <= 15_000


def test_floats_as_keys_follow_group_by():
    table = KeyedTable(SCHEMA, ("v",))
    table.upsert(rows((1, "", 0.0), (2, "", float("nan"))))
    assert (table.lookup(rows((0, "", -0.0), (0, "", float("nan")))) >= 0).all()


def test_interner_numbers_stay_when_values_are_added():
    interner = Interner()
    rng = np.random.default_rng(3)
    known = {}
    for _ in range(50):
        values = rng.integers(0, 500, 40)
        valid = rng.random(40) > 0.05
        for value, ok, code in zip(values, valid, interner.codes(values, valid, add=True), strict=True):
            assert known.setdefault(int(value) if ok else None, code) == code
    assert sorted(known.values()) == list(range(interner.size))


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.lists(
                st.tuples(
                    st.one_of(st.none(), st.integers(0, 5)),
                    st.sampled_from(["a", "b", None]),
                    st.one_of(st.none(), st.integers(0, 9)),
                ),
                min_size=1,
                max_size=6,
            ),
        ),
        st.tuples(
            st.just("delete"),
            st.lists(
                st.tuples(
                    st.one_of(st.none(), st.integers(0, 5)), st.sampled_from(["a", "b", None]), st.just(0)
                ),
                max_size=6,
            ),
        ),
        st.tuples(st.just("version"), st.sampled_from(["delta", "snapshot"])),
    ),
    max_size=12,
)


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_keyed_table_is_a_dict_whose_deltas_add_up(steps):
    table, twin, expected = KeyedTable(SCHEMA, ("k", "t")), KeyedTable(SCHEMA, ("k", "t")), {}
    for what, how in steps:
        if what == "put":
            table.upsert(rows(*how))
            expected |= {(k, t): v for k, t, v in how}
        elif what == "delete":
            table.delete(rows(*how))
            for k, t, _ in how:
                expected.pop((k, t), None)
        elif how == "delta":
            twin.apply(table.delta())
            assert content(twin) == content(table)
        else:
            table.restore(table.snapshot())
            twin.restore(table.snapshot())
    assert {(row["k"], row["t"]): row["v"] for row in table.table().to_pylist()} == expected


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.lists(st.booleans(), max_size=12), st.booleans()), max_size=8)
)
def test_buffer_deltas_give_the_same_rows_in_the_same_order(steps):
    buffer, twin, number = Buffer(SCHEMA), Buffer(SCHEMA), 0
    for count, gone, versioned in steps:
        buffer.append(rows(*((number + i, "x", 0.0) for i in range(count))))
        number += count
        mask = np.zeros(len(buffer), bool)
        mask[: len(gone)] = gone[: len(buffer)]
        buffer.drop(mask)
        if versioned:
            twin.apply(buffer.delta())
            assert twin.rows.to_pylist() == buffer.rows.to_pylist()


def test_a_dropped_prefix_is_one_range_in_the_delta():
    buffer = Buffer(pa.schema([("_ts", pa.int64())]))
    buffer.append(pa.table({"_ts": np.arange(1000)}))
    buffer.delta()
    buffer.drop(np.arange(1000) < 900)
    assert buffer.delta()["dropped"].to_pylist() == [{"start": 0, "stop": 900}]


def test_parts_keep_their_tables_apart():
    one, other = Parts(a=Numbers(1), b=Numbers(2, 3)), Parts(a=Numbers(0), b=Numbers(0, 0))
    one.parts["b"].values = (4, 5)
    assert list(one.delta()) == ["b/numbers"]
    other.restore(one.snapshot())
    assert other.parts["a"].values + other.parts["b"].values == (1, 4, 5)


def lines_run(call, *arguments):
    """How many lines of Python a call runs: loops over rows show, the work of numpy and Arrow does not."""
    lines, before = 0, sys.gettrace()

    def trace(_frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        call(*arguments)
    finally:
        sys.settrace(before)
    return lines


def test_a_hundred_thousand_keys_take_no_more_python_than_a_hundred():
    run = {}
    for count in (100, 100_000):
        keys = np.random.default_rng(1).permutation(count)
        many = pa.table({"k": keys, "v": keys.astype(float)})
        table = KeyedTable(many.schema, ("k",))
        table.upsert(many)
        run[count] = lines_run(table.lookup, many) + lines_run(table.upsert, many)
    assert run[100_000] < run[100] + 100
