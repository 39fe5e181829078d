"""Snapshots that are all torn: trains run again from the first one only if their input was never released."""

from __future__ import annotations

import shutil

import pytest

from engine.spark.recovery.dry_recovery import (
    EVERY_TRAIN,
    NEVER,
    query_directory,
    reboot,
    records,
    start,
    trains,
    written,
)
from penstock.engine.contract.train_log import TrainLog
from penstock.model.errors import PenstockError


def tear_all(folder):
    for path in (query_directory(folder) / "snapshots" / "stages").rglob("*.parts"):
        data = bytearray(path.read_bytes())
        data[20] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize("lost", ["contents", "records"])
def test_two_torn_snapshots_are_refused_although_all_tickets_are_there(run, memory, lost):
    trains(start(run, EVERY_TRAIN), 6)
    assert records(run) == [4, 5]
    assert TrainLog(query_directory(run)).ticket(0) is not None
    if lost == "contents":
        tear_all(run)
    else:
        for path in (query_directory(run) / "snapshots" / "records").iterdir():
            path.write_bytes(path.read_bytes()[:-5])
    reboot(memory)
    with pytest.raises(PenstockError, match="this file of the state is missing"):
        start(run, EVERY_TRAIN, epoch=2)


def test_one_torn_snapshot_is_not_needed(run, expected, memory, caplog):
    dry = start(run, NEVER)
    trains(dry, 4)
    dry.query.stop()
    assert records(run) == [3]
    tear_all(run)
    reboot(memory)
    start(run, NEVER, epoch=2).run_all()
    assert written(run) == expected
    assert "trains 0 to 3 run again" in caplog.text


def test_with_the_state_in_memory_a_new_snapshot_takes_the_place_of_torn_ones(run, expected, memory):
    trains(start(run, EVERY_TRAIN), 6)
    tear_all(run)
    dry = start(run, NEVER, epoch=2)
    assert dry.query.trains.versions.needed == 5
    assert records(run)[-1] == 5
    # it is the only one now, and says that no earlier train can run again
    tear_all(run)
    reboot(memory)
    with pytest.raises(PenstockError, match="this file of the state is missing"):
        start(run, NEVER, epoch=3)


@pytest.mark.parametrize("recovery", [NEVER, EVERY_TRAIN])
def test_a_start_lists_the_log_as_often_however_long_it_is(run, monkeypatch, recovery, tmp_path):
    listed = []
    slots = TrainLog._slots
    monkeypatch.setattr(TrainLog, "_slots", lambda *given: listed.append(1) or slots(*given))
    times = []
    for number in (2, 7):
        copy = tmp_path / str(number)
        shutil.copytree(run, copy)
        trains(start(copy, recovery), number)
        listed.clear()
        start(copy, recovery, epoch=2)
        times.append(len(listed))
    assert times[0] == times[1]
