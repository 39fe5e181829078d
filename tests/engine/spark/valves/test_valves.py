"""Valves on Spark shed what the reference engine sheds by the same tickets; every tuple is accounted for."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from boxes.networks.test_random_networks import CHECKS
from penstock.engine.contract.valve import Valve, lot_of, valve_places
from penstock.engine.local import LocalEngine
from penstock.engine.spark.jobs.forms import Form
from penstock.rewrite.subnetworks import split
from penstock.testing import assert_same_result, collect, rows_source
from penstock.testing.spark_run import InForm, run_on_spark
from penstock.testing.strategies import cases
from soak import count

ON_SPARK = pytest.mark.skipif(
    "spark" not in os.environ.get("PENSTOCK_ENGINES", ""), reason="spark is not in PENSTOCK_ENGINES"
)


@pytest.fixture(params=[Form.ONE_TASK, Form.TASKS, pytest.param("spark", marks=ON_SPARK)])
def engine(request):
    """Tasks without Spark, in this process, and DataFrames on Spark."""
    if request.param == "spark":
        return InForm(Form.FRAMES, request.getfixturevalue("spark"))
    return InForm(request.param)


SECOND = 1_000_000
LOT = lot_of("cars")
TEN = {"grain": "windows", "lot": LOT, "size": 10 * SECOND, "every": 10 * SECOND}
SLIDING = {"grain": "windows", "lot": LOT, "size": 20 * SECOND, "every": 10 * SECOND}


def network():
    """A split into a filter that leaves at once, windows by key, and windows that slide."""
    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k STRING, v INT"), timestamp="time")
    doubled = cars.map(w="v * 2", name="doubled")
    net.output("fast", doubled.filter("w > 20", name="fast_ones"), to=collect())
    by_key = doubled.group_by("k", name="by_key")
    net.output("counts", by_key.tumble("10 seconds", n="count(*)", s="sum(w)", name="tens"), to=collect())
    listed = doubled.slide(
        "20 seconds", every="10 seconds", f="first(v)", d="count(distinct k)", name="twenties"
    )
    net.output("firsts", listed, to=collect())
    return net


def trains():
    """Rows in time order: some cannot be read, some have no time, some are late."""
    rows = [{"time": i // 2, "k": "abc"[i % 3], "v": i % 40} for i in range(400)]
    rows[17] = {"time": "never", "k": "a", "v": 1}
    rows[33] = {"time": None, "k": "a", "v": 1}
    rows[250] = {"time": 0, "k": "a", "v": 1}
    return [{"cars": rows[at : at + 80]} for at in range(0, 400, 80)]


def compared(engine, net, *valves, given=None, **options):
    """Run on Spark, and on the reference by Spark's own tickets."""
    given, tickets = given or trains(), []
    result = run_on_spark(net, given, engine, valves=valves, tickets=tickets, **options)
    plain = [[valve.plain() for valve in ticket.valves] for ticket in tickets]
    expected = LocalEngine(net).run(given, valves=plain)
    assert_same_result(result, expected)
    for account in result.accounts.values():
        assert account["offered"] == sum(account[name] for name in ("let_in", "dead", "late", "shed"))
    assert {n: dict(+a) for n, a in result.accounts.items()} == {
        n: dict(+a) for n, a in expected.accounts.items()
    }
    return result


@pytest.mark.parametrize(
    "valve",
    [
        Valve("cars", 0.5, "tuples", LOT),
        Valve("cars", 0.5, "keys", LOT, keys=("k",)),
        Valve("cars", 0.4, **TEN),
        Valve("cars", 0.5, "values", predicate="v > 10"),
        Valve("cars", 0.5, "values", LOT, predicate="v > 25.5", partly="v >= 10.0", part=0.5),
        Valve("cars", 0.0, "blocks", LOT),
    ],
    ids=lambda valve: valve.grain,
)
def test_at_the_source(engine, valve):
    result = compared(engine, network(), [valve])
    assert result.accounts["cars"]["shed"] > 0


@pytest.mark.parametrize("fuse", [True, False])
def test_behind_a_split_in_sql_and_in_stages(engine, fuse):
    valves = [
        Valve("doubled->fast_ones", 0.3, "tuples", LOT),
        Valve("doubled->by_key", 0.5, **TEN),
        Valve("doubled->twenties", 0.5, **SLIDING),
    ]
    result = compared(engine, network(), valves, fuse=fuse)
    exact = LocalEngine(network()).run(trains())
    for name in ("counts", "firsts"):
        assert 0 < len(result.outputs[name]) < len(exact.outputs[name])
        assert all(row in exact.outputs[name] for row in result.outputs[name])


def test_a_window_chosen_late_is_not_told_and_one_chosen_stays_chosen(engine):
    shares = [[], [Valve("cars", 0.3, **SLIDING)], [Valve("cars", 0.8, **SLIDING)], []]
    result = compared(engine, network(), *shares)
    exact = LocalEngine(network()).run(trains())
    assert 0 < len(result.outputs["firsts"]) < len(exact.outputs["firsts"])
    assert all(row in exact.outputs["firsts"] for row in result.outputs["firsts"])


def test_everything_shed_still_moves_the_horizon(engine):
    nothing = [Valve("cars", 0.0, "tuples", LOT)]
    result = compared(engine, network(), [], nothing, nothing, final=False)
    assert len(result.outputs["counts"]) > 0


def test_at_share_1_nothing_changes(engine):
    tickets = []
    result = run_on_spark(network(), trains(), engine, valves=[[Valve("cars")]], tickets=tickets)
    assert all(ticket.valves == () for ticket in tickets)
    assert_same_result(result, LocalEngine(network()).run(trains()))


def test_at_a_point_that_is_read(engine):
    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k STRING, v INT"), timestamp="time")
    kept = cars.filter("v > 1", name="some").connection_point("kept")
    net.output("out", kept.filter("v > 2", name="more"), to=collect())
    valve = Valve("kept", 0.5, "keys", lot_of("kept"), keys=("v",))
    result = run_on_spark(net, trains(), engine, valves=[[valve]])
    assert_same_result(result, LocalEngine(net).run(trains(), valves=[[valve.plain()]] * 6))
    assert 0 < len(result.outputs["out"]) < len(result.points["kept"])


@st.composite
def shed_cases(draw):
    """A random network and random valves at its sources and behind its splits."""
    case = draw(cases(number_of_cuttings=1, max_boxes=5, max_size=16))
    found = [(place, sub) for sub in split(case.network) for place in valve_places(sub)]
    places = [(place, sub) for place, sub in found if place.partition("->")[0] not in case.network.points]
    valves = [draw(valves_at(sub.network, place)) for place, sub in places if draw(st.booleans())]
    return case, valves


@st.composite
def valves_at(draw, net, place):
    type_ = net.types[place.partition("->")[0]]
    grain = draw(st.sampled_from(["tuples", "blocks", "keys", *(["windows"] if type_.timestamp else [])]))
    size = draw(st.sampled_from([1, 2, 5, 10])) * SECOND
    keys = tuple(draw(st.lists(st.sampled_from(type_.schema.names), unique=True, max_size=2)))
    more = {"keys": {"keys": keys}, "windows": {"size": size, "every": size // draw(st.sampled_from([1, 2]))}}
    return Valve(place, draw(st.sampled_from([0.0, 0.3, 0.7])), grain, 3, **more.get(grain, {}))


def compare_many(engine, number):
    """Compare the engines on so many random networks with random valves; how many shed anything."""
    shedding = 0

    @settings(max_examples=number, **CHECKS)
    @given(shed_cases())
    def compare(drawn):
        nonlocal shedding
        case, valves = drawn
        expected = LocalEngine(case.network).run([case.rows], valves=[[v.plain() for v in valves]] * 2)
        result = run_on_spark(case.network, case.trains[0], engine, valves=[valves])
        assert_same_result(result, expected)
        shedding += any(account["shed"] for account in result.accounts.values())

    compare()
    return shedding


def test_random_networks_with_random_valves(engine):
    assert compare_many(engine, 6 if engine.session is not None else 15) > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@ON_SPARK
def test_many_random_networks_with_random_valves(spark, record_property):
    record_property("networks_with_valves", compare_many(spark, count(25, soak=500)))
