"""The simulator: with power to spare it does exactly the join's operations; else, what the paper says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.diffusion.cluster import Arrivals, Cluster, arrivals, draw_rates, heterogeneous
from penstock.diffusion.simulate import (
    Scheme,
    chosen_first,
    least_loaded_hosts,
    random_hosts,
    simulate,
)
from penstock.model.errors import PenstockError


def mighty(nodes: int) -> Cluster:
    return Cluster(np.full(nodes, 1e12), np.full(nodes, 3000))


def truth(tuples: Arrivals, window: tuple[float, float]) -> int:
    """All pairs of each join near enough in time, by nested loops."""
    pairs = 0
    for join in range(tuples.joins):
        left, right = (tuples.time[(tuples.join == join) & (tuples.side == s)] for s in (0, 1))
        ahead = right[None, :] - left[:, None]
        pairs += int(((ahead <= window[0]) & (-ahead <= window[1])).sum())
    return pairs


@settings(max_examples=25, deadline=None)
@given(
    k=st.integers(1, 6),
    master=st.sampled_from(["higher", "lower", "static"]),
    placement=st.sampled_from(["least_loaded", "round_robin"]),
    window=st.tuples(st.sampled_from([0.5, 3.0]), st.sampled_from([1.0, 4.0])),
    sample=st.sampled_from([1.0, 2.5, 7.0]),
    expiry=st.sampled_from(["eager", "literal"]),
    seed=st.integers(0, 10_000),
)
def test_no_operation_is_lost_or_done_twice(k, master, placement, window, sample, expiry, seed):
    # rates change all the time, so the roles are switched in the middle of earlier switches
    rates = draw_rates(2, 30.0, seed, 4.0)
    tuples = arrivals(rates, 30.0, seed, 4.0)
    scheme = Scheme(master, placement, sample, "drop", window, expiry)
    run = simulate(mighty(6), tuples, random_hosts(2, k, 6, seed), scheme)
    assert run.dropped.sum() == 0
    assert run.throughput == truth(tuples, window)


def test_roles_do_switch():
    rates = draw_rates(2, 40.0, 3, 5.0)
    run = simulate(mighty(3), arrivals(rates, 40.0, 3, 5.0), random_hosts(2, 3, 3, 3), Scheme(sample=2.0))
    assert run.switches > 3


def test_the_faster_stream_as_master_saves_tuples():
    rates = np.array([[[20.0, 5.0]]])
    tuples = arrivals(rates, 200.0, 1)
    hosts = random_hosts(1, 8, 10, 1)
    received = {
        rule: simulate(
            mighty(10), tuples, hosts, Scheme("static"), first=chosen_first(rates[0], rule)
        ).received.sum()
        for rule in ("higher", "lower")
    }
    fast, slow = (int((tuples.side == s).sum()) for s in (0, 1))
    # S11: the slave comes to all k servers, the master to one
    assert received == {"higher": fast + 8 * slow, "lower": slow + 8 * fast}


def test_gaps_have_the_mean_the_corrections_name():
    tuples = arrivals(np.array([[[10.0, 10.0]]]), 2000.0, 1)
    assert len(tuples.time) / 2 / 2000.0 == pytest.approx(8.0, rel=0.02)
    assert (np.diff(tuples.time) >= 0).all()


@pytest.mark.parametrize("when_full", ["drop", "replace"])
def test_a_full_memory_is_counted_and_the_processor_never_overdrawn(when_full):
    rates = draw_rates(4, 300.0, 5)
    cluster = heterogeneous(4, 5)
    run = simulate(
        cluster, arrivals(rates, 300.0, 5), random_hosts(4, 2, 4, 5), Scheme("static", when_full=when_full)
    )
    lost = run.dropped if when_full == "drop" else run.replaced
    assert lost.sum() > 0
    assert (run.joining + run.receiving <= cluster.speed * 300.0 * 1.02).all()
    assert run.throughput == pytest.approx(run.joining.sum() / 50)


def test_literal_expiry_stands_still_where_eager_expiry_works_on():
    rates = draw_rates(10, 1000.0, 1)
    tuples, hosts = arrivals(rates, 1000.0, 1), random_hosts(10, 20, 20, 1)
    eager, literal = (
        simulate(heterogeneous(20, 1), tuples, hosts, Scheme("static", expiry=e)).throughput
        for e in ("eager", "literal")
    )
    assert literal < 0.8 * eager


def test_llf_gives_each_join_a_server_of_its_own_while_there_are_any():
    rates = draw_rates(5, 10.0, 1)[0]
    hosts = least_loaded_hosts(heterogeneous(5, 1), rates, (10.0, 10.0), 1)
    assert sorted(hosts[:, 0].tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Scheme("fastest"), "master is 'fastest'\n  expected: one of higher, lower, static"),
        (lambda: random_hosts(2, 9, 8, 1), "9 servers a join\n  expected: 1 to 8"),
        (lambda: heterogeneous(0, 1), "a cluster of 0 nodes"),
    ],
)
def test_what_cannot_be_is_refused(made, message):
    with pytest.raises(PenstockError, match=message):
        made()
