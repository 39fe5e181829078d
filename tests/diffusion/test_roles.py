"""Who is master, when roles switch, how long both streams go everywhere, where tuples are put: pure steps."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.boxes import Join
from penstock.model.diffused.owner import producer
from penstock.model.diffused.placement import PLACES, least_loaded, round_robin
from penstock.model.diffused.roles import NEVER, Report, Roles, first_roles, step
from penstock.model.join_distribution import Diffusion

SECOND = 1_000_000
FAR = (1000 * SECOND, 1000 * SECOND)


def join(
    distribution="diffused", servers=2, within=(5 * SECOND, 3 * SECOND), on=(("k", "k"),), **options
) -> Join:
    return Join(
        name="j",
        inputs=("a", "b"),
        on=on,
        within=within,
        distribution=distribution,
        servers=servers,
        diffusion=Diffusion(**options),
    )


def reports(left: int, right: int, *, until: int, start: int = 0, operations=(0, 0)) -> list[Report]:
    """Two servers; each has half of the tuples."""
    newest = (until * SECOND, until * SECOND)
    return [
        Report(n, (left // 2, right // 2), (left // 2, right), newest, start * SECOND, operations[n])
        for n in (0, 1)
    ]


def test_the_faster_stream_becomes_master():
    node = join()
    roles = step(node, first_roles(node, 2), reports(10, 100, until=10), FAR)
    assert (roles.scheme, roles.epoch, roles.rates) == ("right", 1, (1.0, 10.0))
    assert step(join(master="lower"), first_roles(node, 2), reports(10, 100, until=10), FAR).scheme == "left"
    assert step(join(master="left"), first_roles(node, 2), reports(10, 100, until=10), FAR).epoch == 0


def test_a_stream_that_is_further_in_time_is_not_slower_for_it():
    """Trains take as many tuples of each stream: 50 in 5 s on the left, 50 in 10 s on the right."""
    told = [Report(0, (50, 50), (50, 50), (5 * SECOND, 10 * SECOND), 0)]
    roles = step(join(), replace(first_roles(join(), 2), scheme="right"), told, FAR)
    assert (roles.rates, roles.scheme) == ((10.0, 5.0), "left")


def test_a_stream_that_fell_silent_is_not_fast_for_its_few_tuples():
    """Two tuples in a microsecond on the left, 1,000 in ten seconds on the right."""
    told = [Report(0, (2, 1000), (2, 1000), (1, 10 * SECOND), 0)]
    roles = step(join(), replace(first_roles(join(), 2), scheme="right"), told, FAR)
    assert (roles.rates, roles.scheme) == ((0.2, 100.0), "right")


def test_nothing_changes_before_the_period_is_over_or_for_a_small_difference():
    node = join(sample=20 * SECOND)
    roles = step(node, first_roles(node, 2), reports(10, 100, until=10), FAR)
    assert (roles.scheme, roles.counts, roles.rates) == ("left", (10, 100), None)
    roles = step(node, roles, reports(10, 100, until=20, start=10), FAR)
    assert (roles.scheme, roles.counts, roles.rates) == ("right", (0, 0), (1.0, 10.0))
    assert step(join(), first_roles(node, 2), reports(100, 108, until=10), FAR).epoch == 0


def test_auto_starts_by_hash_and_leaves_it_when_a_server_is_hot():
    node = join("auto")
    first = first_roles(node, 2)
    assert first.scheme == "hash"
    even = step(node, first, reports(100, 10, until=10, operations=(5000, 6000)), FAR)
    assert (even.scheme, even.epoch) == ("hash", 0)
    hot = step(node, first, reports(100, 10, until=10, operations=(900_000, 1000)), FAR)
    assert (hot.scheme, hot.epoch) == ("left", 1)
    assert hot.share > 0.9
    assert (
        step(
            join("auto", threshold=1.0), first, reports(100, 10, until=10, operations=(900_000, 0)), FAR
        ).epoch
        == 0
    )


def test_auto_without_a_key_has_nothing_to_hash():
    assert first_roles(join("auto", on=()), 4).scheme == "left"


@pytest.mark.parametrize(
    ("horizons", "both"), [((13, 15), True), ((14, 16), False), ((13, 16), True), ((14, 15), True)]
)
def test_both_go_everywhere_as_long_as_a_tuple_of_before_is_in_reach(horizons, both):
    # newest left 10, may be met by right up to 15; newest right 10, by left up to 13
    node = join()
    told = reports(10, 100, until=10)
    roles = step(node, first_roles(node, 2), told, tuple(h * SECOND for h in horizons))
    assert roles.both is both
    assert roles.everywhere(0)
    assert roles.everywhere(1) is both


def test_without_a_switch_nothing_is_in_reach():
    node = join()
    assert not step(node, first_roles(node, 2), reports(100, 10, until=10), (NEVER, NEVER)).both


def test_forced_roles_and_a_second_switch_in_the_middle_of_the_first():
    node = join()
    one = step(node, first_roles(node, 2), reports(5, 5, until=5), (0, 0), "right")
    two = step(node, one, reports(5, 5, until=6), (0, 0), "left")
    assert (one.epoch, two.epoch, two.both, two.reach) == (1, 2, True, (6 * SECOND, 6 * SECOND))


def test_what_is_recorded_comes_back():
    node = join("auto", servers=3)
    roles = step(node, first_roles(node, 2), [Report(2, (1, 2), (1, 2), (7, 8), 3, 9)], (0, 0), "left")
    assert Roles.of(json.loads(json.dumps(roles.plain()))) == roles
    report = Report(1, (1, 2), (3, 4), (5, 6), None, 7, (8, 9), 10, 11, 12, 0.5)
    assert Report.of(json.loads(json.dumps(report.plain()))) == report


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.floats(1, 1e6))
def test_the_wheel_evens_out(load, coming):
    wheel = least_loaded(load, coming)
    after = [level + wheel.count(n) / len(wheel) * coming for n, level in enumerate(load)]
    used = [after[n] for n in set(wheel)]
    # whoever gets anything ends level with the others that do, and not below those that get nothing
    assert max(used) - min(used) <= 2 * coming / (PLACES * len(load)) + 1e-6 * coming + 1e-6
    assert min(after) >= min(used) - 2 * coming / (PLACES * len(load)) - 1e-6


def test_round_robin_and_no_load():
    assert round_robin(3) == (0, 1, 2)
    assert least_loaded([0.0, 0.0, 0.0], 0.0) == (0, 1, 2)
    node = join(placement="round_robin")
    roles = replace(first_roles(node, 2), recent=(500.0, 1.0))
    assert step(node, roles, [], FAR).wheel == (0, 1)
    assert step(join(), roles, [], FAR).wheel.count(1) > PLACES


@given(
    st.tuples(
        st.integers(0, 3),
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 3),
        st.booleans(),
        st.integers(0, 3),
    )
)
def test_the_producer_is_one_of_the_two_owners(case):
    left_epoch, left_master, left_owner, right_epoch, right_master, right_owner = case
    chosen = producer(*case)
    assert chosen in (left_owner, right_owner)
    # it is the owner of the tuple that was master in the older epoch: only that one lies at its owner and
    # nowhere else; in one epoch it is the master's, and where both were master (hash) equal keys have the
    # same owner
    older_is_left = left_epoch < right_epoch or (left_epoch == right_epoch and left_master)
    older_master = left_master if left_epoch <= right_epoch else right_master
    if left_epoch != right_epoch:
        mine, other = (left_owner, right_owner) if older_is_left else (right_owner, left_owner)
        assert chosen == (mine if older_master else other)
    elif left_master != right_master:
        assert chosen == (left_owner if left_master else right_owner)


def test_when_nobody_forces_a_scheme_any_more_the_join_goes_back_to_its_own():
    """set_master(join, None): at once by hash, else as soon as a period is full."""
    told = reports(10, 100, until=10)
    by_hash = join("hash", servers=2)
    forced = step(by_hash, first_roles(by_hash, 2), [], FAR, "left")
    assert (forced.scheme, step(by_hash, forced, [], FAR).scheme) == ("left", "hash")
    forced = replace(first_roles(join(), 2), scheme="hash")
    assert step(join(sample=20 * SECOND), forced, told, FAR).scheme == "hash"
    assert step(join(), forced, told, FAR).scheme == "right"
    auto = join("auto")
    assert step(auto, first_roles(auto, 2), reports(100, 10, until=10), FAR).scheme == "hash"
    forced = replace(first_roles(auto, 2), scheme="left")
    assert step(auto, forced, reports(100, 10, until=10), FAR).scheme == "left", "it does not go back"


def test_hash_with_servers_of_its_own_stays_hash():
    node = join(distribution="hash", servers=3)
    roles = first_roles(node, 8)
    assert (roles.servers, roles.scheme) == (3, "hash")
    hot = replace(roles, since=0, newest=(10**9, 10**9), loads=(9e9, 1.0, 1.0), counts=(5, 5))
    assert step(node, hot, [], FAR).scheme == "hash"
