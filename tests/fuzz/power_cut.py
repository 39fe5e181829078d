"""A disk that forgets: after a power cut it has what was flushed, and any part of the rest.

A layer below `store.durable` records what is written, renamed and flushed. `cut` then leaves, for each name,
the last version that was flushed together with its directory, or any later one; and of a file that was never
flushed the whole, a part or nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.store.durable import FileLayer, Piece


class PowerCutError(BaseException):
    """The machine stops here."""


@dataclass
class _File:
    """The bytes behind one or several names."""

    data: bytes
    flushed: bool = False


@dataclass
class _Name:
    """The versions that a name has had; `flushed` counts those that its directory has flushed."""

    versions: list[_File | None] = field(default_factory=lambda: [None])
    flushed: int = 1


class ForgettingDisk(FileLayer):
    """Records every call; with `stops_at` the power fails before that call."""

    def __init__(self, stops_at: int | None = None) -> None:
        self.calls, self._stops_at = 0, stops_at
        self._files: dict[Path, _File] = {}
        self._names: dict[Path, _Name] = {}
        self._moved: list[tuple[Path, Path, _File]] = []  # from names that were flushed

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self._stops_at:
            raise PowerCutError

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._call()
        super().write(path, data)

    def write_pieces(self, path: Path, pieces: Iterable[Piece], *, quietly: bool = False) -> None:
        self._call()
        super().write_pieces(path, pieces, quietly=quietly)

    def replace(self, path: Path, target: Path) -> None:
        self._call()
        file = self._file(path)
        super().replace(path, target)
        self._files[target] = file
        self._files.pop(path, None)
        self._named(target, file)
        before = self._names.pop(path, _Name())
        if before.flushed > 1:
            self._moved.append((path, target, file))

    def link(self, path: Path, target: Path) -> None:
        self._call()
        super().link(path, target)
        self._files[target] = self._file(path)
        self._named(target, self._files[target])

    def sync_file(self, path: Path) -> None:
        self._call()
        super().sync_file(path)
        file = self._file(path)
        file.data, file.flushed = path.read_bytes(), True
        if self._names.get(path, _Name()).versions[-1] is not file:
            self._named(path, file)

    def sync_directory(self, path: Path) -> None:
        self._call()
        super().sync_directory(path)
        for name, versions in self._names.items():
            if name.parent == path:
                versions.flushed = len(versions.versions)

    def _file(self, path: Path) -> _File:
        """The file of a path. It may have been written by others, and is then not flushed."""
        file = self._files.get(path)
        if file is None or not file.flushed:
            data = path.read_bytes() if path.exists() else b""
            file = file or _File(data)
            file.data = data
            self._files[path] = file
        return file

    def _named(self, target: Path, file: _File) -> None:
        self._names.setdefault(target, _Name()).versions.append(file)

    def cut(self, dice: random.Random) -> int:
        """Leave what a power cut may leave; returns how many names have lost something."""
        lost, left = 0, {}
        for path, name in self._names.items():
            if not path.exists():
                continue  # deleted since; a deletion that comes undone is tested elsewhere
            candidates = name.versions[name.flushed - 1 :]
            version = dice.choice(candidates)
            if version is None:
                path.unlink()
            else:
                data = version.data
                if not version.flushed:
                    data = data[: dice.choice([0, dice.randrange(len(data) + 1), len(data)])]
                path.unlink()  # other names of the same file keep theirs
                path.write_bytes(data)
            left[path] = name.versions.index(version)
            lost += version is not name.versions[-1] or (version is not None and not version.flushed)
        for path, target, file in self._moved:
            # A rename is done or not: if its target has an older version, the old name is still there.
            if target in left and left[target] < self._names[target].versions.index(file):
                path.write_bytes(file.data)
        return lost
