"""Forms are found again from their figures; counts go under the names as written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.model.costs import Line, MeasuredBox
from penstock.model.writing.network import Network
from penstock.rewrite.as_written import WrittenNames
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.forms import Form
from penstock.rewrite.optimize import RULES
from penstock.rewrite.rules.share_prefixes import share_prefixes
from penstock.rewrite.settling import lacking, stateful
from penstock.rewrite.subnetworks import split
from penstock.rewrite.texts import all_of
from penstock.testing import collect, rows_source

RULE = {rule.name: rule for rule in RULES}


def cars(build):
    net = Network("n")
    build(net.source("cars", rows_source("time TIMESTAMP, k INT, v INT, w DOUBLE"), timestamp="time"))
    return net


def windows(stream):
    counted = stream.group_by("k", name="by_k").tumble("1 minute", n="max(v)", name="minutes")
    counted.filter("k = 1", name="first").output("out", to=collect())


def test_a_form_survives_the_disk():
    box = MeasuredBox("first", "n", 3, 100, 10, Line(0.1, 2e-6))
    form = Form(
        True,
        True,
        {"first": box, "by_k": replace(box, box="by_k", cpu=None)},
        {"cars": 5.0},
        frozenset({"minutes"}),
        7,
        frozenset({("first", "minutes")}),
    )
    assert Form.of_plain(form.plain()) == form


def test_columns_left_out_before_the_first_train_stay_out():
    """Later, when the window is in use, the other rules go on from there: its input stays what it was."""
    (sub,) = split(cars(windows))
    first = Form(pruned=True).of(sub)
    later = Form(pruned=True, rewritten=True, in_use=stateful(sub.network)).of(sub)
    assert first.network.input_types("minutes")[0].schema.names == ("k", "v")
    assert later.network.input_types("minutes") == first.network.input_types("minutes")
    assert later.network != first.network
    assert later.as_written is sub.network


def test_a_form_that_changes_nothing_is_the_sub_network_itself():
    (sub,) = split(cars(lambda s: s.output("out", to=collect())))
    assert Form(rewritten=True).of(sub) is sub


def test_a_filter_in_front_keeps_tuples_out_of_the_state():
    (sub,) = split(cars(windows))
    form = Form(rewritten=True, in_use=frozenset({"minutes"})).of(sub)
    assert lacking(form.network, sub.network) == {("first", "minutes")}
    assert lacking(sub.network, sub.network) == set()


def test_filters_leave_once_their_tuples_are_gone():
    (sub,) = split(cars(windows))
    form = Form(rewritten=True, in_use=frozenset({"minutes"}), newest=0)
    later = form.passed(form.of(sub), 3 * 60_000_000)
    assert later.settled == {("first", "minutes")}
    assert [n.kind for n in form.of(sub).network.nodes.values()].count("filter") == 2
    assert [n.kind for n in later.of(sub).network.nodes.values()].count("filter") == 1


def blunt_and_sharp():
    """Figures by which pushing the filter does not pay, and by which it does."""
    return tuple(
        {"first": MeasuredBox("first", "n", 10, 1000, out, Line(0.0, cost))}
        for out, cost in ((1000, 1e-6), (10, 1e-8))
    )


def test_a_filter_that_was_never_in_front_is_not_settled():
    """It is pushed later, by other figures: then it must stay."""
    (sub,) = split(cars(windows))
    blunt, sharp = blunt_and_sharp()
    form = Form(rewritten=True, boxes=blunt, in_use=stateful(sub.network), newest=0)
    assert lacking(form.of(sub).network, sub.network) == set()
    later = form.passed(form.of(sub), 3600_000_000)
    assert later.settled == set()
    pushed = replace(later, boxes=sharp).of(sub).network
    assert [n.kind for n in pushed.nodes.values()].count("filter") == 2


def test_a_filter_that_went_back_is_no_longer_settled():
    (sub,) = split(cars(windows))
    blunt, sharp = blunt_and_sharp()
    in_front = Form(rewritten=True, boxes=sharp, in_use=stateful(sub.network), newest=0)
    passed = in_front.passed(in_front.of(sub), 3600_000_000)
    assert passed.settled == {("first", "minutes")}
    back = replace(passed, boxes=blunt, newest=3600_000_000)
    assert lacking(back.of(sub).network, sub.network) == set()
    assert back.passed(back.of(sub), 3600_000_001).settled == set()


def test_a_filter_that_was_merged_with_a_settled_one_is_not_settled_by_it():
    def two(stream):
        counted = stream.group_by("k").tumble("1 minute", n="count(*)", name="minutes")
        counted.filter("k < 5", name="first").filter("k > 1", name="second").output("out", to=collect())

    (sub,) = split(cars(two))
    form = Form(rewritten=True, in_use=stateful(sub.network), newest=0)
    (merged,) = [
        n for n in form.of(sub).network.nodes.values() if n.kind == "filter" and "minutes" in n.inputs
    ]
    assert merged.origins == ("first", "second")
    later = form.passed(form.of(sub), 3600_000_000)
    assert later.settled == lacking(form.of(sub).network, sub.network)


def only_filter(form):
    (name,) = [node.name for node in form.nodes.values() if node.kind == "filter"]
    return name


def counts_of(net, form, counts):
    return WrittenNames(form, net).counts(counts)


def test_a_box_that_nobody_touched_keeps_its_counts():
    net = cars(windows)
    counts = {"minutes": {"in": 5, "out": 2, "dead": 1, "estimated": 1}, "cars": {"in": 9, "out": 9}}
    assert counts_of(net, net, counts) == counts


def test_two_boxes_in_one_share_its_counts():
    net = cars(lambda s: s.filter("k = 1", name="a").filter("v > 3", name="b").output("out", to=collect()))
    form = RULE["merge filters"](net)
    assert counts_of(net, form, {"a_and_b": {"in": 100, "out": 25}}) == {
        "a": {"in": 100, "out": 50, "estimated": 1},
        "b": {"in": 50, "out": 25, "estimated": 1},
    }


def test_copies_are_counted_together():
    def build(stream):
        both = stream.map(x="v", name="one").union(stream.map(x="k", name="two"), name="both")
        both.filter("x = 1", name="some").output("out", to=collect())

    net = cars(build)
    form = RULE["push filters"](net)
    copies = [node.name for node in form.nodes.values() if node.kind == "filter"]
    assert len(copies) == 2
    counts = {name: {"in": 10, "out": 3} for name in copies}
    assert counts_of(net, form, counts) == {"some": {"in": 20, "out": 6}}


def test_a_filter_that_also_stays_behind_is_one_box():
    net = cars(windows)
    (sub,) = split(net)
    form = Form(rewritten=True, in_use=frozenset({"minutes"})).of(sub).network
    front, behind = (node.name for node in form.nodes.values() if node.kind == "filter")
    counts = {front: {"in": 100, "out": 20}, "minutes": {"in": 20, "out": 4}, behind: {"in": 4, "out": 3}}
    folded = counts_of(net, form, counts)
    # The window is between them: 3 of 100 is not what the filter lets through, so no cost may rest on it.
    assert folded["first"] == {"in": 100, "out": 3, "estimated": 1}
    assert folded["minutes"] == {"in": 20, "out": 4}


def test_a_box_written_twice_counts_twice():
    def build(stream):
        for name in ("one", "two"):
            stream.filter("k = 1", name=name).output(f"out_{name}", to=collect())

    net = cars(build)
    form = RULE["share prefixes"](net)
    assert form.nodes["one"].stands_for == ("one", "two")
    assert counts_of(net, form, {"one": {"in": 8, "out": 2}}) == {
        "one": {"in": 8, "out": 2},
        "two": {"in": 8, "out": 2},
    }


@pytest.mark.parametrize("order", [("chain", "whole"), ("whole", "chain")])
def test_a_chain_and_a_box_that_does_all_of_it_count_each_under_its_name(order):
    """Whichever of them runs: what passes between the boxes of the chain is estimated, the rest is not."""

    def build(stream):
        ends = {
            "chain": lambda: stream.filter("k = 1", name="a").filter("v > 3", name="b"),
            "whole": lambda: stream.filter(all_of(["k = 1", "v > 3"]), name="whole"),
        }
        for name in order:
            ends[name]().output(f"out_{name}", to=collect())

    net = cars(build)
    form = RULE["share prefixes"](RULE["merge filters"](net))
    assert set(form.nodes[only_filter(form)].stands_for) == {"a", "b", "whole"}
    assert counts_of(net, form, {only_filter(form): {"in": 100, "out": 25}}) == {
        "a": {"in": 100, "out": 50, "estimated": 1},
        "b": {"in": 50, "out": 25, "estimated": 1},
        "whole": {"in": 100, "out": 25},
    }


def test_a_twin_of_a_part_keeps_its_place_in_the_whole():
    """Equal chains are shared box by box and merged; then they are shared with a box that does it all."""

    def build(stream):
        stream.filter(all_of(["k = 1", "v > 3"]), name="whole").output("out", to=collect())
        for one, two in (("a", "b"), ("also_a", "also_b")):
            chain = stream.filter("k = 1", name=one).filter("v > 3", name=two)
            chain.output(f"out_{two}", to=collect())

    net = cars(build)
    form = RULE["share prefixes"](RULE["merge filters"](RULE["share prefixes"](net)))
    part, rest = {"in": 100, "out": 50, "estimated": 1}, {"in": 50, "out": 25, "estimated": 1}
    assert counts_of(net, form, {only_filter(form): {"in": 100, "out": 25}}) == {
        "whole": {"in": 100, "out": 25},
        "a": part,
        "also_a": part,
        "b": rest,
        "also_b": rest,
    }


def test_a_box_that_was_shared_before_brings_its_twin():
    def build(stream):
        for name in ("one", "two", "three"):
            stream.filter("k = 1", name=name).output(f"out_{name}", to=collect())

    net = cars(build)
    for step in share_prefixes(net, CostModel()):
        form = RULE["share prefixes"](step.network)
        counted = counts_of(net, form, {only_filter(form): {"in": 8, "out": 2}})
        assert counted == {key: {"in": 8, "out": 2} for key in ("one", "two", "three")}


def test_what_a_rule_put_in_has_no_name_as_written():
    net = cars(windows)
    form = RULE["prune columns"](net)
    (put_in,) = [name for name in form.nodes if name not in net.nodes]
    assert counts_of(net, form, {put_in: {"in": 5, "out": 5}}) == {}
    assert WrittenNames(form, net).costs({put_in: 1.0, "minutes": 2.0}) == {"minutes": 2.0}
