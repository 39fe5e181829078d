"""The search for a rating, against systems that are known to carry so much and no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.linear_road.rate.search import BRACKET, Bounds, TrialOutcome, is_next, next_step, step_at


def search(carries: float, bounds: Bounds, confirms: float | None = None) -> tuple[float, list[TrialOutcome]]:
    """Run the whole search on a system that passes up to `carries`, and confirms up to `confirms`."""
    tried: list[TrialOutcome] = []
    while (step := next_step(tried, bounds)).kind != "done":
        limit = carries if step.kind == "try" or confirms is None else confirms
        tried.append(
            TrialOutcome(step.expressways, step.expressways <= limit, confirming=step.kind == "confirm")
        )
        assert len(tried) < 60, "the search does not end"
    return step.expressways, tried


@given(
    carries=st.floats(0.5, 2000),
    begin=st.sampled_from([0.5, 1, 50, 200]),
    end=st.sampled_from([None, 512.0, 100.0]),
)
def test_finds_what_the_system_carries_to_within_one_step(
    carries: float, begin: float, end: float | None
) -> None:
    rating, tried = search(carries, Bounds(begin, end))
    reach = carries if end is None else min(carries, end)
    assert rating <= reach < rating + step_at(rating) + 1
    assert tried[-1] == TrialOutcome(rating, passed=True, confirming=True)


def test_doubles_then_bisects() -> None:
    _, tried = search(300, Bounds(50))
    assert [t.expressways for t in tried] == [50, 100, 200, 400, 300, 350, 325, 312, 300]


@given(carries=st.floats(0.5, 5000))
def test_a_coarse_search_still_brackets(carries: float) -> None:
    rating, tried = search(carries, Bounds(50, share=BRACKET))
    assert is_next(rating, min(t.expressways for t in tried if not t.passed))


def test_a_coarse_search_tries_less() -> None:
    _, tried = search(2300, Bounds(2000, share=BRACKET))
    assert [t.expressways for t in tried] == [2000, 4000, 3000, 2500, 2250, 2250]


def test_nothing_passes() -> None:
    rating, tried = search(0.1, Bounds(4))
    assert rating == 0
    assert [t.expressways for t in tried] == [4, 2, 1, 0.5]


def test_a_winner_that_is_not_confirmed_counts_as_a_failure() -> None:
    rating, tried = search(300, Bounds(50), confirms=250)
    assert rating == pytest.approx(250, rel=0.06)
    assert TrialOutcome(300, passed=False, confirming=True) in tried


def test_stops_at_the_largest_asked_for() -> None:
    rating, tried = search(1000, Bounds(50, end=120))
    assert rating == 120
    assert [t.expressways for t in tried] == [50, 100, 120, 120]


def test_a_pass_above_a_failure_is_luck() -> None:
    lucky = [TrialOutcome(8, passed=False), TrialOutcome(16, passed=True), TrialOutcome(4, passed=True)]
    assert next_step(lucky, Bounds(8)).expressways < 8
