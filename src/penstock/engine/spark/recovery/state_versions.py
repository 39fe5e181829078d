"""Which versions of a sub-network's state exist, and how the one after the last commit is rebuilt.

There are two ways. With *deltas*, each train writes what it changed into the checkpoint before its commit.
With *snapshots*, it writes that into memory only (`version_folder.py`). Every few seconds of trains, a thread
of the driver copies one version into the checkpoint, while the next trains run. After a crash the version is
still in memory; or, if the machine went down, the newest snapshot is loaded and the trains since then run
again, with everything they put out suppressed.

A start finds the version wherever an earlier start has left it, so a run may change from one way to the
other.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.recovery.snapshot_files import PartitionVersion
from penstock.engine.spark.recovery.snapshots import BEGINNING, Snapshot, Snapshots, State, kept_of
from penstock.engine.spark.recovery.version_folder import (
    delete_orphans,
    delete_unfinished,
    delete_versions,
    known_folders,
    version_folder,
)
from penstock.engine.spark.tasks.state_parts import StateError
from penstock.model.errors import one_line
from penstock.process.open_files import allow_open_files
from penstock.store.errors import FencedError

_LOG = logging.getLogger("penstock")
_STATE = "state"
_NICE = 10  # of the thread that writes snapshots
_LONG_AGO = float("-inf")
_OPEN_FILES = 1 << 16  # a snapshot maps all files of all partitions at once, see `snapshot_files.py`


@dataclass(frozen=True)
class Recovery:
    """How state is kept.

    `seconds`: how long trains may have to run again after a crash; None: not at all, each train writes a
    delta. `network`: identifies the boxes that make the state; trains of another network are not run again.
    `local`: all workers run on this host. `inline`: snapshots are written by the caller, for tests.
    """

    seconds: float | None = None
    network: str = "-"
    local: bool = True
    inline: bool = False


DELTAS = Recovery()


class Start(NamedTuple):
    """The newest version that there is: of which train, and the tokens of its partitions."""

    train: int
    state: State


class StateVersions:
    """The versions of one sub-network's state; `directory` is its own under the checkpoint."""

    def __init__(self, directory: Path, log: TrainLog, recovery: Recovery, *, sync: bool) -> None:
        self.recovery, self._directory, self._log = recovery, directory, log
        self.uses_snapshots = recovery.seconds is not None
        self.sync = sync and not self.uses_snapshots  # whether tasks flush what they write
        self.root = directory / _STATE
        if self.uses_snapshots:
            allow_open_files(_OPEN_FILES)
            delete_orphans()
            self.root = version_folder(directory, local=recovery.local)
        self._snapshots = Snapshots(directory, sync=sync)
        delete_unfinished(self.root, self._snapshots.root, *known_folders(directory))
        self._kept: list[Snapshot] = []  # newest first
        self._base: Snapshot | None = None  # the newest that this run has written
        # In seconds of trains of this run. The thread that writes a snapshot sets `_covered`, or `_begun` if
        # it fails; until it has ended, no other thread does.
        self._total = 0.0
        self._begun = 0.0  # when the newest snapshot was begun
        self._covered = 0.0  # when the newest whole one was begun
        self._late = False  # it was said that snapshots do not keep up
        self._writing: threading.Thread | None = None
        self._latest: Snapshot | None = None  # the version after the last train of this run
        self._torn: set[int] = set()  # trains whose snapshot could not be loaded
        self._behind: int | None = None  # until state is rebuilt: the train that this begins after
        self._tidy = False  # what the other way has left is deleted

    def folder(self, stage: str) -> Path:
        """Where tasks read and write the versions of a stage."""
        return self.root / stage

    # -- the start

    def after(
        self, commit: Commit | None, wanted: State, stages: set[str], *, contents: bool = False
    ) -> Start:
        """The version that a commit names (`wanted`), or the newest one before it that there is.

        Refuses if the trains in between cannot be run again. `contents`: check them, not only their names.
        """
        self._wait()  # versions may have vanished in mid-run, while a snapshot is being written
        if commit is None:
            self._begin_empty()
            return Start(BEGINNING, {})
        known = [s for s in self._snapshots.newest_first() if s.train <= commit.train]
        oldest = self._oldest_runnable(commit.train, known)
        try:
            self._find(commit.train, wanted, contents=contents)
            start = Start(commit.train, wanted)
            if not self.uses_snapshots:
                # From now on input that snapshots would need is released, even if no train comes.
                self._log.must_own()  # whoever has been followed deletes nothing
                self._tidy_up()
        except StateError as error:
            start = self._from_snapshot(known, stages, oldest, error)
        self._behind = start.train if start.train < commit.train else None
        if self.uses_snapshots:
            self._learn_kept(start, known, oldest)
        return start

    def _begin_empty(self) -> None:
        delete_versions(self._directory)  # of a checkpoint that was here before
        if self.uses_snapshots:
            self.root = version_folder(self._directory, local=self.recovery.local)
        self._kept = [Snapshot(BEGINNING, {})]

    def _find(self, train: int, wanted: State, *, contents: bool) -> None:
        """Have the version in our own folder; raises StateError if it is nowhere."""
        try:
            self.check(train, wanted, contents=contents)
        except StateError:
            others = [*known_folders(self._directory), self._directory / _STATE]
            for folder in (other for other in others if other != self.root):
                with suppress(StateError):
                    self._copy(folder, train, wanted)
                    return
            raise

    def check(self, train: int, state: State, *, contents: bool = False) -> None:
        """Refuse a version that lacks a file; with `contents` also one with a torn file."""
        for stage, partition, token in Snapshot(train, state).partitions():
            PartitionVersion(self.folder(stage), partition, (train, token)).check(contents=contents)

    def _copy(self, folder: Path, train: int, state: State) -> None:
        for stage, partition, token in Snapshot(train, state).partitions():
            bodies = PartitionVersion(folder / stage, partition, (train, token)).bodies()
            read = {name: body.read() for name, body in bodies.items()}
            PartitionVersion(self.folder(stage), partition, (train, token)).write(read, sync=self.sync)

    def _from_snapshot(self, known: list[Snapshot], stages: set[str], oldest: int, lost: StateError) -> Start:
        torn = []
        for snapshot in [*known, Snapshot(BEGINNING, {})]:
            if snapshot.train + 1 < oldest:
                self._must_be_same_network(oldest - 1)
                break
            try:
                self._snapshots.load(snapshot, self.root, stages, sync=self.sync)
            except StateError as error:
                _LOG.warning("a snapshot of the state is not used: %s", one_line(error.problem))
                self._torn.add(snapshot.train)
                torn.append(one_line(error.problem))
                continue
            state = {stage: tokens for stage, tokens in snapshot.state.items() if stage in stages}
            return Start(snapshot.train, state)
        if not torn:
            raise lost
        told = "; ".join(dict.fromkeys(torn))
        raise StateError(f"{lost.problem}; nor can a snapshot be used: {told}", hint=lost.hint) from lost

    def _oldest_runnable(self, last: int, known: list[Snapshot]) -> int:
        """The first train from which on all can be run again, up to the last one committed."""
        first, oldest = self._first_with_input(last, known), last + 1
        for commit in self._log.committed_back(last):
            if commit.train < first or commit.network != self.recovery.network:
                break
            oldest = commit.train
        return oldest

    def _first_with_input(self, last: int, known: list[Snapshot]) -> int:
        """The first train whose input must still be there; tickets may reach further back.

        With the second snapshot, what came before the first was released. Points then lack old entries, and a
        reader that begins with entry 0 would not miss them.
        """
        if not self._snapshots.released_input(known):
            return 0
        return min((snapshot.train for snapshot in known[:2]), default=last) + 1

    def _must_be_same_network(self, train: int) -> None:
        commit = self._log.commit(train)
        if commit is not None and commit.network not in ("", self.recovery.network):
            raise StateError(
                f"{self._directory}: the state must be rebuilt by running trains again, but the network has "
                f"changed since train {train}",
                hint="start once with the network as it was and stop it; then change it",
            )

    def _learn_kept(self, start: Start, known: list[Snapshot], oldest: int) -> None:
        """Know the snapshots that trains can be run again from; if there are none, write one now."""
        whole = [s for s in known if oldest - 1 <= s.train and self._whole(s)]
        self._kept = kept_of(whole, from_beginning=oldest == 0)
        self._begun = _LONG_AGO
        if not self._kept:
            self._save(Snapshot(*start))

    def _whole(self, snapshot: Snapshot) -> bool:
        if snapshot.train in self._torn:
            return False
        try:
            self._snapshots.check(snapshot)
        except StateError as error:
            _LOG.warning("a snapshot of the state is not used: %s", one_line(error.problem))
            return False
        return True

    # -- while it runs

    @property
    def needed(self) -> int | None:
        """The train after which all may have to be run again; None: only the newest."""
        return self._kept[-1].train if self.uses_snapshots else self._behind

    def committed(self, train: int, state: State, seconds: float) -> None:
        """Learn of a committed train and how long it took; begin a snapshot when it is time."""
        self._latest, self._behind = Snapshot(train, state), None
        if not self.uses_snapshots:
            self._tidy_up()
            return
        before, self._total = self._total, self._total + seconds
        # Half of it: while a snapshot is being written, the one before counts.
        if self._total - self._begun >= (self.recovery.seconds or 0.0) / 2 and not self.busy:
            self._begin(self._latest)
        self._warn_if_late(before)

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written."""
        return self._writing is not None and self._writing.is_alive()

    def _wait(self) -> None:
        """Until no snapshot is being written."""
        if self._writing is not None:
            self._writing.join()

    def _begin(self, snapshot: Snapshot) -> None:
        self._begun = self._total
        if self.recovery.inline:
            self._try_save(snapshot, self._begun)
            return
        self._writing = threading.Thread(
            target=self._in_background, args=(snapshot, self._begun), name="state-snapshot", daemon=True
        )
        self._writing.start()

    def _in_background(self, snapshot: Snapshot, total: float) -> None:
        with suppress(OSError, AttributeError):  # on Linux a thread has a priority of its own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        self._try_save(snapshot, total)

    def _try_save(self, snapshot: Snapshot, total: float) -> None:
        """Save a snapshot. If that fails the run goes on, and the next train tries again."""
        try:
            self._save(snapshot)
        except FencedError:
            return  # the next train says so
        except Exception as error:  # in a thread nobody else would tell
            _LOG.warning(
                "%s: a snapshot of the state failed and is tried again: %s: %s",
                self._directory.name,
                type(error).__name__,
                one_line(error),
            )
            self._begun = _LONG_AGO
        else:
            self._covered = total

    def _warn_if_late(self, before: float) -> None:
        """Say once that a crash of the machine would cost more than was asked for.

        `before`: the last train. However long that was, a snapshot could only begin after it.
        """
        target = self.recovery.seconds or 0.0
        if before - self._covered > target and not self._late:
            self._late = True
            _LOG.warning(
                "%s: snapshots of its state do not keep up: if the machine fails now, trains of %.1f seconds "
                "run again; the target is %.1f",
                self._directory.name,
                self._total - self._covered,
                target,
            )

    def _save(self, snapshot: Snapshot) -> None:
        self._write(snapshot)
        self._tidy_up()

    def _write(self, snapshot: Snapshot) -> None:
        bodies = {
            (stage, partition): PartitionVersion(
                self.folder(stage), partition, (snapshot.train, token)
            ).bodies()
            for stage, partition, token in snapshot.partitions()
        }
        kept = kept_of([snapshot, *self._kept], from_beginning=False)
        # The first one of a run builds on nothing: what an earlier run has left may be torn.
        self._snapshots.save(replace(snapshot, needed=kept[-1].train), bodies, self._base)
        self._log.must_own()  # whoever has been followed deletes nothing
        self._base, self._kept = snapshot, kept
        self._snapshots.retire(kept)

    def _tidy_up(self) -> None:
        """Delete what the other way of keeping state has left, once it is not needed any more."""
        if self._tidy:
            return
        self._tidy = True
        if self.uses_snapshots:
            shutil.rmtree(self._directory / _STATE, ignore_errors=True)
        else:
            self._snapshots.delete()
            delete_versions(self._directory)

    # -- the end

    def settle(self, train: int, state: State) -> None:
        """Learn the version after the last commit, at the end of a run that perhaps had no train."""
        if self._latest is not None:
            return
        self._latest = Snapshot(train, state)
        if not self.uses_snapshots:
            self._write(self._latest)  # it was rebuilt, and no commit names it
        self._behind = None

    def close(self) -> None:
        """Write a last snapshot, so that the next start need not run anything again, and free the memory."""
        self._wait()
        if not self.uses_snapshots or self._latest is None:
            return
        if self._kept[0].train < self._latest.train:
            self._try_save(self._latest, self._total)
        if self._kept[0].train == self._latest.train and self._is_mine():
            delete_versions(self._directory)

    def _is_mine(self) -> bool:
        """Whether nobody has followed: the state in memory would be the follower's."""
        try:
            self._log.must_own()
        except FencedError:
            return False
        return True

    def restart_empty(self, train: int) -> None:
        """Forget all state: after this train, the next start begins with none."""
        self._wait()  # a snapshot that is still written would bring it back
        if self.uses_snapshots:
            self._snapshots.delete()
            self._kept = []
            self._save(Snapshot(train, {}))
        else:
            self._snapshots.delete()
        delete_versions(self._directory)
        shutil.rmtree(self._directory / _STATE, ignore_errors=True)
