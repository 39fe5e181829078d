"""Valves on Arrow tables choose what the reference engine chooses, tuple by tuple."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.arrow.valves import choosing, kept, key_hashes, passed, windows_kept
from penstock.engine.contract.valve import Step, Valve
from penstock.engine.local.key_hash import key_hash
from penstock.engine.local.valves import Valve as LocalValve
from penstock.model.types import SEQ, STAMP, Schema, arrow_schema

SCHEMA = Schema.parse("k STRING, v INT, x DOUBLE")
SECOND = 1_000_000


def table(rows):
    return pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA))


def as_reference(valve, rows):
    one = LocalValve(valve.plain(), SCHEMA)
    return [one.lets_in(row[SEQ], row) for row in rows]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from([None, "", "a", "b", "\u00e4\u4e16"]),
            "v": st.none() | st.integers(-5, 5),
            "x": st.none() | st.floats(),
            STAMP: st.none() | st.integers(-100 * SECOND, 100 * SECOND),
            SEQ: st.integers(0, 1 << 44),
        }
    ),
    max_size=30,
)
SHARES = st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.9])
STEPS = st.lists(
    st.builds(Step, SHARES, st.integers(-50 * SECOND, 50 * SECOND), st.integers(-50 * SECOND, 50 * SECOND)),
    max_size=3,
).map(tuple)
WINDOWS = [(10, 10), (20, 10), (15, 10), (60, 1)]
VALVES = st.one_of(
    st.builds(
        Valve, st.just("s"), SHARES, st.sampled_from(["slices", "blocks", "tuples"]), st.integers(0, 9)
    ),
    st.builds(
        lambda share, keys: Valve("s", share, "keys", keys=tuple(keys)),
        SHARES,
        st.lists(st.sampled_from(["k", "v", "x"]), unique=True),
    ),
    st.builds(
        lambda share, window, steps: Valve(
            "s", share, "windows", size=window[0] * SECOND, every=window[1] * SECOND, steps=steps
        ),
        SHARES,
        st.sampled_from(WINDOWS),
        STEPS,
    ),
    st.sampled_from(["v > 2", "10 / v > 3", "k = 'a' OR v < 0"]).map(
        lambda text: Valve("s", grain="values", predicate=text)
    ),
    st.builds(
        lambda text, part: Valve("s", grain="values", predicate="v > 5", partly=text, part=part, lot=3),
        st.sampled_from(["v > 2", "10 / v > 3", "k = 'a'"]),
        SHARES,
    ),
)


@given(ROWS, VALVES)
def test_the_same_tuples_as_the_reference(rows, valve):
    assert kept([valve], table(rows), SCHEMA).tolist() == as_reference(valve, rows)


@given(ROWS, VALVES)
def test_a_larger_share_keeps_all_that_a_smaller_one_keeps(rows, valve):
    more = Valve(**{**valve.plain(), "share": 0.95, "steps": ()})
    less = Valve(**{**valve.plain(), "steps": ()})
    assert not (kept([less], table(rows), SCHEMA) & ~kept([more], table(rows), SCHEMA)).any()


def test_the_share_is_about_what_is_kept():
    rows = pa.table({SEQ: np.arange(100_000)})
    for grain, places in (("tuples", 1), ("blocks", 1024)):
        spread = pa.table({SEQ: np.arange(100_000) * places})
        left, shed = passed([Valve("s", 0.3, grain, lot=5)], spread, Schema())
        assert left.num_rows + shed == rows.num_rows
        assert abs(left.num_rows - 30_000) < 1_000


def test_lots_choose_independently():
    rows = pa.table({SEQ: np.arange(100_000)})
    both = kept([Valve("s", 0.5, lot=1), Valve("s", 0.5, lot=2)], rows, Schema())
    assert abs(both.sum() - 25_000) < 1_000


def test_a_window_chosen_stays_chosen_and_a_later_one_is_not():
    windows = np.arange(1000)
    low = Valve("s", 0.3, "windows", lot=3, size=10, every=10)
    then = Valve("s", 1.0, "windows", 3, size=10, every=10, steps=(Step(0.3, 0, 4999), Step(1.0, 4500)))
    kept_low, kept_then = windows_kept(low, windows), windows_kept(then, windows)
    assert (kept_then[:500] == kept_low[:500]).all()
    assert kept_then[500:].all()


KEYS = [
    ("a", "b", None),
    (1, None, -(2**62)),
    (0.0, -0.0, float("nan")),
    (True, False, None),
    (dt.date(2020, 1, 1), dt.date(1960, 1, 1), None),
    (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC), None),
    (b"\x00", b"", b"abc"),
]


@pytest.mark.parametrize("values", KEYS, ids=lambda values: type(values[0]).__name__)
def test_keys_of_any_type_hash_alike(values):
    typed = pa.array(values)
    if pa.types.is_timestamp(typed.type):
        typed = typed.cast(pa.timestamp("us", tz="UTC"))
    ours = key_hashes(7, [pa.chunked_array([typed]), pa.chunked_array([pa.array([1, 2, 3])])])
    assert ours.tolist() == [key_hash(7, [value, i]) for i, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("at", "boxes"),
    [
        ("cars->below", {"a_minute"}),
        ("cars->renamed_since", {"a_minute", "another"}),
        ("gone->gone_too", {"a_minute", "another"}),
    ],
)
def test_windows_of_a_valve_whose_arrow_is_gone_are_not_told(at, boxes):
    """They lack tuples, whatever the box behind the valve is called now."""
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, v INT"), timestamp="time")
    for name, stream in {"a_minute": cars.filter("v < 9", name="below"), "another": cars}.items():
        stream.tumble("1 minute", n="count(*)", name=name).output(f"{name}_out", to=ps.memory())
    cars.tumble("2 minutes", n="count(*)", name="longer").output("out", to=ps.memory())
    minute = 60 * SECOND
    valve = Valve(at, 1.0, "windows", 1, size=minute, every=minute, steps=(Step(0.5, 0),))
    assert choosing(net, [valve]).keys() == boxes
