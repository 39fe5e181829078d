"""The utility of an output: starved is bad, nothing due is skipped, loss and delay multiply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.control.utility import delay_at, in_good_zone, mean_utility, utility
from penstock.store.catalog.record_types import OutputSecond

QOS = ps.QoS(delay=[(0, 1), (2, 1), (12, 0)], loss=[(0, 0), (50, 0.9), (100, 1)])
STRICT = ps.QoS(delay=[(0, 1), (2, 1), (12, 0)])


def test_an_output_that_starves_is_bad_although_nothing_was_measured():
    assert utility(QOS, OutputSecond("out", 0, age=1.0)) == 1
    assert utility(QOS, OutputSecond("out", 0, age=12.0)) == 0
    assert in_good_zone(QOS, OutputSecond("out", 0, age=3.0)) is False


def test_what_waits_counts_against_what_was_delivered():
    assert utility(QOS, OutputSecond("out", 0, ((0.1, 1000),), age=7.0)) == 0.5
    assert in_good_zone(QOS, OutputSecond("out", 0, ((0.1, 1000),), age=7.0)) is False
    assert in_good_zone(QOS, OutputSecond("out", 0, ((0.1, 1000),), age=1.0)) is True


def test_seconds_with_nothing_due_are_skipped():
    idle, good, bad = (
        OutputSecond("out", 0),
        OutputSecond("out", 1, ((1.0, 5),)),
        OutputSecond("out", 2, ((7.0, 5),)),
    )
    assert utility(QOS, idle) is None
    assert in_good_zone(QOS, idle) is None
    assert mean_utility(QOS, [idle, good, idle, bad]) == 0.75
    assert mean_utility(QOS, [idle]) is None


def test_loss_and_delay_multiply():
    assert utility(QOS, OutputSecond("out", 0, ((7.0, 10),), share=0.5)) == pytest.approx(0.45)


def test_without_a_loss_graph_a_dropped_tuple_costs_everything():
    assert utility(STRICT, OutputSecond("out", 0, ((1.0, 10),), share=0.99)) == 0


@given(
    st.lists(st.tuples(st.floats(0, 60), st.integers(0, 100)), max_size=8),
    st.none() | st.floats(0, 60),
    st.floats(0, 1),
)
def test_utility_is_normalised_and_falls_with_age_and_loss(delays, age, share):
    second = OutputSecond("out", 0, tuple(delays), age, share)
    value = utility(QOS, second)
    if value is None:
        assert not second.due
        return
    assert 0 <= value <= 1
    older = utility(QOS, OutputSecond("out", 0, tuple(delays), (age or 0.0) + 1, share))
    assert older <= value + 1e-9
    assert utility(QOS, OutputSecond("out", 0, tuple(delays), age, share / 2)) <= value + 1e-9


def test_percentiles_count_tuples_not_trains():
    seconds = [OutputSecond("out", 0, ((1.0, 98),)), OutputSecond("out", 1, ((9.0, 2),))]
    assert delay_at(seconds, 0.5) == 1.0
    assert delay_at(seconds, 0.99) == 9.0


def test_what_waits_makes_percentiles_longer():
    trickle = [OutputSecond("out", 0, ((0.1, 1000),), age=30.0)]
    assert delay_at(trickle, 0.5) == 30.0
    starved = [OutputSecond("out", 0, ((0.1, 1000),)), OutputSecond("out", 1, age=5.0)]
    assert delay_at(starved, 0.99) == 5.0
    assert delay_at([OutputSecond("out", 0, share=0.0)], 0.5) is None


def test_what_waits_between_two_answers_does_not_make_them_look_faster():
    waiting = [OutputSecond("out", second, age=0.3) for second in range(9)]
    assert delay_at([*waiting, OutputSecond("out", 9, ((2.0, 5),))], 0.5) == 2.0


def test_utility_weighs_seconds_and_percentiles_weigh_tuples():
    """As docs/qos.md says: ten good seconds of few tuples, and one in which a backlog came out."""
    qos = ps.QoS(delay=[(0, 1), (3, 1), (8, 0)])
    good = [OutputSecond("out", at, ((0.5, 10),)) for at in range(10)]
    minute = [*good, OutputSecond("out", 10, ((29.15, 1000),))]
    assert mean_utility(qos, minute) == pytest.approx(10 / 11)
    assert delay_at(minute, 0.5) == 29.15
