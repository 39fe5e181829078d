"""When to shed, look by look. How it goes over minutes is tried on a plant, in loop/test_plan.py."""

from __future__ import annotations

import itertools

import pytest

from penstock.control.shedder import QUICK, STEADY, Mark, Pressure, Shedding, next_shedding

THRESHOLD, USABLE, CAPACITY = 2.0, 1.3, 2.0


def simulate(offered, seconds, *, error=1.0, look=0.25, tempo=QUICK):
    """(time, kept, age) at each look; `offered`: load by time; trains come out in order, at the capacity."""
    state, work, history = Shedding(), [], []
    for step in range(int(seconds / look)):
        now = step * look
        load = offered(now)
        rate = sum(offered(max(0.0, now - back)) for back in (0, 1, 2, 3, 4)) / 5  # as it is measured
        age = now - work[0][0] if work else 0.0
        seen = Pressure(now, rate, USABLE, age, THRESHOLD, error, 1.0, left=age)
        state = next_shedding(state, seen, tempo)
        work.append((now, load * look * error))
        can = CAPACITY * look
        # what was offered earlier passes the valve of the moment at which it is taken (A89)
        while work and can > 0:
            cost = work[0][1] * state.kept
            if cost > can:
                work[0] = (work[0][0], work[0][1] - can / state.kept)
                break
            can -= cost
            work.pop(0)
        history.append((now, state.kept, age))
    return history


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

    def calm(now):
        return next_shedding(state, Pressure(now, 0.1, USABLE, 0.0, THRESHOLD))

    assert calm(11.9).kept == 0.4
    assert calm(12.0).kept == pytest.approx(0.7)


def test_what_is_not_exact_for_long_after_it_came_back_comes_back_for_good():
    """The load is noisy around twice of what fits: groups must not come and go with it."""

    def noisy(now):
        return 2 * USABLE * (1 + 0.06 * ((now * 7919) % 5 - 2) / 2)

    history = simulate(noisy, 300, tempo=STEADY)
    settled = [kept for now, kept, _ in history if now > 60]
    assert sum(after > before for before, after in itertools.pairwise(settled)) == 0
    assert 0.4 < min(settled) <= max(settled) < 0.5
    assert not [now for now, _, age in history if age > THRESHOLD and now > 30]


def test_all_comes_back_when_the_overload_is_over():
    def offered(now):
        return USABLE * (2 if now < 60 else 0.5)

    history = simulate(offered, 120, tempo=STEADY)
    assert all(kept == 1 for now, kept, _ in history if now > 100)


def test_what_came_back_and_had_to_go_again_waits_longer_each_time():
    """Others take the machine for half of each minute."""
    state, opened = Shedding(), []
    for step in range(4 * 600):
        now = step / 4
        usable = USABLE if now % 60 < 30 else USABLE / 3
        before, state = (
            state,
            next_shedding(state, Pressure(now, 2 * USABLE, usable, 1.0, THRESHOLD, left=1.0), STEADY),
        )
        opened += [now] if state.kept > before.kept and before.tightened > before.opened else []
    assert 1 < len(opened) <= 5
    assert opened[-1] - opened[-2] > opened[1] - opened[0]
