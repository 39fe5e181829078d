"""State that is rebuilt: from memory, from a snapshot and the trains after it, or from the beginning."""

from __future__ import annotations

import json
import logging
import shutil

import pytest

from engine.spark.recovery.dry_recovery import (
    EVERY_TRAIN,
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
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.recovery import state_versions, version_folder
from penstock.engine.spark.recovery.state_versions import Recovery
from penstock.engine.spark.tasks import state
from penstock.engine.spark.trains import train
from penstock.model.errors import PenstockError


def test_no_train_writes_state_into_the_checkpoint(run, expected, memory):
    dry = start(run, NEVER)
    dry.run_all()
    assert written(run) == expected
    assert not (query_directory(run) / "state").exists()
    assert not (query_directory(run) / "snapshots").exists()
    assert list(memory.rglob("*.parts"))


def test_a_killed_run_goes_on_from_memory(run, expected, caplog):
    trains(start(run, NEVER), 4)
    start(run, NEVER, epoch=2).run_all()
    assert written(run) == expected
    assert "run again" not in caplog.text


@pytest.mark.parametrize("recovery", [EVERY_TRAIN, NEVER])
@pytest.mark.parametrize("after", [1, 4, SECONDS])
def test_after_a_reboot_trains_run_again_and_put_nothing_out(run, expected, memory, recovery, after, caplog):
    trains(start(run, recovery), after)
    reboot(memory)
    start(run, recovery, epoch=2).run_all()
    assert written(run) == expected
    again = "run again" in caplog.text
    assert again == (recovery == NEVER and after < SECONDS), "without more input there is nothing to rebuild"


def test_a_crash_while_it_is_rebuilt(run, expected, memory, monkeypatch):
    trains(start(run, NEVER), 5)
    reboot(memory)
    dry = start(run, NEVER, epoch=2)
    calls = []

    def dies(point):
        calls.append(point)
        if calls.count("rebuilt-train") == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(train, "crash_point", dies)
        with pytest.raises(KeyboardInterrupt):
            dry.train()
    start(run, NEVER, epoch=3).run_all()
    assert written(run) == expected


def test_two_snapshots_stay_and_all_that_is_needed_to_run_trains_again(run, expected, memory):
    dry = start(run, EVERY_TRAIN)
    trains(dry, 6)
    assert records(run) == [4, 5]
    assert dry.query.trains.versions.needed == 4
    # the newest is torn: the older one serves
    directory = query_directory(run) / "snapshots" / "stages"
    torn = list(directory.rglob("000000000005-*.parts"))
    assert torn
    for path in torn:
        data = bytearray(path.read_bytes())
        data[-70] ^= 1
        path.write_bytes(data)
    reboot(memory)
    start(run, EVERY_TRAIN, epoch=2).run_all()
    assert written(run) == expected


def test_a_snapshot_is_not_used_without_its_record(run, expected, memory, caplog):
    trains(start(run, EVERY_TRAIN), 6)
    newest = max((query_directory(run) / "snapshots" / "records").iterdir())
    newest.write_bytes(newest.read_bytes()[:-5])
    reboot(memory)
    start(run, EVERY_TRAIN, epoch=2).run_all()
    assert written(run) == expected
    assert "a snapshot of the state is not used" in caplog.text


def test_without_snapshots_and_tickets_it_is_refused(run, memory):
    trains(start(run, EVERY_TRAIN), 6)
    shutil.rmtree(query_directory(run) / "snapshots")
    TrainLog(query_directory(run), 1).forget(4)
    reboot(memory)
    with pytest.raises(PenstockError, match="this file of the state is missing"):
        start(run, EVERY_TRAIN, epoch=2)


def test_input_that_is_gone_is_refused(run, memory):
    trains(start(run, NEVER), 4)
    reboot(memory)
    (run / "in" / "t2-g0.csv").unlink()
    dry = start(run, NEVER, epoch=2)
    with pytest.raises(PenstockError, match="must run again to rebuild the state, but its input is gone"):
        dry.train()


def test_what_a_ticket_leaves_out_stays_left_out(run, memory):
    (run / "in" / "t3-g0.csv").unlink()
    trains(start(run, NEVER), 5)
    letters = written(run)[2]
    assert any("t3-g0.csv" in letter for letter in letters)
    # it comes back, too late
    (run / "in" / "t3-g0.csv").write_text("1,0,30\nbad 3\n")
    reboot(memory)
    dry = start(run, NEVER, epoch=2)
    dry.run_all()
    assert "1,8" not in written(run)[0]["roads"], "the row of second 3 was not counted"
    assert "1,7" in written(run)[0]["roads"]


@pytest.mark.parametrize("ways", [(None, NEVER), (NEVER, None), (EVERY_TRAIN, None), (None, EVERY_TRAIN)])
@pytest.mark.parametrize("down", [False, True])
def test_a_run_may_change_from_one_way_to_the_other(run, expected, memory, ways, down):
    for epoch, recovery in enumerate((*ways, ways[0]), 1):
        dry = start(run, recovery, epoch=epoch)
        trains(dry, 2)
        if down:
            reboot(memory)
    start(run, ways[1], epoch=9).run_all()
    assert written(run) == expected


def test_the_other_way_leaves_nothing_behind(run, memory):
    trains(start(run, EVERY_TRAIN), 3)
    trains(start(run, None, epoch=2), 1)
    assert not (query_directory(run) / "snapshots").exists()
    assert not list(memory.iterdir())
    trains(start(run, EVERY_TRAIN, epoch=3), 1)
    assert not (query_directory(run) / "state").exists()


def test_versions_that_vanish_from_memory_while_it_runs(run, expected, memory, caplog):
    dry = start(run, NEVER)
    trains(dry, 4)
    state._RESIDENT.clear()  # the partition has moved to another worker
    for path in memory.rglob("*.parts"):
        path.unlink()
    dry.run_all()
    assert written(run) == expected
    assert "run again" in caplog.text


def test_a_clean_stop_frees_memory_and_leaves_nothing_to_run_again(run, expected, memory, caplog):
    dry = start(run, NEVER)
    trains(dry, 4)
    dry.query.stop()
    assert not list(memory.iterdir())
    assert records(run) == [3]
    start(run, NEVER, epoch=2).run_all()
    assert written(run) == expected
    assert "run again" not in caplog.text


def test_trains_of_another_network_are_not_run_again(run, memory):
    settings = Recovery(NEVER, network="first", inline=True)
    dry = start(run, NEVER)
    dry.query.trains.versions.recovery = settings
    trains(dry, 4)
    reboot(memory)
    with pytest.raises(PenstockError, match="the network has changed since train 3"):
        start(run, NEVER, epoch=2)


def test_state_that_is_forgotten_does_not_come_back(run, memory):
    dry = start(run, EVERY_TRAIN)
    trains(dry, 4)
    dry.query.stop()
    dry.query.forget_state()
    reboot(memory)
    start(run, EVERY_TRAIN, epoch=2).run_all()
    assert max(written(run)[0]["roads"]) == "2,4", "counted anew since then"


def test_tickets_are_kept_back_to_the_older_snapshot(run, monkeypatch):
    dry = start(run, NEVER)
    dry.run_all()
    query = dry.query
    last = query.log.ticket(query.last)
    assert query._needed(last) == -1
    assert query.log.ticket(0) is not None


def test_a_snapshot_that_fails_is_tried_again(run, expected, memory, monkeypatch, caplog):
    dry = start(run, EVERY_TRAIN)
    trains(dry, 2)

    def full(*_args, **_named):
        raise OSError(28, "No space left on device")

    versions = dry.query.trains.versions
    with monkeypatch.context() as patched:
        patched.setattr(versions._snapshots, "save", full)
        trains(dry, 2)
    assert "tried again" in caplog.text
    assert versions.needed == 0
    trains(dry, 1)
    assert records(run) == [1, 4]


def test_snapshots_are_written_beside_the_trains(run, expected, memory):
    dry = start(run, EVERY_TRAIN)
    versions = dry.query.trains.versions
    versions.recovery = Recovery(EVERY_TRAIN, inline=False)
    dry.run_all()
    dry.query.stop()
    assert records(run)[-1] == SECONDS - 1
    assert written(run) == expected
    assert not versions.busy


def test_only_what_is_new_is_written(run):
    dry = start(run, EVERY_TRAIN)
    trains(dry, 6)
    paths = (query_directory(run) / "snapshots" / "stages").rglob("*.parts")
    heads = [p.read_bytes() for p in paths]
    indexes = [json.loads(head[24 : 24 + int.from_bytes(head[8:16], "little")]) for head in heads]
    assert any(location[0] < index["version"][0] for index in indexes for location in index["parts"].values())


def test_what_killed_runs_of_deleted_checkpoints_left_in_memory_is_deleted(run, tmp_path, memory):
    trains(start(run, NEVER), 2)
    shutil.rmtree(run / "checkpoint")
    other = tmp_path / "other"
    second(other, 1)
    trains(start(other, NEVER), 1)
    assert len(list(memory.iterdir())) == 1


def test_what_killed_processes_were_writing_is_deleted(run, tmp_path, memory):
    trains(start(run, EVERY_TRAIN), 2)
    snapshots = query_directory(run) / "snapshots"
    parts = [next(folder.rglob("*.parts")) for folder in (memory, snapshots / "stages")]
    left = [path.with_name(f".{path.name}.host.1.2.3.tmp") for path in parts]
    left.append(snapshots / "records" / ".1.json.host.1.2.3.tmp")
    other = memory / "penstock-other"
    other.mkdir()
    (other / "checkpoint.txt").write_text(str(tmp_path))
    (other / ".0.parts.host.1.2.3.tmp").touch()
    for path in left:
        path.touch()
    start(run, EVERY_TRAIN, epoch=2)
    assert not [path for path in left if path.exists()]
    assert len(list(other.iterdir())) == 2, "of another checkpoint, whose owner may be writing"


def test_a_checkpoint_made_anew_in_the_same_place_starts_empty(run, expected):
    trains(start(run, NEVER), 5)
    shutil.rmtree(run / "checkpoint")
    shutil.rmtree(run / "out")
    start(run, NEVER).run_all()
    assert written(run) == expected


def test_where_memory_is_short_versions_lie_in_the_checkpoint(run, expected, monkeypatch, memory):
    monkeypatch.setattr(version_folder, "_has_room", lambda _folder: False)
    trains(start(run, NEVER), 4)
    assert not list(memory.iterdir())
    assert list((query_directory(run) / "versions").rglob("*.parts"))
    start(run, NEVER, epoch=2).run_all()
    assert written(run) == expected


@pytest.mark.parametrize("taken", ["file", "open"])
def test_a_name_in_memory_that_is_not_ours_is_not_used(run, memory, taken):
    folder = version_folder._in_memory(run / "checkpoint" / "queries" / "x")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777 if taken == "open" else 0o755)
    chosen = version_folder.version_folder(run / "checkpoint" / "queries" / "x", local=True)
    assert chosen.is_relative_to(run)


def test_on_a_cluster_versions_lie_in_the_checkpoint(run):
    chosen = version_folder.version_folder(run, local=False)
    assert chosen.is_relative_to(run)


def test_an_owner_that_was_followed_deletes_no_snapshot(run, expected, memory):
    old = start(run, EVERY_TRAIN)
    trains(old, 3)
    new = start(run, EVERY_TRAIN, epoch=2)
    before = records(run)
    versions = old.query.trains.versions
    versions.committed(2, old.query.trains.state, 1.0)  # wakes up in the middle of a snapshot
    assert set(before) <= set(records(run))
    new.run_all()
    assert written(run) == expected


def test_logging_is_quiet_without_a_crash(run, caplog):
    with caplog.at_level(logging.WARNING):
        start(run, EVERY_TRAIN).run_all()
    assert not caplog.records


def test_a_version_of_another_boot_is_not_found(run, monkeypatch, memory):
    monkeypatch.setattr(version_folder, "_has_room", lambda _folder: False)
    trains(start(run, NEVER), 3)
    monkeypatch.setattr(version_folder, "boot_id", lambda: "another")
    dry = start(run, NEVER, epoch=2)
    assert list(dry.query.trains._behind) == [0, 1, 2]
    assert state_versions.known_folders(query_directory(run)) == [dry.query.trains.versions.root]
