"""What valves kept of what was due: against what the reference engine delivers."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.engine.contract.kept_share import kept_shares
from penstock.engine.contract.valve import Valve, ValveFlow, lot_of
from penstock.engine.local.engine import LocalEngine
from penstock.rewrite.subnetworks import split

HALF = {"a": ValveFlow(1000, 500), "b": ValveFlow(1000, 500)}
WINDOWS = {"grain": "windows", "size": 10_000_000, "every": 10_000_000}


def network(build):
    net = ps.Network("n")
    left, right = (
        net.source(name, ps.rows([], "time TIMESTAMP, k BIGINT, v BIGINT"), timestamp="time") for name in "ab"
    )
    net.output("out", build(left, right), to=ps.memory())
    return net


def told(build, flows=HALF, valves=()):
    (sub,) = split(network(build))
    return kept_shares(sub, flows, valves)["out"]


def joined(left, right, on="k"):
    return left.join(right, on=on, within="1 second")


def counted(left, right):
    return left.union(right).tumble("10 seconds", n="count(*)")


def at_both(**valve):
    return [Valve(name, 0.5, **valve) for name in "ab"]


@pytest.mark.parametrize(
    ("build", "valve", "expected"),
    [
        (joined, {"grain": "tuples"}, 0.25),
        (joined, {"grain": "keys", "keys": ("k",), "lot": 7}, 0.5),
        (joined, {"grain": "keys", "keys": ("k",)}, 0.25),
        (counted, {**WINDOWS, "lot": 7}, 0.5),
        (counted, WINDOWS, 0.25),
    ],
    ids=["tuples", "keys", "keys-apart", "windows", "windows-apart"],
)
def test_what_is_told_is_what_is_delivered(build, valve, expected):
    """Without a lot of their own, both sources have that of their name."""
    valves = [Valve(name, 0.5, **{"lot": lot_of(name), **valve}) for name in "ab"]
    net, trains = network(build), 120
    rows = [
        {n: [{"time": t * 10 + i % 10, "k": t * 50 + i, "v": i} for i in range(50)] for n in "ab"}
        for t in range(trains)
    ]
    exact = LocalEngine(net).run(rows)
    shed = LocalEngine(net).run(rows, valves=[[valve.plain() for valve in valves]] * (trains + 1))
    flows = {n: ValveFlow(each["offered"], each["shed"]) for n, each in shed.accounts.items()}
    delivered = len(shed.outputs["out"]) / len(exact.outputs["out"])
    assert delivered == pytest.approx(expected, abs=0.08)
    assert told(build, flows, valves) == pytest.approx(delivered, abs=0.08)


def test_keys_that_are_not_those_of_the_join_do_not_meet():
    valves = at_both(grain="keys", keys=("v",))
    assert told(joined, valves=valves) == 0.25
    assert told(lambda a, b: joined(a, b, on=["k", "v"]), valves=valves) == 0.5


def test_tuples_of_one_source_joined_with_itself_may_be_apart():
    (sub,) = split(network(lambda a, b: joined(a.union(b), a.union(b))))
    flows = {"a": ValveFlow(1000, 500), "b": ValveFlow(1000, 500)}
    assert kept_shares(sub, flows, at_both())["out"] == 0.25


def test_inputs_of_a_union_weigh_what_came_to_them():
    flows = {"a": ValveFlow(900, 900), "b": ValveFlow(100, 0)}
    assert told(lambda a, b: a.union(b), flows) == pytest.approx(0.1)
    assert told(lambda a, b: a.union(b), {"a": ValveFlow(900, 900)}) == 0.5, "nobody counted the other"
    silent = {"a": ValveFlow(900, 450), "b": ValveFlow()}
    assert told(lambda a, b: a.union(b), silent) == 0.5


def test_what_a_point_has_lost_counts_behind_it():
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, k BIGINT"), timestamp="time")
    net.output("out", cars.connection_point("kept", shed=True).filter("k > 1"), to=ps.memory())
    reader = next(sub for sub in split(net) if sub.outputs)
    assert kept_shares(reader, {}, (), {"kept": 1.0}) == {}
    assert kept_shares(reader, {}, (), {"kept": 0.3}) == {"out": 0.3}
    again = {"kept": ValveFlow(100, 50)}
    assert kept_shares(reader, again, (), {"kept": 0.3}) == {"out": pytest.approx(0.15)}
