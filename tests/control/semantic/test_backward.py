"""How far up an interval of an output's values can be told."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.control.semantic.backward import backward, inverse
from penstock.control.semantic.bins import Side
from penstock.control.semantic.intervals import Interval


@given(
    st.integers(-5, 5).filter(bool),
    st.integers(-20, 20),
    st.integers(-50, 50),
    st.integers(1, 40),
    st.integers(-99, 99),
)
def test_the_inverse_of_a_linear_expression_selects_the_same(slope, shift, low, width, value):
    above = inverse(f"{slope} * v + {shift}", Interval("w", low, low + width))
    assert (above.low <= value < above.high) == (low <= slope * value + shift < low + width)


@pytest.mark.parametrize("text", ["v * v", "abs(v)", "v + u", "7", "v / 2", "not sql ("])
def test_what_is_not_linear_stops_it(text):
    assert inverse(text, Interval("w", 0, 1)) is None


def places(net, interval):
    return [(place.at, place.interval) for place in backward(net, "out", interval)]


def cars():
    net = ps.Network("n")
    return net.source("cars", ps.csv("in", "time TIMESTAMP, spd INT, seg INT"), timestamp="time")


def test_an_open_end_stays_open():
    assert inverse("-2 * v", Interval("w", -math.inf, 10)).high == math.inf
    assert inverse("2 * v", Interval("w", -math.inf, 10)) == Interval("v", -math.inf, 5)


def test_backward_through_filter_map_and_group_by():
    stream = (
        cars().filter("seg > 3", name="some").map(kmh="spd * 2", name="faster").group_by("seg", name="by")
    )
    stream.output("out", to=ps.memory())
    found = places(stream.network, Interval("kmh", 20, 40))
    assert [node for node, _ in found] == ["by", "faster", "some", "cars"]
    assert found[-1][1] == Interval("spd", 10.0, 20.0)


def test_a_function_stops_what_it_computes_and_nothing_else():
    stream = cars().apply(len, produces="score DOUBLE", name="score")
    stream.output("out", to=ps.memory())
    assert places(stream.network, Interval("spd", 0, 10))[-1] == ("cars", Interval("spd", 0, 10))
    assert places(stream.network, Interval("score", 0, 10))[-1][0] == "score"


def test_behind_a_split_it_ends_on_the_arrow():
    source = cars()
    source.filter("seg > 3", name="some").output("out", to=ps.memory())
    source.output("all", to=ps.memory())
    assert [at for at, _ in places(source.network, Interval("spd", 0, 10))] == ["some", "cars->some"]


def test_to_the_side_of_a_join_that_owns_the_column():
    left = cars()
    right = left.network.source("tolls", ps.csv("in2", "time TIMESTAMP, seg INT, toll INT"), timestamp="time")
    left.join(right, on="seg", within="10 seconds", name="both").output("out", to=ps.memory())
    assert [at for at, _ in places(left.network, Interval("toll", 0, 10))] == ["both", "tolls"]
    assert [at for at, _ in places(left.network, Interval("spd", 0, 10))] == ["both", "cars"]


def window(**aggregates):
    stream = cars().group_by("seg", name="by").tumble("10 seconds", name="tens", **aggregates)
    stream.output("out", to=ps.memory())
    return stream.network


def test_a_window_passes_its_keys_as_a_whole():
    last = backward(window(top="max(spd)"), "out", Interval("seg", 20, 50))[-1]
    assert (last.at, last.interval, last.whole, last.side) == (
        "cars",
        Interval("seg", 20, 50),
        True,
        Side.ANY,
    )


@pytest.mark.parametrize(("text", "side"), [("max(spd)", Side.BELOW), ("min(spd)", Side.ABOVE)])
def test_a_window_passes_a_lone_maximum_from_one_side(text, side):
    last = backward(window(top=text), "out", Interval("top", 20, 50))[-1]
    assert (last.at, last.interval, last.side) == ("cars", Interval("spd", 20, 50), side)
    assert backward(window(top=text, n="count(*)"), "out", Interval("top", 20, 50))[-1].at == "tens"


def test_a_falling_map_turns_the_side_round():
    stream = cars().map(slow="-1 * spd", name="turned").group_by("seg").tumble("10 seconds", top="max(slow)")
    stream.output("out", to=ps.memory())
    assert backward(stream.network, "out", Interval("top", -20, -10))[-1].side is Side.ABOVE
