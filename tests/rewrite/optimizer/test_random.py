"""Random network, any rule, any cutting: the same rows, points, dead letters and accounts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.local import LocalEngine
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts
from penstock.rewrite.cost_model import cost_model
from penstock.rewrite.optimize import RULES, optimize
from penstock.testing import assert_same_result
from soak import count

from .random_cases import above_zero, networks, optimizer_cases

CHECKS = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}


def letters(result):
    return Counter(
        (each.box, each.offset, each.raw, each.reason, each.source) for each in result.dead_letters
    )


def assert_same_meaning(expected, rewritten, trains):
    result = LocalEngine(rewritten).run(trains)
    assert_same_result(result, expected)
    assert letters(result) == letters(expected)
    assert result.accounts == expected.accounts


@st.composite
def figures(draw, network):
    """Measured figures of some boxes, whatever they say: no figure may make a rule wrong."""
    boxes = draw(st.lists(st.sampled_from([name for name, node in network.nodes.items()]), unique=True))
    lines = st.sampled_from((None, Line(0.0, 1e-8), Line(0.1, 5e-7), Line(0.0, 4e-5)))
    counts = st.sampled_from((0, 1, 10, 90, 100, 300))
    return cost_model(
        network,
        MeasuredCosts({name: MeasuredBox(name, "n", 1, 100, draw(counts), draw(lines)) for name in boxes}),
    )


@settings(max_examples=count(200, soak=2_000), **CHECKS)
@given(optimizer_cases(), st.data())
def test_every_rule_keeps_the_meaning(case, data):
    costs = data.draw(figures(case.network))
    expected = LocalEngine(case.network).run(case.trains[0])
    forms = {rule.name: rule(case.network, costs) for rule in RULES}
    forms["all rules"] = optimize(case.network, costs).network
    for name, network in forms.items():
        if network is not case.network:
            event(f"changed by {name}")
            assert_same_meaning(expected, network, case.trains[0])


@settings(max_examples=count(60, soak=1_000), **CHECKS)
@given(networks(), st.permutations(RULES), st.data())
def test_rules_end_in_any_order(network, rules, data):
    costs = data.draw(figures(network))
    plan = optimize(network, costs, rules=rules)
    assert len(plan.steps) < 200
    again = optimize(plan.network, costs, rules=rules)
    assert again.steps == ()
    assert plan.after <= plan.before * (1 + 1e-6)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_that_has_nothing_to_do_gives_the_network_back(rule):
    import penstock as ps

    net = ps.Network("plain")
    net.source("ticks", ps.rate(5)).output("all", to=ps.console())
    assert rule(net) is net


def test_rules_end_behind_a_box_that_let_nothing_through():
    """There every form would cost the same, and rules could undo each other for ever."""
    net = ps.Network("dry")
    schema = "time TIMESTAMP, k INT, v INT, w DOUBLE, s STRING, f INT"
    cars = net.source("cars", ps.csv("in/", schema), timestamp="time").group_by("k", "f", name="none")
    slid = cars.slide("10 seconds", every="1 second", total="sum(v)", last="max(s)", name="slid")
    slid.filter(above_zero, reads="k", rowwise=True, name="some").output("out", to=ps.console())
    dry = MeasuredCosts({"none": MeasuredBox("none", "n", 1, 100, 0, Line(0.0, 1e-8))})
    rules = sorted(RULES, key=lambda rule: rule.name, reverse=True)  # push, prune, ..., merge maps
    assert len(optimize(net, cost_model(net, dry), rules=rules).steps) < 50
