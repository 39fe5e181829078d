"""Aggregates of the reference engine."""

from __future__ import annotations

import math

import pytest

from penstock.engine.local.expressions import aggregates


@pytest.mark.parametrize("corrects", [False, True])
def test_sums_are_added_one_by_one_in_every_version_of_python(monkeypatch, corrects):
    """From Python 3.12 on, `sum` corrects what rounding loses; Spark does not."""
    if corrects:
        monkeypatch.setattr(aggregates, "sum", lambda values, _start: math.fsum(values), raising=False)
    values = [1e16, 1.0, -1e16, 4.0]
    found = {name: aggregates._FUNCTIONS[name](values) for name in ("sum", "avg")}
    assert found == {"sum": 4.0, "avg": 1.0}
    # The mean is 0, so each distance from it is the value itself.
    small = [2.0**53, 1.0, 1.0, -(2.0**53)]
    assert aggregates._FUNCTIONS["avg"](small) == 0.0
    assert aggregates._FUNCTIONS["variance"](small) == 2 * 2.0**106 / 3
    assert aggregates._FUNCTIONS["avg"]([2**53, 1, 1]) == 2.0**53 / 3
