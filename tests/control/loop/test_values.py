"""Semantic shedding in the loop: taught by samples of trains, used under overload, told in a sentence."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tests.control.loop.networks import COSTS, score
from tests.control.loop.test_control import FakeRun, begun, overload, sentences
from tests.control.loop.test_plan import ALL, CAPACITY, picture

import penstock as ps
from penstock.control.loop.picture import Coming
from penstock.control.loop.plan import Memory, Plan, decide
from penstock.control.loop.sentences import share_decisions
from penstock.control.loop.structure import Structure
from penstock.control.loop.values import ValueBook
from penstock.control.loop.valves import Places
from penstock.control.report import VALUES
from penstock.control.semantic.bins import ValueCurve
from penstock.control.semantic.by_value import ByValue
from penstock.engine.arrow.value_samples import sampled
from penstock.engine.contract.valve import ValveFlow
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.decisions import Decisions

STRICT = ps.QoS(delay=[(0, 1.0), (2, 1.0), (10, 0.0)], weight=4)
VALUED = ps.QoS(
    delay=[(0, 1.0), (4, 1.0), (20, 0.0)],
    loss=[(0, 0), (100, 1)],
    value=[(0, 0), (100, 1)],
    column="score",
    weight=2,
)


def network():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, seg INT, spd INT"), timestamp="time")
    net.output("alarms", cars.filter("spd > 95", name="fast"), to=ps.csv("out/alarms"), qos=STRICT)
    scored = cars.apply(score, produces="score DOUBLE", name="score")
    net.output("scores", scored, to=ps.csv("out/scores"), qos=VALUED)
    return net


def samples(rows=3000, seed=3):
    """Tuples at the split, and their scores: the square of the speed tells them, the segment does not."""
    random = np.random.default_rng(seed)
    cars = pa.table(
        {"spd": random.integers(0, 100, rows), "seg": random.integers(0, 9, rows), "_seq": np.arange(rows)}
    )
    scores = pa.table({"score": cars.column("spd").to_numpy() ** 2 / 100.0, "_seq": cars.column("_seq")})
    return {"cars": sampled(cars, ("seg", "spd"), 1000), "score": sampled(scores, ("score",), 1000)}


def train(subnetwork="alarms", valves=(), values=None, flows=None):
    commit = SimpleNamespace(newest={"cars": 60_000_000}, valves=flows or {})
    ticket = SimpleNamespace(valves=tuple(valves))
    return SimpleNamespace(
        subnetwork=subnetwork, kept={}, commit=commit, ticket=ticket, values=values or samples()
    )


def book_and_places():
    net = network()
    (sub,) = split(net)
    return ValueBook(), Places.of(net, Structure((sub,))), sub


def test_a_function_is_seen_through_by_its_samples():
    book, places, sub = book_and_places()
    assert book.look([sub], places, 0.0, busy=True) == {}
    book.note(sub, train())
    assert book.look([sub], places, 5.0, busy=True) == {}  # it does not look all the time
    assert book.look([sub], places, 20.0, busy=False) == {}
    found = book.look([sub], places, 20.0, busy=True)
    assert set(found) == {"scores"}
    assert not found["scores"].at_input
    assert found["scores"].curve.at(0.5) > 0.8
    cut = book.cut("scores", 0.5)
    assert (cut.at, cut.column) == ("cars->score", "spd")
    assert cut.share == pytest.approx(0.5)
    assert book.cut("scores", 0.51) is cut


def test_a_cut_that_keeps_another_share_is_made_anew():
    book, places, sub = book_and_places()
    book.note(sub, train())
    book.look([sub], places, 20.0, busy=True)
    cut = book.cut("scores", 0.5)
    for _ in range(3):  # slower cars come than before
        flows = {"cars->score": ValveFlow(4000, 3000)}
        book.note(sub, train(valves=[cut.valve()], flows=flows, values=samples(seed=8)))
    book.look([sub], places, 40.0, busy=True)
    other = book.cut("scores", 0.5)
    assert other is not cut
    assert other.chosen[-1].high < cut.chosen[-1].high


def test_a_valve_of_an_earlier_run_teaches_nothing():
    book, _, sub = book_and_places()
    other, places, _ = book_and_places()
    other.note(sub, train())
    other.look([sub], places, 20.0, busy=True)
    book.note(sub, train(valves=[other.cut("scores", 0.4).valve()]))
    assert book.plain() == {}


def test_what_was_learned_survives_a_restart():
    book, places, sub = book_and_places()
    book.note(sub, train())
    again = ValueBook(book.plain())
    assert again.look([sub], places, 20.0, busy=True) == book.look([sub], places, 20.0, busy=True) != {}


def test_overload_drops_by_value_and_tells_what_and_why(tmp_path):
    run = FakeRun(tmp_path, network())
    control = begun(run)
    control._train_done(train())
    overload(run, factor=0.8)
    control.look()
    (valve,) = run.queries["alarms"].steering.valves
    assert (valve.at, valve.grain) == ("cars->score", "values")
    assert "`spd` < " in valve.predicate
    assert valve.worth < 0.5
    told = sentences(run, "shed")[-1]
    assert "by value at cars->score: those with spd below " in told.sentence
    assert told.numbers["utility_lost"] < 0.5 * told.numbers["utility_lost_at_random"]
    assert told.numbers["predicate"] == valve.predicate
    assert Decisions(run.catalog).state(VALUES)[1]["scores at cars->score"]["tuples"]
    overload(run, factor=0.1, age=0.0)
    for _ in range(12):
        control._began -= 3
        control.look()
    assert run.queries["alarms"].steering.valves == ()
    assert all(each.until is not None for each in sentences(run, "shed")), "nothing is shed any more"
    assert sentences(run, "open")[-1].sentence.startswith("scores open again: ")


def test_a_share_that_stays_is_told_as_one_that_stays():
    plan, expected = Plan(shares={"scores": 0.8}, load=2.0, usable=1.0, remaining=1.0), "scores stays at 80 %"
    qos, coming = {"scores": VALUED}, Coming(9.0)
    (told,) = share_decisions({"scores": 0.8}, plan, qos, coming, 0.0, other={"scores"})
    assert told.sentence.startswith(expected)
    assert told.numbers["before"] == 0.8
    assert share_decisions({"scores": 0.8}, plan, qos, coming, 0.0) == []


def test_a_backlog_is_named_where_the_rate_is_no_reason():
    plan, qos = Plan(shares={"scores": 0.2}, load=0.06, usable=0.44, remaining=0.01), {"scores": VALUED}

    def said(before, coming):
        return share_decisions({"scores": before}, plan, qos, coming, 0.0)[0].sentence

    waits = "; 1,240,000 tuples wait for up to 24 s, and have to be worked off"
    assert waits in said(0.5, Coming(2868.0, 1_240_000, 24.2))
    assert waits in said(0.1, Coming(2868.0, 1_240_000, 24.2))
    assert said(0.1, Coming(2868.0, 3, 0.1)).endswith("; it opens step by step")


def alone():
    """The network without its strict output: values are told at the source, behind decoding."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, seg INT, spd INT"), timestamp="time")
    scored = cars.apply(score, produces="score DOUBLE", name="score")
    net.output("scores", scored, to=ps.csv("out/scores"), qos=VALUED)
    return net


def plan_with(values, net=None, factor=1.0):
    structure = Structure(split(net or network()))
    (name,) = (sub.name for sub in structure.subs)
    may = Places.of(net or network(), structure).sheddable(structure.qos)
    seen = picture(20.0, factor * CAPACITY / ALL, 1.7)
    costs = replace(COSTS, subnetworks={name: replace(COSTS.subnetworks["alarms"], subnetwork=name)})
    seen = replace(seen, costs=costs, subnetworks=(replace(seen.subnetworks[0], name=name),))
    return decide(structure, seen, Memory(), headroom=0.9, sheddable=may, values=values)[0]


GOOD = ValueCurve(((0.0, 0.0), (0.3, 0.9), (1.0, 1.0)))
POOR = ValueCurve(((0.0, 0.0), (0.5, 0.51), (1.0, 1.0)))


def test_the_road_map_counts_what_tuples_are_worth():
    random, by_value = plan_with({}), plan_with({"scores": ByValue(GOOD, at_input=False)})
    assert (set(random.by_value), set(by_value.by_value)) == (set(), {"scores"})
    assert by_value.shares == random.shares  # nothing else may be shed here
    assert by_value.shares["scores"] < 0.8
    assert by_value.lost < 0.5 * random.lost


def test_what_goes_by_value_at_a_source_is_decoded_first_so_more_must_go():
    behind, at_source = (plan_with({"scores": ByValue(GOOD, at)}, alone(), 1.3) for at in (False, True))
    assert at_source.by_value
    assert at_source.shares["scores"] < behind.shares["scores"] < 0.8
    assert at_source.remaining <= plan_with({}, alone(), 1.3).remaining + 0.05


def test_dropping_at_random_serves_better_where_values_say_little_or_decoding_costs_too_much():
    poor = plan_with({"scores": ByValue(POOR, at_input=True)}, alone())
    assert not poor.by_value
    assert poor.shares == plan_with({}, alone()).shares
    flood = plan_with({"scores": ByValue(GOOD, at_input=True)}, alone(), factor=20)
    assert not flood.by_value
    assert not flood.exhausted
