"""The heart of the meaning: however a stream is cut into trains, the rows are the same."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.local import LocalEngine
from penstock.testing import assert_same_result
from penstock.testing.strategies import cases, cuttings, streams

CHECKS = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}


def _cut(case):
    whole = LocalEngine(case.network).run([case.rows])
    for trains in case.trains:
        assert_same_result(LocalEngine(case.network).run(trains), whole)


@settings(max_examples=60, **CHECKS)
@given(cases(number_of_cuttings=2))
def test_cutting_does_not_matter(case):
    _cut(case)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=1000 if os.environ.get("PENSTOCK_SOAK") else 150, **CHECKS)
@given(cases(number_of_cuttings=3, max_boxes=8))
def test_cutting_does_not_matter_at_length(case):
    _cut(case)


@settings(max_examples=40, **CHECKS)
@given(cases(number_of_cuttings=1, max_size=20))
def test_final_with_the_last_train_or_after_it(case):
    after = LocalEngine(case.network).run(case.trains[0])
    local = LocalEngine(case.network)
    local.run(case.trains[0][:-1], final=False)
    assert_same_result(local.train(case.trains[0][-1], final=True), after)


@settings(max_examples=40, **CHECKS)
@given(cases(number_of_cuttings=1, max_size=20))
def test_no_box_finds_tuples_late_when_sources_do_not(case):
    result = LocalEngine(case.network).run(case.trains[0])
    assert not [letter for letter in result.dead_letters if letter.reason.startswith("late")]


@settings(**CHECKS)
@given(st.data())
def test_streams_keep_within_their_lateness(data):
    lateness = data.draw(st.sampled_from((0, 500_000, 3_000_000)))
    rows = data.draw(streams(lateness))
    for place, row in enumerate(rows):
        newest = max(before["time"] for before in rows[: place + 1])
        assert row["time"] >= newest - lateness / 1_000_000


@settings(**CHECKS)
@given(st.data())
def test_cuttings_lose_nothing(data):
    rows = {"a": data.draw(streams()), "b": data.draw(streams())}
    trains = data.draw(cuttings(rows))
    for name, given_rows in rows.items():
        assert [row for train in trains for row in train[name]] == given_rows
