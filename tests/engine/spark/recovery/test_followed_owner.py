"""An owner that was suspended and followed: when it ends, the state of its follower stays."""

from __future__ import annotations

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.recovery.state_versions import Recovery, StateVersions
from penstock.engine.spark.recovery.version_folder import delete_versions

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
