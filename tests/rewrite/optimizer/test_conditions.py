"""What each precondition is for: without it the rule would act, and the answer would be another one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.engine.local import LocalEngine
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.optimize import RULES, optimize
from penstock.rewrite.rules import (
    columns,
    look_up,
    merge_neighbours,
    prune_columns,
    push_filters,
    share_prefixes,
)
from penstock.rewrite.settling import lacking, settled
from penstock.testing import HandClock, assert_same_result, collect, rows_source

from .swapping import run_with_swaps, same_inputs
from .test_random import letters

RULE = {rule.name: rule for rule in RULES}
ANY = {"k": 1, "v": 5, "w": 0.5, "s": "a"}


def network(build, *schemas):
    net = Network("n")
    schemas = schemas or ("time TIMESTAMP, k INT, v INT, w DOUBLE, s STRING",)
    streams = [
        net.source(f"in_{at}", rows_source(schema), timestamp="time", idle="1 second")
        for at, schema in enumerate(schemas)
    ]
    build(*streams)
    return net


def rows(*values):
    return [{"time": second, **ANY, **value} for second, value in enumerate(values)]


def same(one, other, trains):
    """Whether two networks give the same rows, points and dead letters."""
    first, second = LocalEngine(one).run(trains), LocalEngine(other).run(trains)
    try:
        assert_same_result(first, second)
    except AssertionError:
        return False
    return letters(first) == letters(second)


def needed(monkeypatch, net, rule, trains, module, condition):
    """The rule leaves the network alone; without the condition it acts, and the answer changes."""
    assert RULE[rule](net) is net
    monkeypatch.setattr(module, condition, lambda *_: True)
    broken = RULE[rule](net)
    assert broken is not net
    assert not same(net, broken, trains)


def test_a_map_that_fails_must_see_all_its_tuples(monkeypatch):
    net = network(lambda s: s.map(p="60 / v").filter("k = 1").output("out", to=collect()))
    trains = [{"in_0": rows({"v": 0, "k": 2}, {"v": 0, "k": 1}, {})}]
    needed(monkeypatch, net, "push filters", trains, push_filters, "never_fails")


def test_a_filter_that_fails_keeps_its_name_in_dead_letters(monkeypatch):
    net = network(lambda s: s.filter("k < 9").filter("10 / v > 1").output("out", to=collect()))
    trains = [{"in_0": rows({"v": 0}, {"v": 2})}]
    needed(monkeypatch, net, "merge filters", trains, merge_neighbours, "never_fails")


def test_a_map_that_fails_is_no_map_that_nobody_reads(monkeypatch):
    net = network(lambda s: s.map(p="60 / v").select("time", "k").output("out", to=collect()))
    trains = [{"in_0": rows({"v": 0}, {"v": 2})}]
    monkeypatch.setattr(columns, "never_fails", lambda *_: True)
    needed(monkeypatch, net, "prune columns", trains, prune_columns, "never_fails")


def test_a_function_without_a_promise_sees_the_batch_that_it_saw(monkeypatch):
    net = network(
        lambda s: s.apply(batch_size, produces="n BIGINT").filter("k = 1").output("out", to=collect())
    )
    trains = [{"in_0": rows({"k": 2}, {"k": 1}, {"k": 1})}]
    needed(monkeypatch, net, "push filters", trains, push_filters, "never_fails")


def batch_size(batch):
    return {"n": pa.array([batch.num_rows] * batch.num_rows, pa.int64())}


def test_other_readers_keep_their_tuples(monkeypatch):
    def build(stream):
        mapped = stream.map(p="v * 2.0")
        mapped.output("all", to=collect())
        mapped.filter("k = 1").output("some", to=collect())

    trains = [{"in_0": rows({"k": 2}, {"k": 1})}]
    needed(monkeypatch, network(build), "push filters", trains, push_filters, "only_reader")


def test_equal_fractions_can_be_told_apart(monkeypatch):
    def build(stream):
        windows = stream.group_by("w").tumble("1 minute", n="count(*)")
        windows.filter("cast(w AS STRING) <> '-0.0'").output("out", to=collect())

    trains = [{"in_0": rows({"w": 0.0}, {"w": -0.0})}]
    needed(monkeypatch, network(build), "push filters", trains, push_filters, "exact_keys")


@pytest.mark.parametrize("aggregate", ["max(60 / v)", "60 / sum(v)", "sum(cast(v AS BIGINT) * 4294967295)"])
def test_a_window_that_refuses_must_see_all_its_tuples(monkeypatch, aggregate):
    def build(stream):
        stream.group_by("k").tumble("1 minute", n=aggregate).filter("k = 1").output("out", to=collect())

    big = 2**31 - 1
    trains = [{"in_0": rows({"v": 0, "k": 2}, {"v": 1}, *([{"v": big, "k": 3}] * 3))}]
    needed(monkeypatch, network(build), "push filters", trains, push_filters, "refuses_none")


def test_a_join_that_refuses_pairs_must_see_them_all(monkeypatch):
    def build(left, right):
        pairs = left.join(right, on="k", within="1 minute", where="10 / v > 1")
        pairs.filter("s = 'a'").output("out", to=collect())

    schema = "time TIMESTAMP, k INT, v INT, s STRING"
    net = network(build, schema, "time TIMESTAMP, k INT, x INT")
    trains = [{"in_0": rows({"v": 0, "s": "b"}, {"v": 2}), "in_1": [{"time": 1, "k": 1, "x": 1}]}]
    needed(monkeypatch, net, "push filters", trains, push_filters, "refuses_none")


def test_a_bound_on_memory_makes_other_tuples_matter(monkeypatch):
    def build(left, right):
        bounded = {"distribution": "diffused", "servers": 1, "memory": 2, "when_full": "replace"}
        left.join(right, on="k", within="1 minute", **bounded).filter("v > 1").output("out", to=collect())

    net = network(build, "time TIMESTAMP, k INT, v INT", "time TIMESTAMP, k INT, x INT")
    left = [{"time": second, "k": 1, "v": v} for second, v in enumerate((5, 1, 1, 1))]
    trains = [{"in_0": left}, {"in_1": [{"time": 4, "k": 1, "x": 1}]}]
    needed(monkeypatch, net, "push filters", trains, push_filters, "refuses_none")


def test_keys_of_two_types_are_not_one_column(monkeypatch):
    def build(left, right):
        pairs = left.join(right, on="k", within="1 minute")
        pairs.filter("cast(k AS STRING) = '1'").output("out", to=collect())

    net = network(build, "time TIMESTAMP, k INT, v INT", "time TIMESTAMP, k DOUBLE, x INT")
    trains = [{"in_0": rows({"k": 1}), "in_1": [{"time": 0, "k": 1.0, "x": 1}]}]
    pushed = RULE["push filters"](net)
    assert [name for name in pushed.nodes if name.startswith("filter")] == ["filter_1"]  # the left side alone
    assert same(net, pushed, trains)
    both = network(
        lambda left, right: (
            left.filter("cast(k AS STRING) = '1'")
            .join(right.filter("cast(k AS STRING) = '1'"), on="k", within="1 minute")
            .output("out", to=collect())
        ),
        "time TIMESTAMP, k INT, v INT",
        "time TIMESTAMP, k DOUBLE, x INT",
    )
    assert not same(net, both, trains)


def test_ties_are_broken_by_columns_that_nobody_reads(monkeypatch):
    """The pairs of a join share a place in the order of arrival; their values decide which is the last."""

    def build(left, right):
        pairs = left.join(right, on="k", within="1 minute")
        pairs.tumble("1 minute", last="last(x)").output("out", to=collect())

    net = network(build, "time TIMESTAMP, k INT", "time TIMESTAMP, k INT, a INT, x INT")
    trains = [
        {"in_0": [{"time": 0, "k": 1}], "in_1": [{"time": 0, "k": 1, "a": a, "x": -a} for a in (1, 2, 3)]}
    ]
    needed(monkeypatch, net, "prune columns", trains, columns, "_ties_do_not_matter")


def test_a_dead_letter_shows_the_columns_that_nobody_reads(monkeypatch):
    net = network(lambda s: s.tumble("1 minute", p="max(60 / v)").output("out", to=collect()))
    trains = [{"in_0": rows({"v": 0}, {"v": 2})}]
    needed(monkeypatch, net, "prune columns", trains, columns, "arguments_never_fail")


def test_two_drops_draw_two_lots(monkeypatch):
    def build(stream):
        stream.drop(0.5, name="one").output("first", to=collect())
        stream.drop(0.5, name="other").output("second", to=collect())

    trains = [{"in_0": rows(*([{}] * 20))}]
    needed(monkeypatch, network(build), "share prefixes", trains, share_prefixes, "_may_be_shared")


def test_two_boxes_that_fail_give_two_dead_letters(monkeypatch):
    def build(stream):
        stream.map(p="60 / v", name="one").output("first", to=collect())
        stream.map(p="60 / v", name="other").output("second", to=collect())

    trains = [{"in_0": rows({"v": 0})}]
    needed(monkeypatch, network(build), "share prefixes", trains, share_prefixes, "never_fails")


def test_two_lambdas_are_two_functions(monkeypatch):
    def build(stream):
        stream.filter(lambda b: pa.array([True] * b.num_rows), reads="k", rowwise=True).output(
            "a", to=collect()
        )
        stream.filter(lambda b: pa.array([False] * b.num_rows), reads="k", rowwise=True).output(
            "b", to=collect()
        )

    net = network(build)
    assert len({node.function for node in net.nodes.values() if getattr(node, "function", None)}) == 1
    needed(monkeypatch, net, "share prefixes", [{"in_0": rows({})}], share_prefixes, "_same_function")


def test_a_look_up_needs_keys_of_one_type(monkeypatch):
    def build(left, right):
        point = right.connection_point("kept", key="k")
        asked = left.filter("cast(k AS STRING) = '1'")
        asked.join(point, on="k", within="1 minute").output("out", to=collect())

    net = network(build, "time TIMESTAMP, k INT", "time TIMESTAMP, k DOUBLE, x INT")
    trains = [{"in_0": [{"time": 0, "k": 1}], "in_1": [{"time": 0, "k": 1.0, "x": 1}]}]
    needed(monkeypatch, net, "look up", trains, look_up, "_same_type")


# --- state in front ---


def test_groups_that_state_holds_already_would_come_out_unfiltered():
    def build(stream):
        windows = stream.group_by("k").tumble("1 minute", n="count(*)", name="minutes")
        windows.filter("k = 1", name="first").output("out", to=collect())

    net = network(build)
    trains = [{"in_0": rows({"k": 2}, {"k": 1})}, {"in_0": [{"time": 2, **ANY}]}]
    expected = LocalEngine(net).run(trains)
    aware = optimize(net, CostModel(in_use=frozenset({"minutes"}))).network
    assert [n.name for n in aware.nodes.values() if n.kind == "filter"] == ["first_group_by_1", "first"]
    assert_same_result(run_with_swaps(net, trains, {1: aware}), expected)
    unaware = RULE["push filters"](net)
    with pytest.raises(AssertionError, match="1 too many"):
        assert_same_result(run_with_swaps(net, trains, {1: unaware}), expected)


def test_a_filter_stays_until_the_horizon_has_passed_what_state_held():
    def build(stream):
        windows = stream.group_by("k").tumble("1 minute", n="count(*)", name="minutes")
        windows.filter("k = 1", name="first").output("out", to=collect())

    net = network(build)
    form = optimize(net, CostModel(in_use=frozenset({"minutes"}))).network
    minute, newest = 60_000_000, 1_000_000
    in_front = lacking(form, net)
    assert settled(form, in_front, {"minutes"}, newest, newest + 2 * minute) == frozenset()
    passed = settled(form, in_front, {"minutes"}, newest, newest + 2 * minute + 1)
    assert passed == {("first", "minutes")}
    later = optimize(net, CostModel(in_use=frozenset({"minutes"}), settled=passed)).network
    assert [n.name for n in later.nodes.values() if n.kind == "filter"] == ["first"]
    assert later.nodes["first"].inputs == ("in_0",)


def test_a_latch_never_forgets_so_the_filter_stays(monkeypatch):
    def build(stream):
        latest = stream.group_by("k").latch("1 minute", n="count(*)", name="latest")
        latest.filter("k = 1", name="first").output("out", to=collect())

    net = network(build)
    form = optimize(net, CostModel(in_use=frozenset({"latest"}))).network
    assert settled(form, lacking(form, net), {"latest"}, 0, 10**15) == frozenset()


def test_a_box_in_use_keeps_its_columns():
    """Its state was made of them: `prune columns` may leave some out only before the first train."""

    def build(stream):
        stream.group_by("k").tumble("1 minute", n="max(v)", name="minutes").output("out", to=collect())

    net = network(build)
    assert same_inputs(net, RULE["prune columns"](net, CostModel(in_use=frozenset({"minutes"}))))
    assert not same_inputs(net, RULE["prune columns"](net))


# --- lateness ---


def test_a_tuple_that_the_filter_removes_is_gone_before_it_can_be_late():
    """The only dead letters that a rule may spare: tuples which the filter would have removed anyway.

    An input sleeps; when it wakes up, a join has gone ahead of it. Which tuples are late then depends on the
    clock. Those that pass the filter are late in both forms.
    """

    def build(left, right):
        pairs = left.join(right, on="k", within="1 second")
        pairs.filter("v > 1").output("out", to=collect())

    net = network(build, "time TIMESTAMP, k INT, v INT", "time TIMESTAMP, k INT, x INT")
    late = {}
    for form in (net, RULE["push filters"](net)):
        clock = HandClock()
        engine = LocalEngine(form, clock=clock.now)
        engine.train({"in_0": [{"time": 0, "k": 1, "v": 1}], "in_1": [{"time": 0, "k": 1, "x": 1}]})
        clock.advance("5 seconds")
        engine.train({"in_1": [{"time": 100, "k": 1, "x": 1}]})
        result = engine.train({"in_0": [{"time": 1, "k": 1, "v": 1}, {"time": 1, "k": 1, "v": 5}]})
        late[form is net] = [each.raw for each in result.dead_letters if each.reason.startswith("late")]
    assert len(late[True]) == 2
    assert len(late[False]) == 1
    assert '"v": 5' in late[False][0]


def test_a_look_up_is_added_once():
    """Merged with another filter it stands in parentheses, and was taken for a missing one."""
    net = Network("n")
    asked = net.source("asked", rows_source("time TIMESTAMP, k INT"), timestamp="time")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time")
    kept = cars.connection_point("kept", key="k").filter("v > 1", name="big")
    pairs = asked.filter("k = 1 OR k = 2").join(kept, on="k", within="1 minute", name="pairs")
    pairs.output("out", to=collect())
    plan = optimize(net)
    assert [step.rule for step in plan.steps] == ["look up", "merge filters"]
    (filter_,) = [node for node in plan.network.nodes.values() if node.inputs == ("kept",)]
    assert filter_.predicate == "v > 1 AND (k = 1 OR k = 2)"


def test_a_predicate_that_would_grow_too_deep_stays():
    net = Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, v DOUBLE"), timestamp="time")
    mapped = cars.map(x=" + ".join(["v"] * 150), name="sums")
    mapped.filter(" + ".join(["x"] * 100) + " > 0", name="large").output("out", to=collect())
    assert optimize(net).network.nodes["large"].inputs == ("sums",)


def set_by_the_clock(batch, state):
    """A latch that gives a column by the name of the other map's copy of the timestamp."""
    return {"t2": pa.array([30_000_000] * batch.num_rows, pa.timestamp("us", "UTC")), "k": batch["k"]}, state


def test_maps_in_one_leave_the_name_of_the_timestamp():
    """As one they would call it t2; then the latch's function would set the time."""
    net = Network("n")
    left = net.source("left", rows_source("time TIMESTAMP, k INT"), timestamp="time")
    right = net.source("right", rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time")
    chosen = right.map(t2="time").select("t2", "k")
    latched = chosen.latch(function=set_by_the_clock, state="c INT", produces="t2 TIMESTAMP, k INT")
    left.join(latched, on="k", within="1 second").output("out", to=collect())
    trains = [{"left": [{"time": 0, "k": 1}], "right": [{"time": 0, "k": 1, "v": 1}]}]
    expected = LocalEngine(net).run(trains)
    assert len(expected.outputs["out"]) == 1
    assert_same_result(LocalEngine(optimize(net).network).run(trains), expected)
