"""State as named parts: each is written once, into the file of its train, and read on demand.

The file of version b holds the parts that train b made. Its head holds an index of all parts: in which file,
where, how long, with which checksum. So reading one head finds a version. A part is mapped into memory, not
copied, and only when a box asks for it. A worker that takes over a partition pays only for what it touches.

A file whose parts are all gone is deleted. A part that far outlives its neighbours is carried over into a
newer file, a few at a time, so no train stalls.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import xxhash

from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.store.durable import make_directory, write_pieces
from penstock.store.file_names import number_text
from penstock.store.ipc import from_ipc, to_ipc

_MAGIC = b"PPARTS1\n"
_ALIGN = 64
_PLAIN = "plain"  # in a head, see `beside_plain`
_OLD = 60  # trains after which a part is carried over: until then it keeps all that was written with it
_CARRY_BYTES = 2 << 20  # the approximate most that one train carries over
LOST_STATE = (
    "restore the checkpoint from a copy, or start with a new one and new folders for the outputs; "
    "or, while running, Runtime.replace(network, fresh_state=True)"
)
Bytes: TypeAlias = "pa.Buffer | memoryview"
Version = tuple[int, str]  # the train and the token of its attempt


class PartLocation(NamedTuple):
    """Where a part lies: in the file of which version, where in it, how long, with which checksum."""

    version: int
    token: str
    offset: int
    length: int
    checksum: int

    @property
    def file(self) -> Version:
        return self.version, self.token


Index = dict[str, PartLocation]


class StateError(PenstockError):
    """State that cannot be trusted: a file is missing, torn, or of another version."""


@dataclass
class PartFiles:
    """The files of one stage's parts in one partition."""

    folder: Path
    sync: bool = False
    quietly: bool = False  # written in the background
    _open: dict[Version, tuple[memoryview, int]] = field(default_factory=dict)
    _files: list[Version] | None = None  # oldest first
    _lazy: list[LazyParts] = field(default_factory=list)  # told when parts move

    def lazy(self, index: Index, box: str) -> LazyParts:
        """The parts of one box in an index; they stay readable when carried over into other files."""
        self._lazy.append(LazyParts(self, index, box))
        return self._lazy[-1]

    def path(self, version: Version) -> Path:
        return self.folder / f"{number_text(version[0])}-{version[1]}.parts"

    def index(self, version: Version) -> Index:
        """Where each part of this version lies."""
        return {name: PartLocation(*location) for name, location in self._head(version)["parts"].items()}

    def beside_plain(self, version: Version) -> bool:
        """Whether other boxes of the stage keep deltas and snapshots: without these the version is not whole.

        The files themselves cannot tell, because they may be lost or deleted by now.
        """
        return bool(self._head(version).get(_PLAIN, True))

    def _head(self, version: Version) -> JsonObject:
        view, _ = self._view(version)
        size = int.from_bytes(view[8:16], "little")
        head: JsonObject = json.loads(bytes(view[24 : 24 + size]))
        if tuple(head["version"]) != version:
            raise StateError(f"{self.path(version)}: this is the file of another version", hint=LOST_STATE)
        return head

    def check(self, version: Version) -> None:
        """Refuse a version if a file is missing or short that one of its parts lies in."""
        for name, location in self.index(version).items():
            view, start = self._view(location.file)
            if len(view) < start + location.offset + location.length:
                raise StateError(f"{self.path(location.file)}: part '{name}' is torn", hint=LOST_STATE)

    def read(self, name: str, location: PartLocation) -> pa.Table:
        """A part, as a table over the mapped file."""
        return from_ipc(pa.py_buffer(self.raw(name, location)))

    def raw(self, name: str, location: PartLocation) -> memoryview:
        """A part's bytes, checked."""
        data = self.mapped(name, location)
        if xxhash.xxh3_64_intdigest(data) != location.checksum:
            raise StateError(f"{self.path(location.file)}: part '{name}' is torn or changed", hint=LOST_STATE)
        return data

    def mapped(self, name: str, location: PartLocation) -> memoryview:
        """A part's bytes, not read yet; refuses a file that is too short."""
        view, start = self._view(location.file)
        data = view[start + location.offset : start + location.offset + location.length]
        if len(data) != location.length:
            raise StateError(f"{self.path(location.file)}: part '{name}' is torn or changed", hint=LOST_STATE)
        return data

    def write(
        self,
        version: Version,
        before: Index,
        parts: Mapping[str, pa.Table],
        gone: set[str],
        *,
        plain: bool = False,
    ) -> tuple[Index, int]:
        """Write the file of a version; returns its index and how many bytes were written.

        `plain`: other boxes of the stage keep deltas and snapshots.
        """
        index = {
            name: location for name, location in before.items() if name not in gone and name not in parts
        }
        new = {name: to_ipc(table) for name, table in parts.items()}
        index, written = self.add(version, index, new, plain=plain)
        self.forget(oldest_file(before, version[0]), version)
        return index, written

    def add(
        self, version: Version, kept: Index, new: Mapping[str, Bytes], *, plain: bool = False
    ) -> tuple[Index, int]:
        """Write the file of a version with `new` parts beside those `kept` in earlier files."""
        index, bodies = dict(kept), dict(new)
        for name in self._carried(index, version[0]):
            bodies[name] = self.raw(name, index[name])
        offset = 0
        for name, body in bodies.items():
            was = index.get(name)
            index[name] = PartLocation(*version, offset, len(body), xxhash.xxh3_64_intdigest(body))
            offset += _padded(len(body))
            if was is not None:
                for lazy in self._lazy:
                    lazy.moved(name, was, index[name])
        head = {"version": version, "parts": index, _PLAIN: plain}
        return index, self._store(version, head, list(bodies.values()))

    def _store(self, version: Version, told: JsonMapping, bodies: list[Bytes]) -> int:
        head = json.dumps(told, separators=(",", ":")).encode()
        checked = xxhash.xxh3_64_intdigest(head).to_bytes(8, "little")
        front = _MAGIC + len(head).to_bytes(8, "little") + checked + head
        pieces: list[bytes | memoryview] = [front, b"\0" * (_padded(len(front)) - len(front))]
        for body in bodies:
            pieces += [memoryview(body), b"\0" * (_padded(len(body)) - len(body))]
        make_directory(self.folder, sync=self.sync)
        write_pieces(self.path(version), pieces, sync=self.sync, quietly=self.quietly)
        self._open.pop(version, None)
        return sum(map(len, pieces))

    def _carried(self, index: Index, version: int) -> list[str]:
        """Old parts to carry over now, oldest first."""
        old = sorted(
            (location.version, name) for name, location in index.items() if location.version < version - _OLD
        )
        chosen: list[str] = []
        size = 0
        for _, name in old:
            if chosen and size + index[name].length > _CARRY_BYTES:
                break
            chosen.append(name)
            size += index[name].length
        return chosen

    def _view(self, version: Version) -> tuple[memoryview, int]:
        if version not in self._open:
            self._open[version] = _mapped(self.path(version))
        return self._open[version]

    def forget(self, needed: int, written: Version) -> None:
        """Delete the files before `needed`. `written`: the newest file, which nobody has listed yet."""
        if self._files is None:
            names = [path.stem.partition("-") for path in self.folder.glob("*.parts")]
            self._files = sorted((int(train), token) for train, _, token in names if train.isdigit())
        else:
            self._files.append(written)
        while self._files and self._files[0][0] < needed:
            gone = self._files.pop(0)
            self._open.pop(gone, None)
            self.path(gone).unlink(missing_ok=True)


class LazyParts(Mapping[str, pa.Table]):
    """The parts of one box, each read on demand."""

    def __init__(self, files: PartFiles, index: Index, box: str) -> None:
        self._files, self._front = files, f"{box}:"
        self._locations = {
            name.removeprefix(self._front): location
            for name, location in index.items()
            if name.startswith(self._front)
        }

    def moved(self, name: str, old: PartLocation, new: PartLocation) -> None:
        """Note that a part has been carried over: its old file may be deleted before the part is read."""
        if name.startswith(self._front):
            own = name.removeprefix(self._front)
            if self._locations.get(own) == old:  # else the name now belongs to another part
                self._locations[own] = new

    def __getitem__(self, name: str) -> pa.Table:
        return self._files.read(self._front + name, self._locations[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)

    def __contains__(self, name: object) -> bool:
        return name in self._locations


def oldest_file(index: Index, version: int) -> int:
    """The version of the oldest file that holds a part; that of the index itself if there is none."""
    return min((location.version for location in index.values()), default=version)


def _padded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _mapped(path: Path) -> tuple[memoryview, int]:
    """The file's bytes and the start of its parts; a torn head is refused."""
    try:
        with path.open("rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise StateError(f"{path}: this file of the state is missing", hint=LOST_STATE) from None
    except ValueError:
        raise StateError(f"{path}: this file of the state is torn or changed", hint=LOST_STATE) from None
    size = int.from_bytes(view[8:16], "little") if len(view) >= 24 else -1
    head = view[24 : 24 + size] if size > 0 else view[:0]
    whole = bytes(view[:8]) == _MAGIC and len(head) == size
    if not whole or xxhash.xxh3_64_intdigest(head) != int.from_bytes(view[16:24], "little"):
        raise StateError(f"{path}: this file of the state is torn or changed", hint=LOST_STATE)
    return view, _padded(24 + size)
