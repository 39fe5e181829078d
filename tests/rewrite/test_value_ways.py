"""The way from a place for a valve to an output with a value graph."""

from __future__ import annotations

import penstock as ps
from penstock.rewrite.subnetworks import split
from penstock.rewrite.value_ways import sampled_columns, value_ways

GRAPHS = {"delay": [(0, 1), (2, 1), (4, 0)], "loss": [(0, 0), (100, 1)]}
VALUE = ps.QoS(**GRAPHS, value=[(0, 0), (100, 1)], column="kmh")
PLAIN = ps.QoS(**GRAPHS)


def cars():
    net = ps.Network("n")
    return net.source("cars", ps.csv("in", "time TIMESTAMP, spd INT, seg INT, note STRING"), timestamp="time")


def ways(stream):
    (sub,) = split(stream.network)
    return value_ways(sub), sampled_columns(sub)


def test_a_single_way_begins_at_the_source():
    stream = cars().filter("seg > 3", name="some").map(kmh="spd * 2", name="faster")
    stream.output("out", to=ps.memory(), qos=VALUE)
    (way,), columns = ways(stream)
    assert (way.at, way.tail, way.boxes, way.end, way.rowwise) == (
        "cars",
        "cars",
        ("some", "faster"),
        "faster",
        True,
    )
    assert columns == {"faster": ("kmh",), "cars": ("seg", "spd")}


def test_behind_a_split_it_begins_on_the_arrow():
    source = cars()
    source.map(kmh="spd * 2", name="faster").output("out", to=ps.memory(), qos=VALUE)
    source.output("all", to=ps.memory(), qos=PLAIN)
    (way,), _ = ways(source)
    assert (way.at, way.tail) == ("cars->faster", "cars")


def test_a_window_is_not_rowwise():
    stream = cars().group_by("seg", name="by").tumble("10 seconds", kmh="max(spd)", name="tens")
    stream.output("out", to=ps.memory(), qos=VALUE)
    (way,), _ = ways(stream)
    assert not way.rowwise


def test_without_a_value_graph_nothing_is_sampled():
    stream = cars().map(kmh="spd * 2", name="faster")
    stream.output("out", to=ps.memory(), qos=PLAIN)
    assert ways(stream) == ((), {})


def test_no_valve_stands_on_an_arrow_to_an_output_or_below_a_union():
    stream = cars().map(kmh="spd * 2", name="faster")
    stream.output("out", to=ps.memory(), qos=VALUE)
    stream.output("all", to=ps.memory(), qos=PLAIN)
    assert ways(stream)[0] == ()
    one = cars()
    two = one.network.source(
        "bikes", ps.csv("in2", "time TIMESTAMP, spd INT, seg INT, note STRING"), timestamp="time"
    )
    both = one.map(kmh="spd * 1", name="a").union(two.map(kmh="spd * 1", name="b"), name="both")
    both.output("out", to=ps.memory(), qos=VALUE)
    assert ways(both)[0] == ()
