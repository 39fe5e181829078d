"""What the optimizer reckons with: measured figures where there are some, defaults elsewhere."""

from __future__ import annotations

import pytest
from benchmarks.engine.optimizer_networks import PAIRS

import penstock as ps
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts
from penstock.rewrite.cost_model import CostModel, cost_model, cpu_a_tuple, predicate_share
from penstock.rewrite.optimize import RULES, optimize
from penstock.testing import collect, rows_source

RULE = {rule.name: rule for rule in RULES}


def two_filters():
    net = ps.Network("n")
    stream = net.source("cars", rows_source("k INT, v INT"))
    stream.filter("k = 1", name="first").filter("v > 3", name="second").output("out", to=collect())
    return net


def measured(**boxes):
    """Microseconds a tuple and tuples out of a hundred, by box."""
    return MeasuredCosts(
        {name: MeasuredBox(name, "n", 1, 100, out, Line(0, us / 1e6)) for name, (us, out) in boxes.items()}
    )


def order(net):
    return [name for name in net.nodes if name in ("first", "second")]


def test_without_figures_an_equality_goes_before_a_comparison():
    assert order(RULE["order boxes"](two_filters())) == ["first", "second"]


def test_measured_figures_turn_the_order():
    net = two_filters()
    costs = cost_model(net, measured(first=(2.0, 90), second=(0.1, 10)))
    assert order(RULE["order boxes"](net, costs)) == ["second", "first"]
    assert costs.total(net) == pytest.approx(2.0 + 0.9 * 0.1)


def test_a_merged_box_costs_what_its_parts_cost():
    net = two_filters()
    costs = cost_model(net, measured(first=(2.0, 50), second=(1.0, 10)))
    (both,) = [node for node in RULE["merge filters"](net, costs).nodes.values() if node.is_box]
    assert both.origins == ("first", "second")
    assert costs.logic(both) == pytest.approx(2.0 + 0.5 * 1.0)
    assert costs.selectivity(both) == pytest.approx(0.05)


def test_filters_merge_though_one_was_not_measured():
    """In long trains some boxes have no cost of their own; the parts then count one by one."""
    net = two_filters()
    costs = cost_model(net, measured(first=(0.001, 50)))
    (both,) = [node for node in RULE["merge filters"](net, costs).nodes.values() if node.is_box]
    assert costs.logic(both) == pytest.approx(0.001 + 0.5 * 0.03)
    assert costs.selectivity(both) == pytest.approx(0.5 / 3)


def test_a_part_of_a_filter_lets_more_through_than_the_whole():
    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time")
    windows = cars.group_by("k").tumble("1 minute", n="count(v)")
    windows.filter("k = 1 AND n = 3", name="some").output("out", to=collect())
    costs = cost_model(net, measured(some=(0.1, 1)))
    parts = [n for n in RULE["push filters"](net, costs).nodes.values() if n.kind == "filter"]
    assert [costs.selectivity(part) for part in parts] == pytest.approx([0.1, 0.1])


def test_the_fixed_cost_of_a_train_is_spread_over_its_tuples():
    box = MeasuredBox("slow", "n", trains=2, tuples_in=200, tuples_out=2, cpu=Line(0.001, 1e-6))
    assert cpu_a_tuple(box) == pytest.approx(11.0)
    assert cpu_a_tuple(MeasuredBox("native", "n", 1, 100, 10)) is None


def test_rates_of_sources_count():
    net = two_filters()
    assert CostModel(rates={"cars": 1000.0}).total(net) == pytest.approx(1000 * CostModel().total(net))


@pytest.mark.parametrize(
    ("predicate", "share"),
    [("a = 1", 0.1), ("a <> 1", 0.9), ("NOT a = 1", 0.9), ("a IN (1, 2)", 0.2), ("a = 1 AND b = 2", 0.01)],
)
def test_rules_of_thumb(predicate, share):
    assert predicate_share(predicate) == pytest.approx(share)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_as_good_as_by_hand_by_the_model(pair):
    """The benchmark measures it; here the model says that nothing was missed."""
    plan = optimize(pair.as_written())
    assert plan.after <= plan.before
    assert plan.after <= plan.costs.total(pair.by_hand()) * 1.05
