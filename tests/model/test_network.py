"""Writing networks: names, groups, equality, pictures; and that none of it needs Spark."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings

import penstock as ps
from model.random_networks import networks
from penstock.model.boxes import Arrow
from penstock.model.pictures.diagram import diagram_of
from penstock.model.pictures.layout import lay_out
from penstock.rewrite.check import check


def traffic() -> ps.Network:
    net = ps.Network("traffic")
    reports = net.source(
        "reports", ps.csv("in/", schema="time TIMESTAMP, vid INT, spd INT, seg INT"), timestamp="time"
    )
    minutes = (
        reports.filter("spd < 40")
        .group_by("seg")
        .tumble("1 minute", speed="avg(spd)", cars="count(distinct vid)")
    )
    point = minutes.connection_point("segment_minutes", keep="2 hours", key="seg")
    net.output(
        "jams",
        point.filter("cars > 50"),
        to=ps.parquet("out/jams"),
        qos=ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)]),
    )
    return net


def test_the_example_of_the_readme():
    net = traffic()
    check(net)
    assert list(net.nodes) == [
        "reports",
        "filter_1",
        "group_by_1",
        "tumble_1",
        "segment_minutes",
        "filter_2",
        "jams",
    ]
    assert net.arrows[0] == Arrow("reports", "filter_1", 0)
    assert (list(net.sources), list(net.points), list(net.outputs)) == (
        ["reports"],
        ["segment_minutes"],
        ["jams"],
    )
    assert net.types["tumble_1"].schema.ddl() == "seg INT, time TIMESTAMP, speed DOUBLE, cars BIGINT"


def test_importing_penstock_imports_no_spark():
    heavy = "('pyspark', 'pandas', 'pyarrow')"
    code = f"import penstock, sys; print([m for m in sys.modules if m.split('.')[0] in {heavy}])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Netwrok'"):
        ps.Netwrok  # noqa: B018 - looking it up is what fails


def test_places_are_the_users_lines():
    net = traffic()
    assert all(node.where.file == __file__ for node in net.nodes.values())
    # a chain over several lines: each box has the line of its own call
    assert net.nodes["filter_1"].where.line < net.nodes["tumble_1"].where.line < net.nodes["jams"].where.line


def test_equal_however_written():
    assert traffic() == traffic()
    other = traffic()
    other.describe("jams", description="slow segments")
    assert other != traffic()
    assert traffic() != "traffic"


def test_named_moves_readers_along():
    net = traffic()
    net.stream("tumble_1").named("minutes")
    assert net.nodes["segment_minutes"].inputs == ("minutes",)
    assert "minutes" in net.types
    assert "tumble_1" not in net.types
    assert net.free_name("tumble") == "tumble_1"


def test_of_sorts_nodes_and_keeps_a_sorted_order():
    net = traffic()
    nodes = list(net.nodes.values())
    assert ps.Network.of("traffic", reversed(nodes)) == net
    assert list(ps.Network.of("traffic", nodes).nodes) == list(net.nodes)


def test_groups_nest_and_are_described():
    net = ps.Network("n")
    ticks = net.source("ticks", ps.rate(5), timestamp="timestamp")
    with net.group("outer", description="all of it", manual="long text"):
        ticks.filter("value > 1")
        with net.group("inner"):
            ticks.filter("value > 2")
        ticks.filter("value > 3")
    assert [net.nodes[f"filter_{n}"].about.group for n in (1, 2, 3)] == [
        ("outer",),
        ("outer", "inner"),
        ("outer",),
    ]
    assert net.groups["outer",].description == "all of it"
    assert net.groups["outer", "inner"].group == ("outer",)


def test_a_failed_box_leaves_the_network_as_it_was():
    net = traffic()
    with pytest.raises(ps.NetworkError):
        net.stream("reports").filter("sped < 1")
    assert net == traffic()


def test_explain_names_every_box():
    text = traffic().explain()
    assert text.startswith("network 'traffic': 1 source, 4 boxes, 1 connection point, 1 output\n")
    assert "tumble 1 minute: speed = avg(spd), cars = count(distinct vid)" in text
    assert "QoS: good up to 5 s, 0 at 30 s" in text


def test_mermaid():
    text = traffic().to_mermaid()
    assert text.startswith("flowchart LR\n")
    assert 'n4[("<b>segment_minutes</b><br/>connection point keeps 2 hours, key seg")]' in text
    assert text.count("-->") == 6


@given(networks())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pictures_of_random_networks(network):
    root = ET.fromstring(_readable(network.to_svg()))
    assert sum("data-node" in element.attrib for element in root.iter()) == len(network.nodes)
    assert sum(element.get("class") == "arrow" for element in root.iter()) == len(network.arrows)
    assert network.to_mermaid().count("-->") == len(network.arrows)
    assert network._repr_html_().startswith("<div")
    assert network.explain()


def _readable(svg: str) -> str:
    # XML has no place for control characters, which random descriptions are full of
    return "".join(c for c in svg if c >= " " and c not in "\ufffe\uffff")


@given(networks(boxes=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_overlaps(network):
    picture = lay_out(diagram_of(network), lambda _name: (100.0, 50.0))
    assert set(picture.nodes) == set(network.nodes)
    for one, other in combinations(picture.nodes.values(), 2):
        assert (
            one.x + one.width <= other.x
            or other.x + other.width <= one.x
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )
    for name, node in network.nodes.items():
        rect = picture.nodes[name]
        for path, frame in picture.groups.items():
            inside = (
                frame.x <= rect.x
                and rect.x + rect.width <= frame.x + frame.width
                and frame.y <= rect.y
                and rect.y + rect.height <= frame.y + frame.height
            )
            assert inside == (node.about.group[: len(path)] == path)
