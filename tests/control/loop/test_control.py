"""The loop on a run that only pretends: what it applies, what it writes down, and how it dies."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest
from tests.control.loop.networks import CPU, network

import penstock as ps
from penstock.control.loop.plan import Plan
from penstock.control.report import REPORT, ROAD_MAP, QosReport
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.situation import InputSituation, Situation
from penstock.model.control_settings import SCHEMES
from penstock.model.errors import PenstockError
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import (
    BoxCount,
    InputLoad,
    OutputSecond,
    SourceAccount,
    TrainRecord,
)

ALL = sum(CPU.values())


def record(train, rows, start=0.0):
    boxes = (
        BoxCount("fast", rows, rows // 20),
        BoxCount("minutes", rows, 10, wall=1.0, cpu=CPU["minutes"] * rows),
        BoxCount("score", rows, rows, wall=1.0, cpu=CPU["score"] * rows),
    )
    took = 0.2 + ALL / 2 * rows
    return TrainRecord("alarms", train, start, start + took, rows, boxes, cpu=0.2 + ALL * rows)


class FakeRun:
    """What a control sees of a runtime."""

    def __init__(self, path, net=None, trains=32):
        self.network = net or network()
        self.subs = split(self.network)
        self.catalog = Catalog(path / "catalog.db")
        for number in range(trains):
            self.catalog.record_train(record(number, 2500 * (1 + number % 8)))
        self.settings = SimpleNamespace(policy=AsSoonAsPossible())
        self.rate, self.age, self.valves, self.listeners, self.restored = 1000.0, 0.1, {}, [], False
        self.newest, self.seconds, self.measures_cpu = {}, {}, True
        self.queries = {sub.name: self.query(sub) for sub in self.subs}

    def query(self, sub):
        def situation():
            known = InputSituation(0, 500, None, self.age, self.rate)
            # the last train has left just now: what waits was left behind
            return Situation(sub.name, 0, 0.0, 0.0, inputs=dict.fromkeys(sub.inputs, known))

        steering = SimpleNamespace(held=False, valves=())
        return SimpleNamespace(
            failure=None,
            sub=sub,
            situation=situation,
            steering=steering,
            drained=lambda: True,
            wake=lambda: None,
        )

    def running_records(self):
        return self

    def cores(self):
        return 2

    def output_seconds(self):
        return self.seconds

    def accounts(self):
        return {"cars": SourceAccount("cars", 100, 70, shed=30)}

    def on_train(self, listener):
        self.listeners.append(listener)

    def use_policy(self, policy):
        self.settings.policy = policy

    def restore_valves(self):
        self.restored = True

    def set_valves(self, name, valves):
        self.queries[name].steering.valves = tuple(valves)

    def train(self, number, rows):
        self.newest["alarms"] = record(number, rows, time.time())
        commit = SimpleNamespace(newest={"cars": 60_000_000})
        for listener in self.listeners:
            ticket = SimpleNamespace(valves=self.queries["alarms"].steering.valves)
            listener(SimpleNamespace(subnetwork="alarms", kept={}, values={}, commit=commit, ticket=ticket))


def begun(run, **options):
    """A control whose loop is stepped by hand."""
    control = ps.Control(**options)
    control.begin(run)
    control._stop.set()
    control._thread.join()
    control._stop.clear()
    control._began -= 60
    for number in range(32, 64):
        run.train(number, 2500 * (1 + number % 8))
    return control


def overload(run, factor=2.0, age=1.5):
    run.rate, run.age = factor * 2 / ALL, age


def sentences(run, kind):
    return [each for each in Decisions(run.catalog).last() if each.kind == kind]


def test_overload_closes_valves_and_tells_why(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    control.look()
    assert run.queries["alarms"].steering.valves == ()
    overload(run)
    control.look()
    (valve,) = [v for v in run.queries["alarms"].steering.valves if v.at == "cars->score"]
    assert valve.share < 0.6
    told = sentences(run, "shed")
    assert [each.subject for each in told if each.subject == "scores"]
    (scores,) = [each for each in told if each.subject == "scores"]
    assert scores.sentence.startswith("scores to ")
    assert "alarms waits 1.5 s, good to 2 s" in scores.sentence
    assert scores.numbers["share"] == pytest.approx(valve.share)
    assert set(scores.expected) == {"load", "utility"}


def test_the_kept_map_says_where_nothing_is_shed_and_whether_anything_may_be(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run, shed=False)
    overload(run)
    control.look()
    _, kept = Decisions(run.catalog).state(ROAD_MAP)
    assert kept["shed"] is False
    assert kept["why"]["cars"] == "output 'alarms' has no loss graph"
    assert "cars->score" not in kept["why"]


def test_effects_are_measured_later(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    control.look()
    run.seconds["scores"] = (OutputSecond("scores", int(time.time()), ((1.0, 5),), None, 0.5),)
    run.train(64, 20_000)
    control._began -= 6
    control.look()
    (scores,) = [each for each in sentences(run, "shed") if each.subject == "scores" and each.realised]
    assert set(scores.realised) == {"load", "utility"}
    assert scores.realised["load"] > 0


def test_observing_applies_nothing(tmp_path):
    run = FakeRun(tmp_path)
    before = run.settings.policy
    control = begun(run, observe=True)
    overload(run)
    control.look()
    assert run.settings.policy is before
    assert run.queries["alarms"].steering.valves == ()
    assert sentences(run, "would-shed")[0].sentence.startswith("would do: ")
    assert not run.restored


def test_without_shedding_only_trains_are_scheduled(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run, shed=False)
    overload(run)
    control.look()
    assert run.queries["alarms"].steering.valves == ()
    assert run.settings.policy is control._dispatcher
    assert sentences(run, "train")[0].sentence.startswith("alarms: trains of at most ")


def test_the_report_has_the_keys_of_the_json_form(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    run.seconds["alarms"] = (OutputSecond("alarms", int(time.time()), ((1.0, 5),)),)
    overload(run)
    control.look()
    _, plain = Decisions(run.catalog).state(REPORT)
    assert list(plain) == ["outputs", "sources", "valves", "subnetworks", "load", "capacity"]
    assert list(plain["outputs"][0]) == [
        "name",
        "weight",
        "utility",
        "utility_minute",
        "delay_p50",
        "delay_p99",
        "share",
        "in_zone",
        "exact_since",
        "errors",
    ]
    assert list(plain["sources"][0]) == [
        "name",
        "offered",
        "let_in",
        "shed",
        "offered_rate",
        "shed_rate",
        "waiting",
        "age",
    ]
    assert list(plain["valves"][0]) == ["at", "share", "grain"]
    assert list(plain["subnetworks"][0]) == ["name", "priority", "waiting", "running"]
    report = QosReport.of(plain)
    alarms = next(each for each in report.outputs if each.name == "alarms")
    assert (alarms.utility, alarms.delay_p99, alarms.in_zone, alarms.weight) == (1.0, 1.0, True, 4.0)
    assert (report.sources[0].shed, report.sources[0].waiting) == (30, 500)
    assert report.load > report.capacity == pytest.approx(1.5)


def test_an_impossible_delay_is_refused_before_the_run(tmp_path):
    net = network()
    quick = ps.QoS(delay=[(0, 1.0), (0.05, 1.0), (1, 0.0)])
    net.output("now", net.stream("fast"), to=ps.csv("out/now"), qos=quick)
    with pytest.raises(PenstockError, match="now cannot be good at any rate"):
        ps.Control().begin(FakeRun(tmp_path, net, trains=0))


@pytest.mark.parametrize(
    ("trains", "refused"),
    [
        ([(500_000, 3.0)], False),  # one train of a run that was killed: all of it may be its tuples
        ([(1_000, 9.9), (10_000, 5.2), (2_000, 1.8)], False),  # cold ones
        ([(2_000, 2.0)] * 20, False),  # of one length: nobody knows what is fixed
        ([(500 * (1 + n % 6), 1.0 + 0.0001 * (1 + n % 6)) for n in range(20)], True),
    ],
)
def test_earlier_trains_refuse_a_run_only_if_they_tell_enough(tmp_path, trains, refused):
    run = FakeRun(tmp_path, trains=0)
    for number, (rows, seconds) in enumerate(trains):
        run.catalog.record_train(TrainRecord("alarms", number, 0.0, seconds, rows))
    if refused:
        with pytest.raises(PenstockError, match=r"trains on its way take 1\.00 s even without tuples"):
            ps.Control().begin(run)
    else:
        begun(run).end()


def test_a_delay_that_the_measured_rate_cannot_meet_is_warned_of(tmp_path):
    run = FakeRun(tmp_path)
    run.catalog.record_second(5, [InputLoad("cars", "alarms", 5.0, 0, 2e6, 0, None, 0.1)], [])
    control = begun(run)
    assert "alarms cannot be good up to 2 s" in control.warnings[0]
    assert control.warnings[0].endswith("; so at the rates that were measured last: cars 2,000,000/s")
    told = sentences(run, "warning")
    assert tuple(each.sentence for each in told) == control.warnings
    assert len(told) > 1
    assert all((each.outputs, each.until) == ((each.subject,), None) for each in told), "each holds"


@pytest.mark.parametrize("shed", [True, False])
def test_a_machine_on_which_control_cannot_shed_is_warned_of(tmp_path, shed):
    run = FakeRun(tmp_path)
    run.measures_cpu = False
    control = begun(run, shed=shed)
    if not shed:
        assert control.warnings == ()
        return
    (told,) = sentences(run, "warning")
    assert "sheds nothing" in told.sentence
    assert set(told.outputs) == {"alarms", "means", "scores"}


def test_a_network_without_any_qos_is_warned_of(tmp_path):
    net = ps.Network("plain")
    net.output("all", net.source("ticks", ps.rate(5)), to=ps.console())
    control = ps.Control()
    control.begin(FakeRun(tmp_path, net))
    control.end()
    assert "no output of network 'plain' has a qos" in control.warnings[0]


def test_a_setting_that_there_is_not_names_the_line_that_wrote_it():
    with pytest.raises(PenstockError, match=r"test_control\.py:\d+: the headroom is out of range\n  found: "):
        ps.Control(headroom=2)


def test_a_control_is_for_one_run(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    with pytest.raises(PenstockError, match="has a run already"):
        control.begin(run)
    control.end()
    control.end()


def test_a_query_that_is_detached_meanwhile_does_not_kill_the_loop(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    control.look()

    def gone(name, valves):
        run.queries.clear()
        raise PenstockError(f"nothing named '{name}' is running")

    run.set_valves = gone
    run.queries["alarms"].steering.valves = ()
    control.look()
    assert run.queries == {}
    control.look()


def test_a_query_that_is_replaced_meanwhile_does_not_kill_the_loop(tmp_path):
    """Between the picture and its application, a place may be gone: the next look sees the new one."""
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    replaced = run.query(run.subs[0])
    replaced.sub = split(network())[0]  # the same, but another object

    def swapped(name, valves):
        run.queries[name] = replaced
        raise PenstockError(f"sub-network '{name}' has no place 'cars->score' for a valve")

    run.set_valves, set_valves = swapped, run.set_valves
    control.look()
    assert control.failure is None
    assert replaced.steering.valves == ()
    run.set_valves = set_valves
    control.look()
    assert replaced.steering.valves


def test_a_loss_graph_that_is_drawn_while_it_runs_lets_its_output_lose(tmp_path):
    net = network()
    loose = net.nodes["scores"].qos
    net.set_qos("scores", ps.QoS(delay=loose.delay, weight=loose.weight))
    run = FakeRun(tmp_path, net)
    control = begun(run)
    overload(run)
    control.look()
    assert "cars->score" not in {valve.at for valve in run.queries["alarms"].steering.valves}
    for each in (run.network, run.queries["alarms"].sub.network):
        each.set_qos("scores", loose)
    control.look()
    assert "cars->score" in {valve.at for valve in run.queries["alarms"].steering.valves}


def test_a_network_that_grows_after_its_queries_is_looked_at_again(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    control.look()
    known = control._places
    control.look()
    assert control._places is known
    run.network = network()  # a view was attached: its query runs before the network knows it
    control.look()
    assert control._places.around["alarms"] is run.network


def test_that_nothing_may_be_shed_is_told_and_ends(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run, shed=False)
    overload(run)
    control.look()
    (told,) = sentences(run, "exhausted")
    assert told.sentence.startswith("nothing may be shed: ")
    assert told.sentence.endswith(" fit; outputs will be late, if trains cost as much as they did")
    assert set(told.outputs) == {"alarms", "means", "scores"}
    assert told.until is None
    run.rate, run.age = 1000.0, 0.1
    control.look()
    assert sentences(run, "exhausted")[0].until is not None


def test_a_run_tells_how_it_stands_from_the_beginning(tmp_path):
    run = FakeRun(tmp_path, trains=0)
    run.queries.clear()  # no query has begun yet
    control = ps.Control()
    control.begin(run)
    first = QosReport.of(Decisions(run.catalog).state(REPORT)[1])
    control.end()
    last = QosReport.of(Decisions(run.catalog).state(REPORT)[1])
    for report in (first, last):
        assert [each.name for each in report.outputs] == ["alarms", "means", "scores"]
        assert [each.name for each in report.sources] == ["cars"]


@pytest.mark.parametrize("priority", SCHEMES)
def test_the_report_has_no_infinite_numbers(tmp_path, priority):
    run = FakeRun(tmp_path)
    control = begun(run, priority=priority)
    control.look()
    json.dumps(control.qos().plain(), allow_nan=False)


def test_small_changes_leave_the_valves_as_they_are(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    control.look()
    before = run.queries["alarms"].steering.valves
    run.rate *= 1.002
    control.look()
    assert run.queries["alarms"].steering.valves == before
    told = len(sentences(run, "shed"))
    control.look()
    assert len(sentences(run, "shed")) == told


def test_valves_open_in_silence(tmp_path):
    """Nothing comes, so nothing needs CPU: that is known, unlike costs that nobody has measured."""
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    for _ in range(8):
        control.look()
    assert run.queries["alarms"].steering.valves
    run.rate, run.age = 0.0, None
    for _ in range(200):
        control._began -= 1
        control.look()
    assert run.queries["alarms"].steering.valves == ()


def test_what_would_be_shed_ends_when_it_would_be_open(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run, observe=True)
    overload(run)
    for _ in range(8):
        control.look()
    run.rate, run.age = 100.0, None
    for _ in range(60):
        control._began -= 0.25
        control.look()
    shed = sentences(run, "would-shed")
    assert shed
    assert all(each.until is not None for each in shed)


def without_scores():
    net = ps.Network("n")
    nodes = [each for each in network().nodes.values() if each.name not in ("score", "scores")]
    return net.of("n", nodes)


@pytest.mark.parametrize(("observe", "kind"), [(False, "shed"), (True, "would-shed")])
def test_what_is_shed_of_an_output_ends_when_the_output_goes(tmp_path, observe, kind):
    run = FakeRun(tmp_path)
    control = begun(run, observe=observe)
    overload(run)
    for _ in range(8):
        control.look()
    assert any(each.subject == "scores" and each.until is None for each in sentences(run, kind))
    run.network = without_scores()
    run.subs = split(run.network)
    run.queries = {sub.name: run.query(sub) for sub in run.subs}
    control.look()
    assert all(each.until is not None for each in sentences(run, kind) if each.subject == "scores")
    assert "scores" not in control._shares
    assert "means" in control._shares


def test_a_share_that_creeps_stays_at_what_was_told(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    control.look()
    told = {}
    for step in range(20):
        shares = {"means": round(0.97 - 0.03 * step, 2), "scores": round(0.95 - 0.01 * step, 2)}
        control._note_shares(Plan(shares=shares, load=4, usable=2, remaining=2), control._picture, step)
        told |= {each.subject: each.numbers["share"] for each in sentences(run, "shed")}
        assert control._shares == pytest.approx(told)


def test_an_output_is_not_exact_while_a_valve_is_closed_though_a_train_lost_nothing(tmp_path):
    """Whole windows go: between two that are dropped, a train may drop nothing."""
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    for _ in range(8):
        control.look()
    assert run.queries["alarms"].steering.valves
    run.train(64, 2500)
    assert {each.name: each.exact_since for each in control.qos().outputs}["scores"] is None
    again = begun(FakeRun(tmp_path))
    assert again._exact["scores"].newest == 60_000_000
