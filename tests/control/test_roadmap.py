"""The road map against the best that there is, over random networks of loads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import penstock as ps
from penstock.control.roadmap import LoadNode, road_map

DELAY = [(0, 1), (2, 1), (12, 0)]


def qos(loss, weight=1.0):
    return ps.QoS(delay=DELAY, loss=loss, weight=weight)


TOLERANT, LINEAR = [(0, 0), (20, 0.8), (100, 1)], [(0, 0), (100, 1)]


def random_case(seed):
    """Three outputs below a tree: a shared source, perhaps a shared branch, a branch for each."""
    random = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    graphs = {}
    for name in names:
        knee = float(random.uniform(5, 95))
        height = float(random.uniform(knee / 100, 1))
        graphs[name] = qos([(0, 0), (knee, height), (100, 1)], float(random.uniform(0.5, 4)))
    nodes = [LoadNode("source", float(random.uniform(0, 2)), frozenset(names))]
    if random.random() < 0.7:
        pair = frozenset(random.choice(names, 2, replace=False).tolist())
        nodes.append(LoadNode("pair", float(random.uniform(0, 2)), pair))
    nodes += [LoadNode(name, float(random.uniform(0, 2)), frozenset((name,))) for name in names]
    return nodes, graphs


def best(nodes, graphs, load):
    """The most utility at this load, by trying all shares in steps of 1/40."""
    names = sorted(graphs)
    grid = np.meshgrid(*[np.linspace(0, 1, 41)] * len(names), indexing="ij")
    shares = dict(zip(names, grid, strict=True))
    used = sum(n.load * np.maximum.reduce([shares[o] for o in n.outputs]) for n in nodes)
    worth = sum(
        g.weight * np.interp(100 * shares[name], [x for x, _ in g.loss], [y for _, y in g.loss])
        for name, g in graphs.items()
    )
    return float(worth[used <= load + 1e-9].max())


def test_greedy_with_joint_moves_is_close_to_the_best(record_property):
    ratios = []
    for seed in range(40):
        nodes, graphs = random_case(seed)
        rows = road_map(nodes, graphs)
        everything = sum(g.weight for g in graphs.values())
        for part in (0.8, 0.5, 0.25):
            ours = everything - rows.row_for(part * rows.full).lost
            ratios.append(ours / max(1e-9, best(nodes, graphs, part * rows.full)))
    record_property("cases", len(ratios))
    record_property("worst", round(min(ratios), 4))
    assert min(ratios) >= 0.98
    assert np.mean(ratios) >= 0.995


def test_rows_save_more_and_cost_more():
    for seed in range(20):
        nodes, graphs = random_case(100 + seed)
        rows = road_map(nodes, graphs).rows
        assert all(b.load < a.load and b.lost >= a.lost - 1e-9 for a, b in pairwise(rows))
        assert rows[0].lost == 0
        assert rows[-1].load == pytest.approx(0, abs=1e-9)


def test_outputs_without_a_loss_graph_are_never_lowered():
    nodes = [LoadNode("source", 1.0, frozenset("ab")), LoadNode("b", 1.0, frozenset("b"))]
    strict = ps.QoS(delay=DELAY)
    for graphs in ({"a": strict, "b": qos(LINEAR)}, {"b": qos(LINEAR)}):
        rows = road_map(nodes, graphs)
        assert all(row.shares["a"] == 1 for row in rows.rows)
        assert rows.rows[-1].load == pytest.approx(1.0)
        assert rows.row_for(0.1) == rows.rows[-1]


def test_the_tolerant_and_the_cheap_to_lose_go_first():
    nodes = [LoadNode("a", 1.0, frozenset("a")), LoadNode("b", 1.0, frozenset("b"))]
    row = road_map(nodes, {"a": qos(TOLERANT), "b": qos(LINEAR)}).row_for(1.5)
    assert row.shares["b"] == 1
    assert row.shares["a"] == pytest.approx(0.5)
    heavy = road_map(nodes, {"a": qos(LINEAR), "b": qos(LINEAR, 4)}).row_for(1.5)
    assert heavy.shares["b"] == 1


def test_outputs_that_share_all_work_go_down_together():
    nodes = [LoadNode("source", 2.0, frozenset("ab"))]
    row = road_map(nodes, {"a": qos(LINEAR), "b": qos(TOLERANT)}).row_for(1.0)
    assert row.load <= 1.0
    assert row.shares["a"] == row.shares["b"] == pytest.approx(0.5)


def test_outputs_that_only_a_common_valve_serves_go_down_together():
    both = frozenset(("a", "b"))
    nodes = [LoadNode("source", 1.0, both), LoadNode("a", 5.0, frozenset("a"))]
    graphs = {"a": qos(LINEAR), "b": qos(LINEAR)}
    assert road_map(nodes, graphs).rows[1].shares == {"a": 0.99, "b": 1.0}
    rows = road_map(nodes, graphs, together={"a": both, "b": both}).rows
    assert all(row.shares["a"] == row.shares["b"] for row in rows)
    assert rows[-1].load == 0


def test_an_output_without_a_valve_of_its_own_is_never_below_those_beside_it():
    nodes = [LoadNode("source", 1.0, frozenset(("a", "b"))), LoadNode("b", 5.0, frozenset("b"))]
    graphs = {"a": qos(LINEAR), "b": qos(LINEAR)}
    rows = road_map(nodes, graphs, together={"a": frozenset(("a", "b")), "b": frozenset("b")}).rows
    assert rows[1].shares == {"a": 1.0, "b": 0.99}
    assert all(row.shares["a"] >= row.shares["b"] for row in rows)
    assert rows[-1].load == 0
