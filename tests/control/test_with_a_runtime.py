"""What a runtime does with its control before Spark starts, and when it cannot start. No Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.control.loop.networks import STRICT, TOLERANT, network
from tests.control.loop.test_control import FakeRun

import penstock as ps
from penstock.model.errors import NetworkError, PenstockError
from penstock.runtime import Runtime
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision
from penstock.web.routes.error_statuses import STATUSES

STREAMS = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
SESSION = SimpleNamespace(streams=STREAMS)
"""What a runtime needs of Spark before its first query begins."""


@pytest.fixture
def net():
    net = ps.Network("n")
    net.output("all", net.source("ticks", ps.rate(5)), to=ps.console())
    net.control = ps.ControlSettings(headroom=0.8)
    return net


def test_before_the_start_there_is_no_report(net, tmp_path):
    runtime = ps.Runtime(net, checkpoint=tmp_path / "cp", control=ps.Control())
    with pytest.raises(PenstockError, match="network 'n' is not running"):
        runtime.qos()


def test_settings_are_no_control(net, tmp_path):
    with pytest.raises(PenstockError, match=r"cannot control a run[^$]*ControlSettings[^$]*Control\.of\("):
        ps.Runtime(net, checkpoint=tmp_path / "cp", control=net.control)
    with pytest.raises(PenstockError, match=r"hint: +control=penstock\.Control\(\)"):
        ps.Runtime(net, checkpoint=tmp_path / "cp", control=ps.Control)
    assert not (tmp_path / "cp").exists()


def test_a_control_in_use_goes_on_when_a_second_run_is_refused(net, tmp_path, monkeypatch):
    monkeypatch.setattr(Runtime, "_take_session", lambda self: None)
    control = ps.Control()
    control.begin(FakeRun(tmp_path / "first"))
    second = Runtime(net, SESSION, tmp_path / "second", control=control)
    with pytest.raises(PenstockError, match="has a run already"):
        second.start()
    assert control._thread.is_alive()
    control.end()
    assert control._thread is None


def test_a_run_without_control_ends_what_an_earlier_one_has_decided(net, tmp_path, monkeypatch):
    decisions = Decisions(Catalog(tmp_path / "cp" / "catalog.db"))
    decisions.record(Decision(10.0, "shed", "all", "all to 30 %"))  # then it was killed

    def no_further(_self, _sub):
        raise PenstockError("far enough")

    monkeypatch.setattr(Runtime, "_take_session", lambda self: None)
    monkeypatch.setattr(Runtime, "begin", no_further)
    with pytest.raises(PenstockError, match="far enough"):
        Runtime(net, SESSION, tmp_path / "cp").start()
    assert decisions.last()[0].until is not None


IMPOSSIBLE = ps.QoS(delay=[(0, 1), (0.01, 1), (1, 0)], loss=[(0, 0), (100, 1)])
"""Good for a hundredth of a second: no train is as short."""


@pytest.fixture
def under_control(tmp_path):
    """A runtime that only pretends, and what it has told; `under_control(observe=True)`."""
    begun = []

    def start(net=None, **options):
        net, told = net or network(), []
        begun.append(ps.Control(**options))
        run = FakeRun(tmp_path, net)
        begun[0].begin(run)
        running = Runtime(net, checkpoint=tmp_path / "cp", control=begun[0])
        running.queries = run.queries
        running.records = SimpleNamespace(
            network=lambda *_: told.append("network"), event=lambda *_, **__: told.append("event")
        )
        return running, told

    yield start
    for control in begun:
        control.end()


def test_a_qos_that_no_rate_can_meet_is_refused_while_it_runs(under_control):
    running, told = under_control()
    with pytest.raises(PenstockError, match="means cannot be good at any rate") as refused:
        running.set_qos("means", IMPOSSIBLE)
    assert [status for kind, status in STATUSES if isinstance(refused.value, kind)] == [400]
    assert (told, running.network.nodes["means"].qos) == ([], TOLERANT)
    assert running.queries["alarms"].sub.network.nodes["means"].qos == TOLERANT
    running.set_qos("means", STRICT)
    assert (told, running.network.nodes["means"].qos) == (["network", "event"], STRICT)


def test_who_only_observes_refuses_no_qos(under_control):
    running, told = under_control(observe=True)
    running.set_qos("means", IMPOSSIBLE)
    assert told == ["network", "event"]


def test_slower_trains_are_no_reason_to_refuse_another_output(under_control, monkeypatch):
    running, told = under_control()
    monkeypatch.setattr("penstock.control.loop.deployment.LEAST_TRAIN", 2.0)  # alarms is good up to 2 s
    running.set_qos("means", ps.QoS(delay=[(0, 1), (8, 1), (20, 0)]))
    assert told == ["network", "event"]


def with_point():
    net = network()
    kept = net.stream("fast").connection_point("kept", keep="1 hour")
    net.output("few", kept.filter("spd > 120", name="faster"), to=ps.console())
    return net


def test_an_attached_query_that_cannot_be_good_is_refused_before_it_begins(under_control, monkeypatch):
    running, told = under_control(with_point())
    begun = []
    monkeypatch.setattr(running, "_attach", lambda sub, *_, **__: begun.append(sub.name))
    with pytest.raises(PenstockError, match="jams cannot be good at any rate"):
        running.attach("jams", "kept", lambda s: s.filter("spd < 99"), to=ps.console(), qos=IMPOSSIBLE)
    with pytest.raises(PenstockError, match="seen cannot be good at any rate"):
        running.attach_view("seen", "kept", lambda s: s.filter("spd < 99"), qos=IMPOSSIBLE)
    assert (told, begun) == ([], [])
    running.attach("jams", "kept", lambda s: s.filter("spd < 99"), to=ps.console(), qos=STRICT)
    running.attach("seen_by", "kept", lambda s: s.filter("spd < 98"), to=ps.console())
    assert begun == ["jams", "seen_by"]


def test_an_edit_is_refused_for_what_would_refuse_a_start(under_control):
    running, told = under_control()
    late, odd = network(), network()
    late.set_qos("scores", IMPOSSIBLE)
    with pytest.raises(PenstockError, match="scores cannot be good at any rate"):
        running.replace(late)
    odd.output(
        "odd", odd.stream("cars").filter("spd > 7", name="box").shed("keys"), to=ps.console(), qos=TOLERANT
    )
    with pytest.raises(NetworkError, match="box 'box': shed: keys, but nothing in front"):
        running.replace(odd)
    assert (told, set(running.network.nodes)) == ([], set(network().nodes))
