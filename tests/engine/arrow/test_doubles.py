"""Sums that do not depend on the order of their terms."""

import math
import statistics

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.columns import exact_sums as doubles

NUMBERS = st.lists(st.floats(min_value=-1e100, max_value=1e100, allow_nan=False), min_size=1, max_size=40)


def total(values, starts=(0,)):
    array = np.array(values, float)
    high, rest = doubles.segment_sums((array, np.zeros(len(array))), np.array(starts))
    return (high + rest).tolist()


@settings(deadline=None)
@given(NUMBERS, st.randoms())
def test_any_order_is_within_one_unit_of_the_exact_sum(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    exact = math.fsum(values)
    scale = max(map(abs, values))
    for order in (values, shuffled):
        assert abs(total(order)[0] - exact) <= scale * 1e-28 + abs(exact) * 2.3e-16


@settings(deadline=None)
@given(st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 1000), min_size=1, max_size=40), st.randoms())
def test_any_order_of_terms_of_like_size_gives_the_exact_sum(values, random):
    random.shuffle(values)
    assert total(values) == [math.fsum(values)]


def test_what_plain_addition_loses_is_kept():
    assert total([1e16, 1.0, 1.0, -1e16]) == [2.0]


def test_each_run_has_its_own_sum():
    assert total([1, 2, 3, 4, 5, 6, 7], starts=(0, 1, 5)) == [1, 14, 13]


def test_infinity_and_nan_stay():
    assert total([math.inf, 1.0]) == [math.inf]
    assert math.isnan(total([math.inf, -math.inf])[0])
    assert total([1e308, 1e308, 5.0]) == [math.inf]


@settings(deadline=None)
@given(st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 1000), min_size=2, max_size=30))
def test_variance_is_the_textbook_one(values):
    array, count = np.array(values), np.array([float(len(values))])
    zeros, starts = np.zeros(len(array)), np.array([0])
    sums = doubles.segment_sums((array, zeros), starts)
    squares = doubles.segment_sums(doubles.product(array, array), starts)
    found = doubles.variance(sums, squares, count)[0]
    assert math.isclose(found, statistics.variance(values), rel_tol=1e-12, abs_tol=1e-15)


def test_large_numbers_have_a_variance_as_far_as_the_manual_says():
    numbers, starts = np.array([1.0, 2.0, 4.0]) * 1e149, np.array([0])
    sums = doubles.segment_sums((numbers, np.zeros(3)), starts)
    squares = doubles.segment_sums(doubles.product(numbers, numbers), starts)
    found = doubles.variance(sums, squares, np.array([3.0])).tolist()
    assert math.isclose(found[0], statistics.variance([1, 2, 4]) * 1e298)
