"""Snapshots that fail or take too long: the run goes on and says so, and nothing looks at what they write."""

from __future__ import annotations

import threading

import pytest

from engine.spark.recovery.dry_recovery import EVERY_TRAIN, NEVER, records, start, trains
from penstock.engine.spark.recovery.state_versions import Recovery


@pytest.mark.parametrize("inline", [True, False])
def test_any_failure_of_a_snapshot_is_told_and_it_is_tried_again(run, memory, monkeypatch, caplog, inline):
    dry = start(run, EVERY_TRAIN)
    versions = dry.query.trains.versions
    versions.recovery = Recovery(EVERY_TRAIN, inline=inline)
    with monkeypatch.context() as patched:
        patched.setattr(versions._snapshots, "save", lambda *_given: {}["no such part"])
        trains(dry, 1)
        versions._wait()
    told = "a snapshot of the state failed and is tried again: KeyError: 'no such part'"
    assert f"{dry.query.sub.name}: {told}" in caplog.text
    trains(dry, 1)
    versions._wait()
    assert records(run) == [1]


def test_it_is_said_once_that_snapshots_do_not_keep_up(run, memory, monkeypatch, caplog):
    dry = start(run, EVERY_TRAIN)
    versions = dry.query.trains.versions
    trains(dry, 2)
    assert "do not keep up" not in caplog.text
    monkeypatch.setattr(versions, "_begin", lambda _snapshot: None)  # it takes for ever
    trains(dry, 1)
    assert "do not keep up" not in caplog.text, "no snapshot could cover this train yet"
    trains(dry, 3)
    assert caplog.text.count("do not keep up") == 1


def test_the_state_is_looked_for_when_no_snapshot_is_being_written(run, memory):
    dry = start(run, NEVER)
    trains(dry, 2)
    versions, commit = dry.query.trains.versions, dry.query.log.commit(1)
    may_end, ended = threading.Event(), []

    def writes():
        may_end.wait(10)
        ended.append(True)

    versions._writing = threading.Thread(target=writes)
    versions._writing.start()
    threading.Timer(0.05, may_end.set).start()
    versions.after(commit, commit.state, set(commit.state))
    assert ended
