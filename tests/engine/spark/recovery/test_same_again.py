"""A train that runs again for its state must do what it did the first time; else the start is refused."""

from __future__ import annotations

import pytest

from engine.spark.recovery.dry_recovery import NEVER, reboot, start, trains, written
from penstock.engine.contract.account import AccountError
from penstock.engine.spark.tasks.state_parts import StateError
from penstock.testing.columns import ReportsPerCar


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("1,x,30\nbad 2\n", "train 1 .* source 'rows' did not do the same"),
        ("1,2,05\nbad 2\n", "train 1 .* box 'fast' did not do the same"),
    ],
)
def test_input_that_has_changed_is_refused(run, memory, lines, what):
    """Its length is the same, so its reader does not notice."""
    trains(start(run, NEVER), 4)
    file = run / "in" / "t2-g0.csv"
    assert len(lines) == file.stat().st_size
    file.write_text(lines)
    reboot(memory)
    dry = start(run, NEVER, epoch=2)
    before = written(run)
    with pytest.raises(StateError, match=what):
        dry.train()
    assert written(run) == before
    assert dry.query.log.last_commit() == 3


def test_input_of_zeros_is_refused(run, memory):
    """A power cut may leave a file with its length, but without what was in it."""
    trains(start(run, NEVER), 4)
    file = run / "in" / "t2-g0.csv"
    file.write_bytes(bytes(file.stat().st_size))
    reboot(memory)
    with pytest.raises(AccountError, match="source 'rows', train 1"):
        start(run, NEVER, epoch=2).train()


def test_a_function_that_gives_something_else_is_refused(run, memory, monkeypatch):
    trains(start(run, NEVER), 4)
    reboot(memory)
    process = ReportsPerCar.process

    def fewer(logic, inputs, until, final):
        return {name: column[:-1] for name, column in process(logic, inputs, until, final).items()}

    monkeypatch.setattr(ReportsPerCar, "process", fewer)
    with pytest.raises(StateError, match=r"train 0 .* box 'cars'") as refused:
        start(run, NEVER, epoch=2).train()
    assert "a function gives other answers" in str(refused.value)


def test_input_that_was_restored_serves(run, expected, memory):
    trains(start(run, NEVER), 4)
    file = run / "in" / "t2-g0.csv"
    was = file.read_text()
    file.write_text(was.replace("30", "05"))
    reboot(memory)
    with pytest.raises(StateError):
        start(run, NEVER, epoch=2).train()
    file.write_text(was)
    start(run, NEVER, epoch=3).run_all()
    assert written(run) == expected
