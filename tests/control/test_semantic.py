"""Which values to drop, and how far up that can be decided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.control.semantic import Interval, backward, intervals_to_drop, inverse, utility_lost

QOS = ps.QoS(delay=[(0, 1), (2, 1), (12, 0)], value=[(0, 0), (100, 1)], column="spd")


def test_least_utility_goes_first():
    histogram = {float(v): 1 for v in range(0, 100, 10)}
    (interval,) = intervals_to_drop(QOS, histogram, 0.3)
    assert interval == Interval("spd", 0.0, 30.0)
    assert utility_lost(QOS, histogram, [interval]) < 0.1


def test_a_graph_with_a_hole_gives_several_intervals():
    hole = ps.QoS(delay=[(0, 1), (2, 1), (12, 0)], value=[(0, 0), (50, 1), (100, 0)], column="spd")
    histogram = {float(v): 1 for v in range(0, 101, 10)}
    intervals = intervals_to_drop(hole, histogram, 4 / 11)
    assert [(i.low, i.high) for i in intervals] == [(0, 20), (90, math.nextafter(100, math.inf))]


def test_zipf_values_lose_less_than_half_of_what_random_drops_lose():
    random = np.random.default_rng(5)
    values, counts = np.unique(np.minimum(random.zipf(1.2, 20_000), 100), return_counts=True)
    histogram = dict(zip(map(float, values), map(int, counts), strict=True))
    dropped = intervals_to_drop(QOS, histogram, 0.3)
    share = sum(n for v, n in histogram.items() if any(i.low <= v < i.high for i in dropped)) / 20_000
    assert utility_lost(QOS, histogram, dropped) <= 0.5 * share


@given(
    st.dictionaries(st.integers(0, 100).map(float), st.integers(1, 50), min_size=1, max_size=20),
    st.floats(0, 1),
)
def test_exactly_the_chosen_share_is_dropped_or_a_little_more(histogram, share):
    dropped = intervals_to_drop(QOS, histogram, share)
    inside = [v for v in histogram if any(i.low <= v < i.high for i in dropped)]
    total = sum(histogram.values())
    assert sum(histogram[v] for v in inside) >= share * total - 1e-6
    kept = [v for v in histogram if v not in inside]
    assert all(QOS.at_value(a) <= QOS.at_value(b) + 1e-9 for a in inside for b in kept)


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
    return [(place.node, place.interval) for place in backward(net, "out", interval)]


def cars():
    net = ps.Network("n")
    return net.source("cars", ps.csv("in", "time TIMESTAMP, spd INT, seg INT"), timestamp="time")


def test_backward_through_filter_map_and_group_by():
    stream = (
        cars().filter("seg > 3", name="some").map(kmh="spd * 2", name="faster").group_by("seg", name="by")
    )
    stream.output("out", to=ps.memory())
    found = places(stream.network, Interval("kmh", 20, 40))
    assert [node for node, _ in found] == ["out", "by", "faster", "some", "cars"]
    assert found[-1][1] == Interval("spd", 10.0, 20.0)


def test_nothing_that_others_read_is_dropped():
    source = cars()
    source.filter("seg > 3", name="some").output("out", to=ps.memory())
    source.output("all", to=ps.memory())
    assert [node for node, _ in places(source.network, Interval("spd", 0, 10))] == ["out", "some"]


def test_a_window_passes_its_keys_and_a_lone_maximum():
    def window(**aggregates):
        stream = cars().group_by("seg", name="by").tumble("10 seconds", name="tens", **aggregates)
        stream.output("out", to=ps.memory())
        return stream.network

    net = window(top="max(spd)")
    assert places(net, Interval("top", -math.inf, 50))[-1] == ("cars", Interval("spd", -math.inf, 50))
    assert places(net, Interval("top", 20, 50))[-1][0] == "tens"
    assert places(net, Interval("seg", 20, 50))[-1] == ("cars", Interval("seg", 20, 50))
    assert places(window(top="max(spd)", n="count(*)"), Interval("top", -math.inf, 50))[-1][0] == "tens"
    low = places(window(least="min(spd)"), Interval("least", 70, math.inf))[-1]
    assert low == ("cars", Interval("spd", 70, math.inf))
