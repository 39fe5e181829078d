"""The policy that decides when a train leaves and how long it is."""

from __future__ import annotations

import pytest

from penstock.engine.contract.policy import DEFAULT_LENGTH, AsSoonAsPossible
from penstock.engine.contract.situation import InputSituation, Situation


@pytest.mark.parametrize(
    ("interval", "departed", "answer"),
    [(0.0, None, 7), (0.0, 10.0, 7), (1.0, None, 7), (1.0, 9.5, None), (1.0, 9.0, 7), (1.0, 3.0, 7)],
)
def test_a_train_leaves_when_its_time_has_come(interval, departed, answer):
    assert AsSoonAsPossible(7, interval).next_train(Situation("s", 1, 10.0, departed)) == answer


@pytest.mark.parametrize(("waiting", "at_once", "answer"), [(7, True, 7), (7, False, None), (6, True, None)])
def test_a_backlog_need_not_wait_for_the_interval(waiting, at_once, answer):
    policy = AsSoonAsPossible(7, 1.0, full_at_once=at_once)
    inputs = {"cars": InputSituation(waiting_tuples=waiting)}
    assert policy.next_train(Situation("s", 1, 10.0, 9.5, inputs=inputs)) == answer


def test_the_default_is_capped():
    assert AsSoonAsPossible().next_train(Situation("s", 0, 0.0)) == DEFAULT_LENGTH


def test_both_may_be_changed_between_two_trains():
    policy = AsSoonAsPossible()
    policy.length, policy.interval = 3, 2.0
    assert policy.next_train(Situation("s", 1, 11.0, 10.0)) is None
    assert policy.next_train(Situation("s", 1, 12.0, 10.0)) == 3
