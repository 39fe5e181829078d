"""One partition's state at one version, copied: into a snapshot, out of it, or from folder to folder.

A snapshot of a partition is one file of named parts, see `tasks/state_parts.py`: the parts of boxes that keep
theirs in parts, and as further parts the whole files of all other boxes. A part that the snapshot before has
too, by name, length and checksum, is not written again, and not even read.

A copy first maps all files it needs. From then on later trains may delete them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import xxhash

from penstock.engine.spark.tasks.state import PartitionState
from penstock.engine.spark.tasks.state_parts import (
    LOST_STATE,
    Bytes,
    Index,
    PartFiles,
    StateError,
    Version,
)
from penstock.store.durable import make_directory, write_bytes

_FILE = "/file/"  # begins the name of a part that is a whole file; no box has a '/' in its name


@dataclass(frozen=True)
class Body:
    """The bytes of a part, mapped but not read yet, and the checksum that they must have; `at`: where."""

    data: Bytes
    at: str
    stated: int | None = None

    @cached_property
    def checksum(self) -> int:
        """The one in the index, or that of the bytes if there is none."""
        return xxhash.xxh3_64_intdigest(self.data) if self.stated is None else self.stated

    def read(self) -> Bytes:
        """The bytes, checked."""
        if xxhash.xxh3_64_intdigest(self.data) != self.checksum:
            raise StateError(f"{self.at} is torn or changed", hint=LOST_STATE)
        return self.data


@dataclass(frozen=True)
class PartitionVersion:
    """One partition of one stage's state at one version; `folder` holds the stage's partitions."""

    folder: Path
    partition: str
    version: Version

    @property
    def parts(self) -> PartFiles:
        return PartFiles(self.folder / self.partition)

    @property
    def plain(self) -> PartitionState:
        return PartitionState(str(self.folder), int(self.partition), dict)

    def check(self, *, contents: bool = False) -> None:
        """Refuse the version if a file of it is missing, or with `contents` if one was changed."""
        parts, plain = self.parts, self.plain
        parted = parts.path(self.version).exists()
        if parted:
            parts.check(self.version)
        if contents and parted:
            for name, location in parts.index(self.version).items():
                parts.raw(name, location)
        if not parted or parts.beside_plain(self.version):
            plain.deltas(self.version)  # reads and checks them

    def bodies(self) -> dict[str, Body]:
        """Every part, box by box, and every whole file.

        What is missing is refused here, what is torn when it is read.
        """
        bodies: dict[str, Body] = {}
        parts, plain = self.parts, self.plain
        parted = parts.path(self.version).exists()
        if parted:
            index = parts.index(self.version)
            for name, location in index.items():
                at = f"{parts.path(location.file)}: part '{name}'"
                bodies[name] = Body(parts.mapped(name, location), at, location.checksum)
        if not parted or parts.beside_plain(self.version):
            for path in plain.chain(self.version):
                bodies[_FILE + path.name] = Body(memoryview(path.read_bytes()), str(path))
        return bodies

    def write(self, bodies: dict[str, Bytes], *, sync: bool) -> None:
        """Put this version into its folder, from its bodies."""
        files = {name.removeprefix(_FILE): body for name, body in bodies.items() if name.startswith(_FILE)}
        parts = {name: body for name, body in bodies.items() if not name.startswith(_FILE)}
        make_directory(self.folder / self.partition, sync=sync)
        for name, body in files.items():
            write_bytes(self.folder / self.partition / name, memoryview(body), sync=sync)
        # Also without parts: a box that keeps its state in parts may not have any yet.
        PartFiles(self.folder / self.partition, sync).add(self.version, {}, parts, plain=bool(files))


@dataclass
class PartitionSnapshots:
    """The snapshots of one partition."""

    folder: Path
    sync: bool = False

    def __post_init__(self) -> None:
        self._files = PartFiles(self.folder, self.sync, quietly=True)

    def save(self, version: Version, bodies: Mapping[str, Body], before: Version | None) -> int:
        """Write what the snapshot `before` does not have; returns the bytes written."""
        known = self._index(before) if before is not None else {}
        same = {
            name: known[name]
            for name, body in bodies.items()
            if name in known and (known[name].length, known[name].checksum) == (len(body.data), body.checksum)
        }
        new = {name: body.read() for name, body in bodies.items() if name not in same}
        return self._files.add(version, same, new)[1]

    def load(self, version: Version) -> dict[str, Bytes]:
        """All parts of a snapshot; one that is missing or torn is refused."""
        return {name: self._files.raw(name, location) for name, location in self._index(version).items()}

    def check(self, version: Version) -> None:
        """Refuse a snapshot if a file of it is missing or short."""
        self._files.check(version)

    def forget(self, needed: Version, written: Version) -> None:
        """Delete the files that neither the snapshot `needed` nor a later one has parts in."""
        index = self._index(needed)
        self._files.forget(min([needed[0], *(location.version for location in index.values())]), written)

    def _index(self, version: Version) -> Index:
        return self._files.index(version)
