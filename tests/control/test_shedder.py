"""When to shed: a queue with a given capacity, second by second, without Spark and without waiting."""

from __future__ import annotations

import itertools

import pytest

from penstock.control.shedder import QUICK, STEADY, Pressure, Shedding, next_shedding

THRESHOLD, USABLE, CAPACITY = 2.0, 0.66 * 2, 2.0


def simulate(offered, seconds, *, error=1.0, look=0.25, tempo=QUICK):
    """(time, kept, age) at each look; `offered`: load by time; trains come out in order, at the capacity."""
    state, work, history = Shedding(), [], []
    for step in range(int(seconds / look)):
        now = step * look
        load = offered(now)
        rate = sum(offered(max(0.0, now - back)) for back in (0, 1, 2, 3, 4)) / 5  # as it is measured
        age = now - work[0][0] if work else 0.0
        seen = Pressure(now, rate, USABLE, age, THRESHOLD, error, 1.0)
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


def turns(history, least=0.05):
    """How often the share turns round by more than this."""
    kept = [each for _, each, _ in history]
    ends, direction = [kept[0]], 0
    for before, after in itertools.pairwise(kept):
        step = (after > before) - (after < before)
        if step and step != direction:
            ends.append(before)
            direction = step
    ends.append(kept[-1])
    return sum(abs(b - a) > least for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize("factor", [2, 4])
def test_overload_is_met_within_seconds_and_undone_within_ten(factor):
    offered = lambda now: USABLE * (factor if 20 <= now < 140 else 0.5)  # noqa: E731
    history = simulate(offered, 200)
    assert all(kept == 1 for now, kept, _ in history if now < 20)
    late = [now for now, _, age in history if age > THRESHOLD]
    assert not late or max(late) < 25
    during = [kept for now, kept, _ in history if 30 < now < 140]
    assert max(during) - min(during) < 0.1
    assert sum(during) / len(during) == pytest.approx(1 / factor, rel=0.1)
    assert all(kept == 1 for now, kept, _ in history if now > 150)
    assert turns(history) <= 4


def test_short_bursts_below_capacity_shed_nothing():
    """0.7 of what is usable with bursts: one second at 1.5 every twenty."""
    burst = lambda now: USABLE * (1.5 if 10 <= now % 20 < 11 else 0.7)  # noqa: E731
    assert all(kept == 1 for _, kept, _ in simulate(burst, 120))


def test_noise_does_not_make_it_swing():
    noisy = lambda now: 2 * USABLE * (1 + 0.02 * ((now * 7919) % 3 - 1))  # noqa: E731
    assert turns(simulate(noisy, 120)) <= 6


def test_costs_that_were_wrong_are_corrected():
    """Trains cost 1.4 times what their lines say."""
    history = simulate(lambda _: 2 * USABLE, 120, error=1.4)
    settled = [kept for now, kept, _ in history if now > 60]
    assert sum(settled) / len(settled) == pytest.approx(1 / (2 * 1.4), rel=0.12)


def test_a_small_excess_waits_until_something_is_late():
    state = Shedding(kept=0.5)
    early = Pressure(0.0, USABLE * 2.02, USABLE, 0.1, THRESHOLD)
    assert next_shedding(state, early).kept == 0.5
    late = Pressure(0.0, USABLE * 2.02, USABLE, 0.9, THRESHOLD)
    assert next_shedding(state, late).kept < 0.5


def test_valves_open_only_after_calm_seconds():
    state = Shedding(kept=0.4, tightened=10.0)
    calm = lambda now: next_shedding(state, Pressure(now, 0.1, USABLE, 0.0, THRESHOLD))  # noqa: E731
    assert calm(11.9).kept == 0.4
    assert calm(12.0).kept == pytest.approx(0.7)


def test_what_is_not_exact_for_long_after_it_came_back_comes_back_for_good():
    """The load is noisy around twice of what fits: groups must not come and go with it."""
    noisy = lambda now: 2 * USABLE * (1 + 0.06 * ((now * 7919) % 5 - 2) / 2)  # noqa: E731
    history = simulate(noisy, 300, tempo=STEADY)
    settled = [kept for now, kept, _ in history if now > 60]
    assert sum(after > before for before, after in itertools.pairwise(settled)) == 0
    assert 0.4 < min(settled) <= max(settled) < 0.5
    assert not [now for now, _, age in history if age > THRESHOLD and now > 30]


def test_all_comes_back_when_the_overload_is_over():
    offered = lambda now: USABLE * (2 if now < 60 else 0.5)  # noqa: E731
    history = simulate(offered, 120, tempo=STEADY)
    assert all(kept == 1 for now, kept, _ in history if now > 100)


def test_what_came_back_and_had_to_go_again_waits_longer_each_time():
    """Others take the machine for half of each minute."""
    state, opened = Shedding(), []
    for step in range(4 * 600):
        now = step / 4
        usable = USABLE if now % 60 < 30 else USABLE / 3
        before, state = state, next_shedding(state, Pressure(now, 2 * USABLE, usable, 1.0, THRESHOLD), STEADY)
        opened += [now] if state.kept > before.kept and before.tightened > before.opened else []
    assert 1 < len(opened) <= 5
    assert opened[-1] - opened[-2] > opened[1] - opened[0]
