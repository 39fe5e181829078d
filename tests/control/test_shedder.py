"""When to shed, look by look. How it goes over minutes is tried on a plant, in loop/test_plan.py."""

from __future__ import annotations

import pytest

from penstock.control.shedder import Mark, Pressure, Shedding, next_shedding

THRESHOLD, USABLE = 2.0, 1.3


def test_trains_that_are_never_full_say_nothing_about_what_can_be_done():
    """Little was done because little came: that is not all that trains can do."""
    marks = tuple(Mark(8.0 + k, False, k, 0.1 * k) for k in range(3))
    state = Shedding(kept=0.5, tightened=0.0, marks=marks)
    seen = Pressure(11.0, 2 * USABLE, USABLE, 1.0, THRESHOLD, trains=3, worked=0.3, left=0.5)
    assert next_shedding(state, seen).strain == 1
    full = tuple(Mark(mark.now, True, mark.trains, mark.worked) for mark in marks)
    assert next_shedding(Shedding(kept=0.5, tightened=0.0, marks=full), seen).strain > 1


def test_nothing_is_shed_before_something_is_left_behind():
    """Whatever the lines say: as long as each train takes all that waits, there is no overload."""
    seen = Pressure(10.0, 3 * USABLE, USABLE, 1.5, THRESHOLD, left=0.0)
    assert next_shedding(Shedding(), seen).kept == 1
    behind = Pressure(10.0, 3 * USABLE, USABLE, 1.5, THRESHOLD, left=0.5)
    assert next_shedding(Shedding(), behind).kept < 0.4


def test_a_small_excess_waits_until_something_is_late():
    state = Shedding(kept=0.5)
    early = Pressure(0.0, USABLE * 2.02, USABLE, 0.1, THRESHOLD)
    assert next_shedding(state, early).kept == 0.5
    late = Pressure(0.0, USABLE * 2.02, USABLE, 0.9, THRESHOLD, left=0.5)
    assert next_shedding(state, late).kept < 0.5


def test_valves_open_only_after_calm_seconds():
    state = Shedding(kept=0.4, tightened=10.0)
    calm = lambda now: next_shedding(state, Pressure(now, 0.1, USABLE, 0.0, THRESHOLD))  # noqa: E731
    assert calm(11.9).kept == 0.4
    assert calm(12.0).kept == pytest.approx(0.7)
