"""The oracle's linear program, the contenders that are not ours, and driver and watcher as processes."""

from __future__ import annotations

import itertools
import time
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.qos.contenders import (
    NAMES,
    UNSHED,
    LatencyFeedback,
    Told,
    at_the_source,
    branch_costs,
    controller,
)
from benchmarks.qos.oracle import best_shares, maximise
from benchmarks.qos.processes.watcher import files_in, new_files
from benchmarks.qos.traffic import Phase, TrafficPlan, arrivals_in, write_files
from benchmarks.qos.trial import beside
from benchmarks.qos.workload import OUTPUTS, PERMUTATIONS, START, Burn, graphs, network, worth_kept
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.control.loop.plan import Memory
from penstock.control.roadmap import LoadNode
from penstock.control.shedder import Shedding
from penstock.control.valve_places import places
from penstock.rewrite.subnetworks import split

LOOSE = ps.QoS(delay=[(0, 1), (5, 1), (9, 0)], loss=[(0, 0), (50, 0.9), (100, 1)])
LINE = ps.QoS(delay=[(0, 1), (5, 1), (9, 0)], loss=[(0, 0), (100, 1)], weight=4)


def test_with_capacity_to_spare_the_oracle_keeps_all():
    nodes = [LoadNode("shared", 0.5, frozenset("ab")), LoadNode("a", 0.3, frozenset("a"))]
    bound = best_shares(nodes, {"a": LOOSE, "b": LINE}, capacity=1.0)
    assert bound.utility == pytest.approx(1.0)
    assert bound.shares == pytest.approx({"a": 1.0, "b": 1.0})


def test_the_oracle_drops_where_it_costs_least():
    nodes = [LoadNode("a", 1.0, frozenset("a")), LoadNode("b", 1.0, frozenset("b"))]
    bound = best_shares(nodes, {"a": LOOSE, "b": LINE}, capacity=1.5)
    assert bound.shares == pytest.approx({"a": 0.5, "b": 1.0})
    assert bound.utility == pytest.approx((0.9 + 4) / 5)


def test_a_shared_node_works_for_the_largest_share():
    nodes = [LoadNode("shared", 2.0, frozenset("ab"))]
    bound = best_shares(nodes, {"a": LOOSE, "b": LINE}, capacity=1.0)
    assert bound.shares == pytest.approx({"a": 0.5, "b": 0.5})


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.floats(0.1, 2.0), min_size=3, max_size=3),
    st.floats(0.3, 4.0),
    st.floats(0.1, 1.0),
)
def test_the_oracle_is_at_least_as_good_as_any_grid_of_shares(loads, capacity, shared):
    qos = {"a": LOOSE, "b": LINE, "c": LOOSE}
    nodes = [
        LoadNode("shared", shared, frozenset("abc")),
        *(LoadNode(name, load, frozenset(name)) for name, load in zip("abc", loads, strict=True)),
    ]
    grid = np.linspace(0, 1, 6)
    best = max(
        sum(qos[n].weight * qos[n].at_share(x) for n, x in zip("abc", shares, strict=True))
        for shares in itertools.product(grid, repeat=3)
        if shared * max(shares) + float(np.dot(loads, shares)) <= capacity
    )
    bound = best_shares(nodes, qos, capacity)
    assert bound.utility >= best / 6 - 1e-9
    used = shared * max(bound.shares.values()) + sum(
        load * bound.shares[name] for name, load in zip("abc", loads, strict=True)
    )
    assert used <= capacity + 1e-6


def test_a_program_without_a_bound_is_refused():
    with pytest.raises(ValueError, match="no bound"):
        maximise(np.array([1.0]), np.array([[-1.0]]), np.array([1.0]))


def test_every_contender_can_be_made():
    contenders = {name: controller(name, Told(2.0, 2.0)) for name in NAMES}
    assert contenders["none"] is None
    assert contenders["static"].share == 0.5
    assert [contenders[name].settings.priority for name in UNSHED] == list(UNSHED.values())
    assert not any(contenders[name].settings.shed for name in UNSHED)
    assert [contenders[name].settings.shed for name in ("state", "feedback")] == [True, True]
    with pytest.raises(ValueError, match="no contender"):
        controller("magic", Told(2.0, 2.0))


def test_by_branch_sheds_the_branch_that_costs_and_nothing_else(tmp_path):
    net = network(tmp_path / "in", tmp_path / "out", PERMUTATIONS[0])
    nodes = [LoadNode("all", 0.5, frozenset(OUTPUTS)), LoadNode("burn", 1.5, frozenset(["scores"]))]
    control = controller("costliest", Told(2.0, 2.0, nodes, places(net)))
    first = next(sub for sub in split(net) if "cars" in sub.inputs)
    control._memory = Memory(Shedding(kept=0.625))
    (valve,) = control.valves_for(first)
    assert (valve.at, valve.share) == ("metric->burn", 0.5)
    control._memory = Memory(Shedding(kept=1.0))
    assert control.valves_for(first) == ()


def test_work_that_branches_share_belongs_to_none():
    nodes = [LoadNode("all", 0.5, frozenset("ab")), LoadNode("a", 0.2, frozenset("a"))]
    assert branch_costs([*nodes, LoadNode("b", 0.3, frozenset("b"))]) == {"a": 0.2, "b": 0.3}


def test_dropping_at_the_source_takes_blocks_of_all_outputs():
    assert at_the_source(1.0) == ()
    (valve,) = at_the_source(0.3)
    assert (valve.at, valve.share, valve.grain) == ("cars", 0.3, "blocks")


def test_feedback_on_the_delay_tightens_when_late_and_loosens_slowly():
    feedback = LatencyFeedback(2.0)
    assert feedback.next_share(1.0, age=1.5) == pytest.approx(0.9)
    assert feedback.next_share(0.5, age=0.2) == pytest.approx(0.51)
    assert feedback.next_share(0.01, age=9.0) == 0.01


@pytest.mark.parametrize("assignment", PERMUTATIONS, ids=lambda each: each.name)
def test_every_permutation_is_a_network_that_may_be_shed(assignment, tmp_path):
    net = network(tmp_path / "in", tmp_path / "out", assignment)
    assert sorted(graphs(assignment)) == sorted(OUTPUTS)
    source = next(place for place in places(net) if place.at == "cars")
    assert source.outputs == set(OUTPUTS)
    assert (source.grain is None) == assignment.all_or_nothing
    assert any(place.grain and place.outputs == {"scores"} for place in places(net))


def test_burning_uses_the_time_it_says_and_changes_nothing():
    table = pa.table({"spd": pa.array([3, 4] * 500, pa.int32())})
    before = time.thread_time()
    assert Burn(50.0)(table)["score"].to_pylist() == [3.0, 4.0] * 500
    assert time.thread_time() - before >= 0.05


def test_while_it_is_doubled_a_box_uses_twice_the_time():
    times = [START + timedelta(seconds=at) for at in (1, 2, 3)] * 400
    table = pa.table({"time": pa.array(times, pa.timestamp("us", "UTC")), "spd": pa.array([3] * 1200)})
    assert [Burn(50.0, doubled)._doubled(table) for doubled in (None, (3.0, 9.0), (1.0, 3.0))] == [
        0,
        400,
        800,
    ]
    before = time.thread_time()
    Burn(50.0, (3.0, 9.0))(table)
    assert time.thread_time() - before >= 0.08


def test_the_oracle_keeps_the_tuples_that_are_worth_most():
    nodes = [LoadNode("a", 1.0, frozenset("a"))]
    plain, by_value = (best_shares(nodes, {"a": LINE}, 0.5, curves) for curves in ({}, {"a": worth_kept}))
    assert (plain.shares["a"], by_value.shares["a"]) == pytest.approx((0.5, 0.5))
    assert plain.utility == pytest.approx(0.5)
    assert by_value.utility == pytest.approx(worth_kept(0.5))


def test_driver_and_watcher_are_processes_that_stamp(tmp_path):
    plan = TrafficPlan((Phase("calm", 0.5, 40),))
    prepared = write_files(plan, tmp_path / "prepared", 1)
    (tmp_path / "out" / "alarms").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    with beside("watcher", tmp_path / "out", tmp_path / "seen"):
        with beside("driver", prepared, tmp_path / "in", tmp_path / "given", 0.25) as driver:
            driver.wait(60)
        (tmp_path / "out" / "alarms" / "part-1.parquet").write_text("")
        (tmp_path / "out" / "alarms" / ".staged.parquet").write_text("")
        while not (tmp_path / "seen").exists() or not (tmp_path / "seen").read_text():
            time.sleep(0.01)
    assert len(arrivals_in(tmp_path / "given")) == 2
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["000000.csv", "000001.csv"]
    assert [(output, name) for output, name, _ in files_in(tmp_path / "seen")] == [
        ("alarms", "part-1.parquet")
    ]


def test_a_file_is_seen_once(tmp_path):
    (tmp_path / "means").mkdir()
    (tmp_path / "means" / "a.parquet").write_text("")
    seen, changed = set(), {}
    assert list(new_files(tmp_path, seen, changed)) == [("means", "a.parquet")]
    (tmp_path / "means" / "b.parquet").write_text("")
    assert list(new_files(tmp_path, seen, changed)) == [("means", "b.parquet")]
