"""Views attached while the network runs: their names, and what detaching leaves; without Spark."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import NetworkError
from penstock.rewrite.subnetworks import at_point
from penstock.runtime.attached_views import at_free_names, must_not_be_read, with_views


@pytest.fixture
def net():
    made = ps.Network("traffic")
    cars = made.source("cars", ps.csv("in", "time TIMESTAMP, v INT"), timestamp="time")
    made.output("out", cars.filter("v >= 0").connection_point("kept"), to=ps.memory())
    return made


def view(net, name, condition, point="kept"):
    sub = at_point(net, point, name, lambda s: s.filter(condition).view(name, keep="1 hour"))
    return at_free_names(sub, net.nodes)


def test_boxes_without_a_name_do_not_clash(net):
    fast = view(net, "fast", "v > 2")
    grown = with_views(net, {"fast": fast})
    assert "filter_1" in grown.nodes
    assert grown.nodes["fast_filter_1"].predicate == "v > 2"
    assert "fast" in grown.points
    slow = view(grown, "slow", "v < 2")
    both = with_views(net, {"fast": fast, "slow": slow})
    assert {"fast", "slow"} <= set(both.points)


def test_views_on_views_and_a_point_that_is_gone(net):
    fast = view(net, "fast", "v > 2")
    grown = with_views(net, {"fast": fast})
    faster = view(grown, "faster", "v > 4", point="fast")
    assert "faster" in with_views(net, {"fast": fast, "faster": faster}).points
    with pytest.raises(NetworkError, match="'faster' is attached to 'fast', which the network does not have"):
        with_views(net, {"faster": faster})
    with pytest.raises(NetworkError, match="'faster' reads 'fast'"):
        must_not_be_read(fast, [fast, faster])
    must_not_be_read(faster, [fast, faster])


def test_an_ad_hoc_query_is_not_counted_with_the_network(net):
    sub = at_point(net, "kept", "slow now", lambda s: s.filter("v < 2"), to=ps.memory())
    assert list(at_free_names(sub, net.nodes).network.nodes) == ["kept", "slow now_filter_1", "slow now"]


def test_named_boxes_of_two_queries_stay_apart(net):
    names = []
    for query in ("one", "two"):
        sub = at_point(net, "kept", query, lambda s: s.filter("v < 2", name="slow"), to=ps.memory())
        names += list(at_free_names(sub, {*net.nodes, *names}).network.nodes)[1:]
    assert names == ["one_slow", "one", "two_slow", "two"]
    odd = at_point(net, "kept", "one", lambda s: s.filter("v < 2", name="slow"), to=ps.memory())
    assert list(at_free_names(odd, {*names}).network.nodes)[1] == "one_slow_2"
