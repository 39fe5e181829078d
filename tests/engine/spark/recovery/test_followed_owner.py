"""An owner that was suspended and followed: when it ends, the state of its follower stays."""

from __future__ import annotations

import shutil

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.recovery.state_versions import Recovery, StateVersions
from penstock.engine.spark.recovery.version_folder import delete_versions
from penstock.engine.spark.trains.source_memory import source_memory

RECOVERY = Recovery(seconds=10.0, inline=True)


def begun(directory, epoch, commit=None):
    log = TrainLog(directory, epoch)
    log.take_over()
    versions = StateVersions(directory, log, RECOVERY, sync=False)
    versions.after(None if commit is None else log.commit(commit), {}, set())
    return log, versions


def test_a_followed_owner_deletes_no_state_when_it_ends(tmp_path):
    directory = tmp_path / "sub"
    log, suspended = begun(directory, 1)
    for train, since in ((0, 99.0), (1, 0.0)):
        log.write_ticket(Ticket(train, 0.0))
        log.write_commit(Commit(train, epoch=1, network="-"))
        suspended.committed(train, {}, since)
    _, follower = begun(directory, 2, commit=1)
    state = follower.root / "state"
    state.write_text("of the follower")
    try:
        suspended.close()
        assert state.exists()
    finally:
        delete_versions(directory)


def test_the_memory_of_sources_is_copied_while_its_owner_deletes(tmp_path, monkeypatch):
    spool = tmp_path / "000001" / "cars" / "unpacked"
    spool.mkdir(parents=True)
    (spool / "1").write_text("forgotten")
    (tmp_path / "000001" / "cars" / "files.jsonl").write_text("kept")
    copy = shutil.copy2

    def deleted_first(source, target):
        (spool / "1").unlink(missing_ok=True)
        copy(source, target)

    monkeypatch.setattr(shutil, "copy2", deleted_first)
    memory = source_memory(tmp_path, ["cars"], 2, sync=False)
    assert (memory["cars"] / "files.jsonl").read_text() == "kept"
    assert not (memory["cars"] / "unpacked" / "1").exists()
