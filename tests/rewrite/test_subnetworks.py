"""Networks cut at connection points, and queries attached to them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import penstock as ps
from model.random_networks import networks
from penstock.rewrite.check import problems
from penstock.rewrite.subnetworks import at_point, reaching, split


@pytest.fixture
def cars():
    form = ps.csv("in/", "time TIMESTAMP, vid INT, spd INT")
    return ps.Network("n").source("cars", form, timestamp="time")


def shape(network):
    return [(part.name, part.inputs, part.points, part.outputs) for part in split(network)]


def test_without_points_there_is_one(cars):
    cars.filter("spd > 0").output("a", to=ps.console())
    cars.filter("spd = 0").output("b", to=ps.console())
    assert shape(cars.network) == [("a", ("cars",), (), ("a", "b"))]


def test_sources_that_do_not_meet_are_apart(cars):
    cars.output("a", to=ps.console())
    cars.network.source("ticks", ps.rate(5)).output("b", to=ps.console())
    assert shape(cars.network) == [("a", ("cars",), (), ("a",)), ("b", ("ticks",), (), ("b",))]


def test_a_point_is_read_by_its_type_alone(cars):
    kept = cars.group_by("vid").tumble("1 minute", n="count(*)").connection_point("kept")
    kept.filter("n > 1").output("many", to=ps.console())
    kept.filter("n = 1").output("one", to=ps.console())
    upper, many, one = split(cars.network)
    assert upper.points == ("kept",)
    assert (many.inputs, one.inputs) == (("kept",), ("kept",))
    assert many.network.nodes["kept"].inputs == ()
    assert many.network.types["kept"] == cars.network.types["kept"]
    assert list(problems(many.network)) == []


def test_views_cut_too(cars):
    cars.view("seen").filter("spd > 0").output("a", to=ps.console())
    assert shape(cars.network) == [("seen", ("cars",), ("seen",), ()), ("a", ("seen",), (), ("a",))]


def test_a_point_that_feeds_a_point(cars):
    cars.connection_point("first").connection_point("second")
    assert shape(cars.network) == [
        ("first", ("cars",), ("first",), ()),
        ("second", ("first",), ("second",), ()),
    ]


def test_a_way_around_a_point_keeps_both_sides_together(cars):
    moving = cars.filter("spd > 0")
    kept = moving.connection_point("kept")
    moving.join(kept, on="vid", within="1 minute").output("pairs", to=ps.console())
    (only,) = split(cars.network)
    assert (only.inputs, only.points, only.outputs) == (("cars",), ("kept",), ("pairs",))
    assert only.network.nodes["kept"].inputs == ("filter_1",)


def test_two_that_would_wait_for_each_other_are_one(cars):
    ticks = cars.network.source("ticks", ps.csv("t/", "time TIMESTAMP, vid INT, spd INT"), timestamp="time")
    a = cars.connection_point("a")
    b = ticks.connection_point("b")
    cars.union(b).output("x", to=ps.console())
    ticks.union(a).output("y", to=ps.console())
    (only,) = split(cars.network)
    assert set(only.inputs) == {"cars", "ticks"}
    assert set(only.points) == {"a", "b"}


def test_boxes_for_nobody_are_left_out(cars):
    cars.filter("spd > 0").output("a", to=ps.console())
    cars.filter("spd = 0")
    assert list(split(cars.network)[0].network.nodes) == ["cars", "filter_1", "a"]


def test_groups_go_along(cars):
    with cars.network.group("g", description="all"):
        cars.filter("spd > 0").output("a", to=ps.console())
    assert split(cars.network)[0].network.groups["g",].description == "all"


@given(networks(boxes=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_networks(network):
    parts = split(network)
    live = reaching(network, [*network.points, *network.outputs])
    written = [name for part in parts for name in (*part.points, *part.outputs)]
    assert sorted(written) == sorted([*network.points, *network.outputs])
    own = [
        name
        for part in parts
        for name in part.network.nodes
        if name in part.network.sources or part.network.nodes[name].inputs
    ]
    assert sorted(own) == sorted(live)
    done: set[str] = set()
    for part in parts:
        assert {name for name in part.inputs if name in network.points} <= done
        assert all(part.network.types[name] == network.types[name] for name in part.network.nodes)
        done.update(part.points)


def test_a_query_attached_to_a_point(cars):
    cars.connection_point("kept")
    part = at_point(cars.network, "kept", "fast now", lambda s: s.filter("spd > 90"), to=ps.console())
    assert (part.name, part.inputs, part.outputs) == ("fast now", ("kept",), ("fast now",))
    assert list(part.network.nodes) == ["kept", "filter_1", "fast now"]
    assert list(cars.network.nodes) == ["cars", "kept"]
    assert list(problems(part.network)) == []


def test_a_query_that_joins_another_point(cars):
    cars.connection_point("kept")
    cars.filter("spd > 90").connection_point("fast")
    cars.connection_point("other")
    part = at_point(
        cars.network,
        "kept",
        "q",
        lambda s: s.join(s.network.stream("fast"), on="vid", within="1 minute"),
        to=ps.console(),
    )
    assert (part.inputs, part.points, part.outputs) == (("kept", "fast"), (), ("q",))
    assert list(part.network.nodes) == ["kept", "fast", "join_1", "q"]
    assert list(problems(part.network)) == []
    alone = at_point(cars.network, "kept", "q", lambda s: s.network.stream("fast"), to=ps.console())
    assert alone.inputs == ("fast",)


def test_a_query_at_no_point(cars):
    cars.connection_point("kept")
    with pytest.raises(ps.NetworkError) as caught:
        at_point(cars.network, "kep", "q", lambda s: s, to=ps.console())
    assert caught.value.hint == "did you mean 'kept'?"
    assert caught.value.where.file == __file__


def test_a_query_that_is_wrong_names_the_users_line(cars):
    cars.connection_point("kept")
    with pytest.raises(ps.NetworkError, match="unknown column 'sped'") as caught:
        at_point(cars.network, "kept", "q", lambda s: s.filter("sped > 90"), to=ps.console())
    assert caught.value.where.file == __file__
