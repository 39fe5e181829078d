"""Decisions of control in the catalog: one holds at a time for each subject; what it achieved is added."""

from __future__ import annotations

from dataclasses import replace

from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import FORM, Decisions
from penstock.store.catalog.record_types import Decision, Shed, TrainRecord


def test_a_decision_ends_the_one_before_about_the_same(tmp_path):
    decisions = Decisions(Catalog(tmp_path / "catalog.db"))
    first = decisions.record(
        Decision(10.0, "shed", "scores", "scores to 30 %", ("scores",), {"share": 0.3}, {"load": 1.2})
    )
    decisions.record(Decision(11.0, "shed", "means", "means to 50 %"))
    decisions.realised(first.id, {"load": 1.25})
    decisions.record(Decision(20.0, "shed", "scores", "scores to 100 %"))
    kept, other, now = decisions.last()
    assert kept == replace(first, realised={"load": 1.25}, until=20.0)
    assert (other.until, now.until) == (None, None)
    assert [each.subject for each in decisions.last(after=first.id)] == ["means", "scores"]
    assert [each.sentence for each in decisions.last() if each.in_force(15.0)] == [
        "scores to 30 %",
        "means to 50 %",
    ]
    decisions.end("shed", "means", 21.0)
    assert decisions.last()[1].until == 21.0


def test_old_decisions_go(tmp_path):
    decisions = Decisions(Catalog(tmp_path / "catalog.db", keep=100))
    for number in range(300):
        decisions.record(Decision(float(number), "shed", "scores", ""))
    assert len(decisions.last()) < 170


def test_state_is_replaced(tmp_path):
    decisions = Decisions(Catalog(tmp_path / "catalog.db"))
    assert decisions.state("report") is None
    decisions.keep_state("report", 5.0, {"load": 1.0})
    decisions.keep_state("report", 6.0, {"load": 2.0})
    assert decisions.state("report") == (6.0, {"load": 2.0})


def test_sheds_stand_with_their_train(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    catalog.record_train(TrainRecord("main", 3, 0.0, 1.0, 100, sheds=(Shed("cars", 100, 40),)))
    catalog.record_train(TrainRecord("main", 3, 0.0, 1.0, 100, sheds=(Shed("cars", 100, 50),)))
    assert Decisions(catalog).sheds("main") == [(3, Shed("cars", 100, 50))]
    catalog.forget_subnetwork("main")
    assert Decisions(catalog).sheds("main") == []


def test_a_run_that_is_over_leaves_nothing_in_force_but_forms(tmp_path):
    decisions = Decisions(Catalog(tmp_path / "catalog.db"))
    decisions.record(Decision(10.0, "shed", "scores", "scores to 30 %"))
    decisions.record(Decision(11.0, "would-shed", "means", "would do: means to 50 %"))
    decisions.record(Decision(12.0, FORM, "main", "main runs in another form"))
    decisions.record(Decision(13.0, "warning", "network", "", until=14.0))
    decisions.end_all(20.0)
    assert [each.until for each in decisions.last()] == [20.0, 20.0, None, 14.0]
