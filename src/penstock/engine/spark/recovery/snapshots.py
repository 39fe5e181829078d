"""The snapshots of a sub-network: the state of all stages after one train, in the checkpoint.

A snapshot counts once its record is there, which is written last. The two newest stay: if the newest turns
out to be torn, the older one serves, and the trains since then run again. Before the second one is written,
the empty state before train 0 takes the place of the older.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.spark.recovery.snapshot_files import Body, PartitionSnapshots, PartitionVersion
from penstock.engine.spark.tasks.state_parts import StateError
from penstock.store.crash import crash_point
from penstock.store.durable import make_directory, read_record, write_record
from penstock.store.errors import StoreError
from penstock.store.file_names import number_of, number_text

State = Mapping[str, Mapping[str, str]]  # stage -> partition -> token, see Commit.state
Bodies = dict[tuple[str, str], dict[str, Body]]  # by stage and partition
BEGINNING = -1
_KEPT = 2
_RECORDS, _STAGES = "records", "stages"
_LOG = logging.getLogger("penstock")


@dataclass(frozen=True)
class Snapshot:
    """The state after a train; with BEGINNING, the empty state before the first.

    `needed`: the train after which input was kept when it was written; what came before was released.
    """

    train: int
    state: State
    needed: int = BEGINNING

    def partitions(self) -> Iterator[tuple[str, str, str]]:
        """(stage, partition, token) of each."""
        for stage, tokens in self.state.items():
            for partition, token in tokens.items():
                yield stage, partition, token


class Snapshots:
    """The snapshots in a folder; `sync`: they survive a power cut."""

    def __init__(self, directory: Path, *, sync: bool = False) -> None:
        self.root, self.sync = directory / "snapshots", sync
        self._of = directory.name

    def newest_first(self) -> list[Snapshot]:
        """Those whose record can be read."""
        paths = sorted((self.root / _RECORDS).glob("*.json"), reverse=True)
        return [snapshot for path in paths if (snapshot := self._read(path)) is not None]

    def _read(self, path: Path) -> Snapshot | None:
        try:
            record = read_record(path)
        except FileNotFoundError:
            return None  # deleted since it was listed
        except StoreError as error:
            _LOG.warning("a snapshot of the state is not used: %s", error)
            return None
        if record.get("of") != self._of:
            _LOG.warning("a snapshot of the state is not used: %s belongs elsewhere", path)
            return None
        return Snapshot(record["train"], record["state"], record.get("needed", BEGINNING))

    def released_input(self, known: list[Snapshot]) -> bool:
        """Whether input of the first trains was released, by what the records say or because there are two.

        A torn record says nothing, but it counts.
        """
        written = sum(1 for _ in (self.root / _RECORDS).glob("*.json"))
        return written >= _KEPT or any(snapshot.needed != BEGINNING for snapshot in known)

    def save(self, snapshot: Snapshot, bodies: Bodies, before: Snapshot | None) -> int:
        """Write a snapshot; returns the bytes written. Parts that `before` has too are not written again."""
        crash_point("snapshot-before-files")
        written = 0
        for stage, partition, token in snapshot.partitions():
            known = None if before is None else before.state.get(stage, {}).get(partition)
            files = self._partition(stage, partition)
            earlier = None if before is None or known is None else (before.train, known)
            written += files.save((snapshot.train, token), bodies[stage, partition], earlier)
        crash_point("snapshot-before-record")
        make_directory(self.root / _RECORDS, sync=self.sync)
        name = f"{number_text(snapshot.train)}-{uuid.uuid4().hex[:8]}.json"
        body = {
            "of": self._of,
            "train": snapshot.train,
            "state": snapshot.state,
            "needed": snapshot.needed,
        }
        write_record(self.root / _RECORDS / name, body, sync=self.sync)
        crash_point("snapshot-after-record")
        return written

    def load(self, snapshot: Snapshot, folder: Path, stages: set[str], *, sync: bool) -> None:
        """Put the state of these stages into `folder`; raises StateError if it is torn."""
        for stage, partition, token in snapshot.partitions():
            if stage in stages:
                version = (snapshot.train, token)
                bodies = self._partition(stage, partition).load(version)
                PartitionVersion(folder / stage, partition, version).write(bodies, sync=sync)

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot that lacks a file."""
        for stage, partition, token in snapshot.partitions():
            self._partition(stage, partition).check((snapshot.train, token))

    def retire(self, kept: list[Snapshot]) -> None:
        """Delete the snapshots before those `kept`: first their records, then their files."""
        oldest = min(snapshot.train for snapshot in kept)
        for path in (self.root / _RECORDS).glob("*.json"):
            if number_of(path.name) < oldest:
                path.unlink(missing_ok=True)
        crash_point("snapshot-before-forget")
        (first,) = [snapshot for snapshot in kept if snapshot.train == oldest][:1]
        newest = kept[0]
        for stage, partition, token in first.partitions():
            latest = newest.state.get(stage, {}).get(partition, token)
            try:
                self._partition(stage, partition).forget((first.train, token), (newest.train, latest))
            except StateError as error:
                _LOG.warning("old snapshots of the state stay: %s", error)

    def delete(self) -> None:
        """Delete all snapshots: records first."""
        shutil.rmtree(self.root / _RECORDS, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def _partition(self, stage: str, partition: str) -> PartitionSnapshots:
        return PartitionSnapshots(self.root / _STAGES / stage / partition, self.sync)


def kept_of(newest_first: list[Snapshot], *, from_beginning: bool) -> list[Snapshot]:
    """The snapshots to keep, newest first.

    `from_beginning`: all trains since the first can be run again.

    >>> [s.train for s in kept_of([Snapshot(n, {}) for n in (9, 6, 3)], from_beginning=False)]
    [9, 6]
    >>> [s.train for s in kept_of([Snapshot(3, {})], from_beginning=True)]
    [3, -1]
    """
    known = [*newest_first, *([Snapshot(BEGINNING, {})] if from_beginning else [])]
    return known[:_KEPT]
