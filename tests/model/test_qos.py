"""QoS graphs: look-ups, slopes, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.model.errors import PenstockError

DELAY = [(0, 1), (2, 1), (12, 0)]


def test_the_loss_graph_ends_at_nothing():
    qos = ps.QoS(delay=DELAY, loss=[(50, 0.9), (100, 1)])
    assert qos.at_share(0.25) == 0.45
    assert qos.at_share(0) == 0


def test_a_loss_graph_may_say_what_nothing_is_worth():
    """As docs/qos.md has it: who loses everything keeps half of the utility."""
    qos = ps.QoS(delay=DELAY, loss=[(0, 0.5), (100, 1)])
    assert [qos.at_share(share) for share in (0, 0.5, 1)] == [0.5, 0.75, 1]
    assert [qos.loss_slope(share) for share in (1, 0.1)] == [pytest.approx(0.5)] * 2
    straight = ps.QoS(delay=DELAY, loss=[(50, 0.5), (100, 1)])
    assert [straight.at_share(share) for share in (0, 0.25, 1)] == [0, 0.25, 1]


def test_a_loss_graph_that_would_make_the_last_half_free_is_refused():
    with pytest.raises(PenstockError, match="not concave"):
        ps.QoS(delay=DELAY, loss=[(50, 0), (100, 1)])


def test_without_a_loss_graph_nothing_may_be_shed():
    qos = ps.QoS(delay=DELAY)
    assert not qos.may_be_shed
    assert (qos.at_share(1), qos.at_share(0.999), qos.loss_slope(1)) == (1, 0, math.inf)


def test_slopes_are_those_of_the_next_step():
    qos = ps.QoS(delay=DELAY, loss=[(0, 0), (50, 0.9), (100, 1)])
    assert [round(qos.loss_slope(share), 6) for share in (1, 0.75, 0.5, 0.25, 0)] == [0.2, 0.2, 1.8, 1.8, 1.8]
    assert [qos.delay_slope(at) for at in (0, 1.9, 2, 11, 12, 99)] == [0, 0, 0.1, 0.1, 0, 0]


@pytest.mark.parametrize(
    ("delay", "from_"),
    [
        ([(0, 1), (2, 1), (12, 0)], None),
        ([(0, 1), (2, 1), (4, 0.9), (12, 0)], None),
        ([(0, 1), (2, 1), (4, 0.2), (60, 0)], 4.0),
        ([(0, 1), (2, 1), (4, 0.2)], 4.0),
        ([(0, 1), (2, 1)], None),
    ],
)
def test_a_delay_graph_that_flattens_says_from_where(delay, from_):
    assert ps.QoS(delay=delay).given_up_from == from_


def test_values_between_points_and_beyond():
    qos = ps.QoS(delay=DELAY, value=[(10, 0.2), (20, 1), (30, 0)], column="speed")
    assert [round(qos.at_value(v), 9) for v in (0, 10, 15, 20, 25, 99)] == [0.2, 0.2, 0.6, 1, 0.5, 0]
    assert ps.QoS(delay=DELAY).at_value(5) == 1


@given(st.floats(0, 1), st.floats(0, 1))
def test_utility_never_falls_as_more_is_delivered(one, other):
    qos = ps.QoS(delay=DELAY, loss=[(0, 0), (30, 0.6), (50, 0.9), (100, 1)])
    less, more = sorted((one, other))
    assert qos.at_share(less) <= qos.at_share(more) + 1e-12


@pytest.mark.parametrize(
    ("column", "said"), [("nope", "unknown column 'nope'"), ("plate", "is not a number")]
)
def test_a_value_graph_set_later_is_checked_as_one_written_at_once(column, said):
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT, plate STRING"), timestamp="time")
    first = ps.QoS(delay=DELAY)
    net.output("jams", cars, to=ps.console(), qos=first)
    with pytest.raises(ps.NetworkError, match=rf"box 'jams': QoS value graph: .*{said}") as refused:
        net.set_qos("jams", ps.QoS(delay=DELAY, value=[(0, 0), (1, 1)], column=column))
    assert refused.value.where.file == __file__
    assert net.nodes["jams"].qos is first
    better = ps.QoS(delay=DELAY, value=[(0, 0), (1, 1)], column="spd")
    net.set_qos("jams", better)
    assert net.nodes["jams"].qos is better
