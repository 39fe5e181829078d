"""What a runtime does with its control before Spark starts, and when it cannot start. No Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.control.loop.test_control import FakeRun

import penstock as ps
from penstock.model.errors import PenstockError
from penstock.runtime import Runtime
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision

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
