"""What pictures show: groups closed to one card, and notes."""

from __future__ import annotations

import penstock as ps
from penstock.model.pictures.diagram import closed, diagram_of
from penstock.model.pictures.layout import arrow_points, lay_out


def network():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in", "time TIMESTAMP, k INT, v INT"), timestamp="time")
    with net.group("outer"):
        slow = cars.filter("v < 40", name="slow")
        with net.group("inner"):
            both = slow.join(cars.filter("v > 9", name="fast"), on="k", within="1 minute", name="both")
    net.output("out", both, to=ps.memory())
    return net


def test_a_closed_group_is_one_card_and_its_arrows_end_there():
    whole = diagram_of(network())
    inner = closed(whole, [("outer", "inner")])
    assert set(inner.cards) == {"cars", "slow", "outer/inner/", "out"}
    assert inner.cards["outer/inner/"].argument == "2 boxes"
    assert inner.groups == (("outer",),)
    outer = closed(whole, [("outer",), ("outer", "inner")])
    assert set(outer.cards) == {"cars", "outer/", "out"}
    (into,) = [arrow for arrow in outer.arrows if arrow.head == "outer/"]
    assert into.members == (("cars", "slow", 0), ("cars", "fast", 0))


def test_every_arrow_has_a_route_whatever_is_closed():
    whole = diagram_of(network())
    for diagram in (whole, closed(whole, [("outer",)]), closed(whole, [("outer", "inner")])):
        picture = lay_out(diagram, gap=90.0)
        assert set(picture.nodes) == set(diagram.cards)
        for arrow in diagram.arrows:
            points = arrow_points(diagram, picture, arrow)
            assert points[0][0] < points[-1][0]


def test_a_manual_page_is_in_explain_and_in_the_picture():
    net = network()
    net.describe("slow", manual="Reports of cars in a jam.\nSee the road manual.")
    assert "See the road manual." in net.explain()
    assert "Reports of cars in a jam." in net.to_svg()
