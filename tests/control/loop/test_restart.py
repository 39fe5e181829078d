"""What a run under control finds of the one before: shares that hold for a moment, losses that stay."""

from __future__ import annotations

import time

import pytest
from tests.control.loop.test_control import FakeRun, begun, overload, sentences

from penstock.control.report import MEMORY, REPORT
from penstock.store.catalog.decisions import FORM, Decisions
from penstock.store.catalog.record_types import Decision

LEFT = {"kept": 0.5, "shares": {"scores": 0.3}, "exact": {"scores": [None, 5]}}


def ended(tmp_path, *, ago=0.0, reported=None):
    """A run whose last one has shed until so many seconds ago."""
    run = FakeRun(tmp_path)
    decisions = Decisions(run.catalog)
    decisions.keep_state(MEMORY, time.time() - ago, LEFT)
    if reported is not None:
        decisions.keep_state(REPORT, time.time() - reported, {})
    decisions.record(Decision(time.time() - ago, "shed", "scores", "scores to 30 %"))
    return run


def test_shares_of_an_earlier_run_hold_until_they_are_opened(tmp_path):
    run = ended(tmp_path)
    control = begun(run)
    assert run.restored
    before, now = sentences(run, "shed")
    assert before.until is not None
    assert (now.subject, now.until, "stays at 30 %" in now.sentence) == ("scores", None, True)
    assert control.kept == 0.5
    assert control.qos().valves == ()
    assert {each.name: each.share for each in control.qos().outputs}["scores"] == 0.3
    overload(run)
    control.look()
    assert run.queries["alarms"].steering.valves
    assert control._exact["scores"].since is not None  # trains that shed nothing have run since


def test_a_run_that_reported_until_just_now_counts_though_its_shares_stood_for_long(tmp_path):
    assert begun(ended(tmp_path, ago=300.0, reported=5.0)).kept == 0.5


@pytest.mark.parametrize("ago", [90.0, 86_400.0, -3600.0], ids=["minutes", "a day", "the clock was set back"])
def test_an_overload_of_long_ago_says_nothing_about_now(tmp_path, ago):
    run = ended(tmp_path, ago=ago)
    control = begun(run)
    assert not run.restored
    assert (control.kept, control._shares) == (1.0, {})
    assert sentences(run, "shed")[0].until is not None
    assert "scores" in control._exact


@pytest.mark.parametrize("options", [{"observe": True}, {"shed": False}], ids=str)
def test_a_control_that_does_not_shed_takes_no_shares_over(tmp_path, options):
    run = ended(tmp_path)
    control = begun(run, **options)
    assert not run.restored
    assert (control.kept, control._shares) == (1.0, {})
    assert sentences(run, "shed")[0].until is not None


def test_what_an_observer_would_have_shed_is_not_shed_by_the_next_run(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run, observe=True)
    overload(run)
    control.look()
    assert control.kept < 1
    again = begun(FakeRun(tmp_path))
    assert (again.kept, again._shares) == (1.0, {})
    again.look()
    assert again._runtime.queries["alarms"].steering.valves == ()


@pytest.mark.parametrize("observe", [False, True])
def test_nothing_that_was_decided_holds_when_the_run_has_ended(tmp_path, observe):
    run = FakeRun(tmp_path)
    control = begun(run, observe=observe)
    overload(run)
    control.look()
    Decisions(run.catalog).record(Decision(time.time(), FORM, "alarms", "alarms runs in another form"))
    assert sentences(run, "would-shed" if observe else "shed")[-1].until is None
    control.end()
    assert {each.kind for each in Decisions(run.catalog).last() if each.until is None} == {FORM}
