"""A run that finds no input leaves the state as any clean stop does: in a snapshot, and no memory taken."""

from __future__ import annotations

import pytest

from engine.spark.recovery.dry_recovery import (
    NEVER,
    SECONDS,
    query_directory,
    reboot,
    records,
    second,
    start,
    trains,
    written,
)
from penstock.engine.spark.recovery.state_versions import Recovery
from penstock.model.errors import PenstockError
from penstock.testing import dry_run


def idle(folder, recovery, epoch):
    """A run without new input, and its clean stop."""
    dry = start(folder, recovery, epoch=epoch)
    assert not dry.train()
    dry.query.stop()


def change_network(monkeypatch):
    monkeypatch.setattr(
        dry_run, "Recovery", lambda seconds, inline: Recovery(seconds, network="changed", inline=inline)
    )


@pytest.mark.parametrize("down", [False, True])
def test_it_writes_the_last_snapshot_and_frees_the_memory(run, memory, caplog, down):
    trains(start(run, NEVER), SECONDS)
    if down:
        reboot(memory)
    idle(run, NEVER, 2)
    assert records(run) == [SECONDS - 1]
    assert not list(memory.iterdir())
    assert ("run again" in caplog.text) == down
    caplog.clear()
    idle(run, NEVER, 3)  # it loads that snapshot and has nothing to do
    assert not list(memory.iterdir())
    assert "run again" not in caplog.text


@pytest.mark.parametrize("recovery", [NEVER, None])
def test_after_it_the_network_may_change(run, memory, monkeypatch, recovery):
    """What the refusal tells: start once with the network as it was, and stop it."""
    trains(start(run, NEVER), SECONDS)
    reboot(memory)
    with monkeypatch.context() as patched:
        change_network(patched)
        with pytest.raises(PenstockError, match="start once with the network as it was and stop it"):
            start(run, recovery, epoch=2)
    idle(run, recovery, 3)
    change_network(monkeypatch)
    second(run, SECONDS + 1)
    trains(start(run, recovery, epoch=4), 1)
    assert f"1,{SECONDS + 1}" in written(run)[0]["roads"]


def test_without_snapshots_those_of_the_run_before_go(run, memory):
    """Their input is released although no train comes, so they could not be used any more."""
    trains(start(run, NEVER), 4)
    start(run, NEVER, epoch=2).query.stop()
    trains(start(run, NEVER, epoch=3), SECONDS - 4)  # and is killed
    assert records(run)[0] == 3
    idle(run, None, 4)
    assert not (query_directory(run) / "snapshots").exists()
    assert not list(memory.iterdir())
    idle(run, NEVER, 5)
    assert records(run) == [SECONDS - 1]


def test_input_stays_until_the_state_is_rebuilt(run, memory):
    trains(start(run, NEVER), SECONDS)
    reboot(memory)
    dry = start(run, None, epoch=2)
    assert dry.query.trains.versions.needed == -1, "all of it, although each train now writes its state"
    dry.query.stop()
    assert dry.query.trains.versions.needed is None


def test_state_that_cannot_be_rebuilt_stays_as_it_is(run, memory, caplog):
    trains(start(run, NEVER), SECONDS)
    reboot(memory)
    gone = run / "in" / "t2-g0.csv"
    was = gone.read_text()
    gone.unlink()
    idle(run, NEVER, 2)
    assert "its state was not rebuilt" in caplog.text
    assert not (query_directory(run) / "snapshots").exists()
    gone.write_text(was)
    idle(run, NEVER, 3)
    assert records(run) == [SECONDS - 1]
