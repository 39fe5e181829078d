"""Samples of tuples: the same ones at every node, however tasks divide them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.arrow.value_samples import pairs, sampled, together

ROWS = 3000


def table(rows=ROWS):
    return pa.table({"v": np.arange(rows) * 0.5, "w": np.arange(rows) % 7, "_seq": np.arange(rows) + 10**6})


def test_a_small_table_is_sampled_whole():
    sample = sampled(table(20), ["v"])
    assert sample["rows"] == len(sample["seq"]) == 20
    assert sample["columns"]["v"][3] == 1.5


def test_a_sample_is_bounded_and_even():
    sample = sampled(table(), ["v"], most=400)
    assert len(sample["seq"]) == 400
    assert abs(np.mean(sample["columns"]["v"]) - ROWS / 4) < 75  # 3.5 standard errors


@given(st.integers(1, 8), st.integers(5, 200))
def test_tasks_together_have_the_sample_of_all(tasks, most):
    parts = [
        sampled(table().slice(at, None).take(list(range(0, ROWS - at, tasks))), ["v"], most)
        for at in range(tasks)
    ]
    whole, merged = sampled(table(), ["v"], most), together(parts, most)
    assert merged["rows"] == whole["rows"]
    assert sorted(merged["seq"]) == sorted(whole["seq"])


def test_a_tuple_is_found_again_behind_a_filter():
    before, after = sampled(table(), ["w"]), sampled(table().filter(pa.array(np.arange(ROWS) % 7 < 3)), ["v"])
    found = pairs(before, after, "v")
    assert len(found) == len(before["seq"])
    for number, value in found:
        seq = before["seq"][number]
        assert value == ((seq - 10**6) * 0.5 if (seq - 10**6) % 7 < 3 else None)


def test_what_the_other_sample_cannot_tell_is_left_out():
    before, after = sampled(table(), ["w"], most=256), sampled(table(), ["v"], most=32)
    found = pairs(before, after, "v")
    assert 30 <= len(found) <= 32
    assert all(value is not None for _, value in found)


def test_values_that_no_interval_holds_are_unknown():
    odd = pa.table({"v": [1.5, float("inf"), float("-inf"), float("nan"), None], "_seq": list(range(5))})
    assert sampled(odd, ["v"])["columns"]["v"] == [1.5, None, None, None, None]
