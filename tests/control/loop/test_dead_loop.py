"""A loop that dies, or is silent for a while: valves open, it is told, and exactness is still noted."""

from __future__ import annotations

import time
from threading import Thread

import pytest
from tests.control.loop.test_control import FakeRun, begun, overload, sentences

from penstock.control.report import MEMORY, REPORT
from penstock.engine.contract.situation import Situation
from penstock.store.catalog.decisions import Decisions

AS_IT_COMES = 500_000


def shedding(tmp_path, **options):
    """A run whose control has shut valves, and has noted that answers are not exact."""
    run = FakeRun(tmp_path)
    control = begun(run, **options)
    overload(run)
    control.look()
    run.train(64, 2500)
    control._report(0.0)
    return run, control


def valves(run):
    return run.queries["alarms"].steering.valves


def state(run, name):
    return Decisions(run.catalog).state(name)[1]


def reported(run):
    plain = state(run, REPORT)
    return plain["valves"], {each["name"]: each["exact_since"] for each in plain["outputs"]}


def ask(control):
    return control._dispatcher.next_train(Situation("alarms", 0, 0.0))


def silent_for(control, seconds):
    control._dispatcher._beat -= seconds


def test_a_dead_loop_opens_its_valves_and_says_so(tmp_path):
    run, control = shedding(tmp_path)
    assert valves(run)
    assert reported(run)[0]
    run.output_seconds, seconds = None, run.output_seconds  # whatever goes wrong
    loop = Thread(target=control._run)
    loop.start()
    until = time.monotonic() + 10
    while not sentences(run, "control") and time.monotonic() < until:
        time.sleep(0.01)
    assert isinstance(control.failure, TypeError)
    assert valves(run) == ()
    assert "all valves are open" in sentences(run, "control")[0].sentence
    assert ask(control) == AS_IT_COMES
    run.output_seconds = seconds
    control.end()
    loop.join(10)
    assert reported(run)[0] == [], "it goes on telling how the run stands"


def test_what_was_decided_ends_with_the_loop(tmp_path):
    run, control = shedding(tmp_path)
    control._fail(ValueError("whatever"))
    assert sentences(run, "shed")
    assert all(each.until is not None for each in sentences(run, "shed"))
    shut, exact = reported(run)
    assert (shut, exact["scores"]) == ([], None)
    assert all(each["share"] == 1 for each in state(run, REPORT)["outputs"])
    assert (state(run, MEMORY)["kept"], state(run, MEMORY)["shares"]) == (1.0, {})
    run.train(65, 2500)
    control._tell()
    assert reported(run)[1]["scores"] is not None, "a train that shed nothing ends it"
    assert (state(run, MEMORY)["kept"], state(run, MEMORY)["shares"]) == (1.0, {})


def test_a_step_that_fails_keeps_none_of_the_others_back(tmp_path):
    run, control = shedding(tmp_path)
    set_valves = run.set_valves

    def broken(name, wanted):
        set_valves(name, wanted)
        raise OSError("the catalog cannot be written")

    run.set_valves, run.queries["other"] = broken, run.query(run.subs[0])
    run.queries["other"].steering.valves = valves(run)
    control._fail(ValueError("whatever"))
    assert [query.steering.valves for query in run.queries.values()] == [(), ()]
    assert sentences(run, "control")


def test_a_look_that_was_stuck_shuts_nothing_once_control_has_failed(tmp_path):
    run, control = shedding(tmp_path)
    set_valves = run.set_valves

    def stuck(name, wanted):
        """While it is on its way, a conductor finds that control is broken."""
        if wanted:
            control._fail(ValueError("whatever"))
        set_valves(name, wanted)

    run.set_valves = stuck
    run.queries["alarms"].steering.valves = ()
    control.look()
    assert control.failure is not None
    assert valves(run) == ()
    control.look()
    assert valves(run) == ()


def test_a_fault_while_a_train_ends_is_not_the_trains(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    control._book = None  # whatever goes wrong
    run.train(64, 1000)
    run.train(65, 1000)
    assert isinstance(control.failure, AttributeError)
    assert len(sentences(run, "control")) == 1


def test_a_silent_loop_opens_its_valves_until_it_looks_again(tmp_path):
    run, control = shedding(tmp_path)
    shut = valves(run)
    silent_for(control, 11)
    assert ask(control) == AS_IT_COMES
    assert valves(run) == ()
    assert reported(run)[0] == []
    assert (state(run, MEMORY)["kept"], state(run, MEMORY)["shares"]) == (1.0, {})
    assert all(each.until is not None for each in sentences(run, "shed"))
    assert control.failure is None
    control.look()
    assert {valve.at for valve in valves(run)} >= {valve.at for valve in shut}
    assert any(each.until is None for each in sentences(run, "shed"))
    assert state(run, MEMORY)["shares"]
    first, again = (each.sentence for each in sentences(run, "control"))
    assert "has not looked for ten seconds" in first
    assert all("scores" in each.outputs for each in sentences(run, "control")), "it concerns all outputs"
    assert "looks again" in again
    assert ask(control) != AS_IT_COMES


@pytest.mark.parametrize("asked", [True, False], ids=["only the loop", "the whole process"])
def test_a_process_that_stood_still_is_no_silent_loop(tmp_path, asked):
    """Somebody has stopped it for a while: the loop looks as soon as conductors ask."""
    run, control = shedding(tmp_path)
    ask(control)
    silent_for(control, 11)
    if not asked:
        control._dispatcher._asked_last -= 11
    ask(control)
    assert (valves(run) == ()) == asked


def test_a_silent_loop_that_only_observes_has_nothing_to_open(tmp_path):
    run, control = shedding(tmp_path, observe=True)
    control._fall_silent()
    control._fail(ValueError("whatever"))
    assert valves(run) == ()
    assert all(each.until is not None for each in sentences(run, "would-shed"))
