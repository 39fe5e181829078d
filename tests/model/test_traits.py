"""Which box has which trait: engines, checks and pictures ask for these instead of the class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.engine.arrow.logic import LOGICS as ARROW
from penstock.engine.local.box_logics import LOGICS as LOCAL
from penstock.engine.spark.layout.plan import NATIVE_KINDS
from penstock.engine.spark.runs.native import _NATIVE
from penstock.model.api import console, csv
from penstock.model.boxes import Filter, Join, Map, Node, Slide, Trait, Tumble
from penstock.model.checks.stream_types import RULES
from penstock.model.durations import Count, Time
from penstock.model.text.yaml_form import to_yaml
from penstock.model.writing.network import Network

KINDS = {node.kind: node for node in RULES if node.__module__ == "penstock.model.boxes"}


def having(trait: Trait) -> set[str]:
    return {kind for kind, node in KINDS.items() if trait in node.traits}


@pytest.mark.parametrize(
    ("trait", "kinds"),
    [
        (Trait.ENTERS, {"source"}),
        (Trait.KEPT, {"connection_point", "view"}),
        (Trait.LEAVES, {"output"}),
        (Trait.STATEFUL, {"tumble", "slide", "latch", "column_latch", "resample", "join"}),
        (Trait.OWN_PARTS, {"column_latch"}),
        (Trait.SELECTS, {"filter", "drop"}),
        # a drop box in front of these loses a share of the answer; in front of the others, it changes answers
        (Trait.SHEDDABLE, {"filter", "map", "union", "group_by", "tumble", "slide", "join"}),
    ],
)
def test_which_boxes_have_it(trait, kinds):
    assert having(trait) == kinds


def test_a_box_keeps_state_or_does_not():
    assert having(Trait.STATELESS) | having(Trait.STATEFUL) == set(KINDS)
    assert not having(Trait.STATELESS) & having(Trait.STATEFUL)


def test_every_box_has_a_line_in_every_table():
    boxes = {kind for kind, node in KINDS.items() if node(**_least(kind)).is_box}
    assert boxes <= set(LOCAL)
    assert boxes <= set(ARROW)
    assert set(_NATIVE) == NATIVE_KINDS


def _least(kind):
    needs = {
        "column_latch": {"logic": None},
        "source": {"format": None, "schema": None},
        "output": {"to": None},
    }
    return {"name": "x", **needs.get(kind, {})}


def test_what_a_box_says_of_keys():
    assert Filter(name="f").partition_keys(0, ("k",)) is None
    assert Tumble(name="t").partition_keys(0, ("k",)) == ("k",)
    join = Join(name="j", on=(("a", "b"), ("c", "d")))
    assert (join.partition_keys(0, ()), join.partition_keys(1, ())) == (("a", "c"), ("b", "d"))
    assert join.carries(("a", "c"))
    assert not join.carries(("a",))
    assert Map(name="m", columns=(("k", "k"), ("v", "1"))).carries(("k",))
    assert not Map(name="m", columns=(("k", "k + 1"),)).carries(("k",))


def test_how_far_apart_windows_begin():
    assert Tumble(name="t", size=Time(5)).step == Time(5)
    assert Slide(name="s", size=Count(5), every=Count(2)).step == Count(2)


def test_origin_says_under_which_names_a_box_was_written():
    node = Filter(name="both", predicate="true", origin=("slow", "near"))
    assert node.origins == ("slow", "near")
    assert replace(node, origin=()).origins == ("both",)
    assert node == replace(node, origin=())


def test_origin_is_shown_but_not_written_down():
    net = Network("n")
    cars = net.source("cars", csv("in/", schema="v INT"))
    cars.filter("v > 1", name="slow").output("out", to=console())
    slow = replace(net.nodes["slow"], origin=("a", "b"))
    nodes: list[Node] = [slow if name == "slow" else node for name, node in net.nodes.items()]
    rewritten = Network.of("n", nodes)
    assert rewritten.nodes["slow"].origins == ("a", "b")
    assert rewritten == net
    assert to_yaml(rewritten) == to_yaml(net)
    assert "as written: a, b" in rewritten.explain()
