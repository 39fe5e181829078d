"""Columnar partition state: Spark's delta-and-snapshot design with columns instead of rows.

The state of a stage in one partition after train b is version b. It consists of the logics of its boxes,
which stay in the Python worker that ran the last train. What a train changed is written as a delta before its
task ends. Now and then the whole state is written as a snapshot. A worker may not hold the version it needs,
because tasks move between workers and trains are replayed. It then loads that version from the files. A torn
or missing file is refused, never guessed.

Each attempt to run a train writes a version of its own: files are named by train and a random token. The
train's commit says which token counts, and a delta names the token it builds on. So a task that is repeated,
an orphan of a killed driver and an owner that was followed cannot spoil one another's files.
"""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from penstock.engine.arrow.boxes.column_latch import GONE, PUT
from penstock.engine.arrow.logic import Logic
from penstock.engine.spark.tasks.state_parts import LOST_STATE, Index, PartFiles, StateError, Version
from penstock.store.durable import checksum, make_directory, write_bytes
from penstock.store.file_names import number_of, number_text
from penstock.store.ipc import from_ipc, to_ipc

_MAGIC = b"PSTATE1\n"
SNAPSHOT_EVERY = 20  # trains; also when the deltas outweigh the last snapshot
Boxes = dict[str, Logic]
NO_STATE = ""  # the token of a version for which nothing was kept


class Kept(NamedTuple):
    """What was kept of a train: under which token, and the bytes written for it."""

    token: str
    bytes: int


class Delta(NamedTuple):
    """A file of the state: its tables by box, and the version that it builds on."""

    tables: dict[str, dict[str, pa.Table]]
    base: Version


@dataclass
class Resident:
    """The state that a worker holds between trains."""

    version: int
    boxes: Boxes
    snapshot: int  # version of the last snapshot, or of the beginning
    token: str = NO_STATE
    since: int = 0  # bytes of deltas since then
    size: int = 0  # bytes of that snapshot
    epoch: str = ""  # of the query that made it
    files: PartFiles | None = None
    index: Index = field(default_factory=dict)  # where the parts lie, for boxes that keep state in parts


_RESIDENT: dict[tuple[str, int], Resident] = {}


def _drop_deleted() -> None:
    """Drop state whose folder is gone: its query was stopped or detached, but this worker lives on."""
    roots = {root for root, _ in _RESIDENT}
    gone = {root for root in roots if not Path(root).exists()}
    for key in [key for key in _RESIDENT if key[0] in gone]:
        del _RESIDENT[key]


@dataclass
class PartitionState:
    """The versions of one stage's state in one partition."""

    root: str
    partition: int
    make: Callable[[], Boxes]
    epoch: str = ""  # a new start of the query may have changed boxes, so older resident state is void
    plain: bool = True  # some boxes use deltas and snapshots; else all state is in parts
    sync: bool = False  # versions survive a power cut
    _folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self._folder = Path(self.root) / str(self.partition)

    def at(self, version: int, token: str = NO_STATE) -> Resident:
        """The state after train `version`, from memory or from files; with NO_STATE it is empty."""
        held = _RESIDENT.pop((self.root, self.partition), None)
        if held is None or not token or held.epoch != self.epoch:
            return self._load(version, token)
        if (held.version, held.token) == (version, token) or self._catch_up(held, (version, token)):
            return held
        return self._load(version, token)

    def keep(self, held: Resident, version: int) -> Kept:
        """Write what the train changed as `version` and hold the state."""
        token = uuid.uuid4().hex[:12]
        written = self._keep_parts(held, version, token)
        if self.plain:
            written += self._keep_delta(held, version, token)
        held.version, held.token = version, token
        _drop_deleted()
        _RESIDENT[(self.root, self.partition)] = held
        return Kept(token, written)

    def _keep_parts(self, held: Resident, version: int, token: str) -> int:
        parts: dict[str, pa.Table] = {}
        gone: set[str] = set()
        parted = {name: logic for name, logic in held.boxes.items() if _parted(logic)}
        for box, logic in parted.items():
            delta = logic.delta()
            gone |= (
                {f"{box}:{name}" for name in delta[GONE].column(0).to_pylist()} if GONE in delta else set()
            )
            parts |= {
                f"{box}:{name.removeprefix(PUT)}": table for name, table in delta.items() if name != GONE
            }
        if not parted:
            return 0
        assert held.files is not None
        held.index, written = held.files.write((version, token), held.index, parts, gone, plain=self.plain)
        return written

    def _keep_delta(self, held: Resident, version: int, token: str) -> int:
        delta = {name: logic.delta() for name, logic in held.boxes.items() if not _parted(logic)}
        make_directory(self._folder, sync=self.sync)
        data = encode(delta, (version, token), (held.version, held.token))
        held.since += len(data)
        written = len(data)
        write_bytes(self.path((version, token), "delta"), data, sync=self.sync)
        if version - held.snapshot >= SNAPSHOT_EVERY or held.since > max(held.size, 1 << 20):
            written += self._snapshot(held, version, token)
        return written

    def _snapshot(self, held: Resident, version: int, token: str) -> int:
        whole = {name: logic.snapshot() for name, logic in held.boxes.items() if not _parted(logic)}
        data = encode(whole, (version, token), (version, token))
        write_bytes(self.path((version, token), "snapshot"), data, sync=self.sync)
        before, held.snapshot, held.since, held.size = held.snapshot, version, 0, len(data)
        self._forget(before)
        return len(data)

    def _catch_up(self, held: Resident, wanted: Version) -> bool:
        """Apply what other workers have changed since; False: that is not to be had, so load all.

        Spark may give each train of one task to another worker. Loading a whole snapshot each time would cost
        more than the train.
        """
        if not held.token or any(map(_parted, held.boxes.values())):
            return False
        deltas: list[tuple[Delta, int]] = []
        version = wanted
        while version != (held.version, held.token):
            if version[0] <= held.version or not self.path(version, "delta").exists():
                return False
            deltas.append(self._read(version, "delta"))
            version = deltas[-1][0].base
        for delta, size in reversed(deltas):
            held.since += size
            for name, logic in held.boxes.items():
                logic.apply(delta.tables.get(name, {}))
        held.version, held.token = wanted
        if self.path(wanted, "snapshot").exists():
            held.snapshot, held.since = wanted[0], 0
        return True

    def _load(self, version: int, token: str) -> Resident:
        boxes = self.make()
        files = PartFiles(self._folder, self.sync)
        held = Resident(version, boxes, version, token, epoch=self.epoch, files=files)
        if token and any(map(_parted, boxes.values())):
            held.index = files.index((version, token))
            for name, logic in boxes.items():
                if _parted(logic):
                    logic.restore(files.lazy(held.index, name))
        if token and self.plain:
            self._load_plain(held)
        return held

    def _load_plain(self, held: Resident) -> None:
        """Restore the nearest snapshot, if there is one, and apply the deltas after it."""
        boxes = {name: logic for name, logic in held.boxes.items() if not _parted(logic)}
        start, deltas = self.deltas((held.version, held.token))
        held.snapshot, held.since = start[0], sum(size for _, size in deltas)
        if start[1] != NO_STATE:
            snapshot, held.size = self._read(start, "snapshot")
            for name, logic in boxes.items():
                logic.restore(snapshot.tables.get(name, {}))
        for delta, _ in deltas:
            for name, logic in boxes.items():
                logic.apply(delta.tables.get(name, {}))

    def deltas(self, version: Version) -> tuple[Version, list[tuple[Delta, int]]]:
        """The nearest snapshot, or the empty beginning, and the deltas from there on, with their lengths."""
        deltas: list[tuple[Delta, int]] = []
        while version[1] != NO_STATE and not self.path(version, "snapshot").exists():
            deltas.append(self._read(version, "delta"))
            version = deltas[-1][0].base
        return version, deltas[::-1]

    def chain(self, version: Version) -> list[Path]:
        """The files that a version is built from: deltas, newest first, back to a snapshot."""
        files: list[Path] = []
        while version[1] != NO_STATE and not self.path(version, "snapshot").exists():
            files.append(self.path(version, "delta"))
            version = self._read(version, "delta")[0].base
        return files if version[1] == NO_STATE else [*files, self.path(version, "snapshot")]

    def _read(self, version: Version, kind: str) -> tuple[Delta, int]:
        path = self.path(version, kind)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StateError(
                f"{path}: this file of the state is missing; the state after train {version[0]} is lost",
                hint=LOST_STATE,
            ) from None
        return decode(data, version, str(path)), len(data)

    def path(self, version: Version, kind: str) -> Path:
        return self._folder / f"{number_text(version[0])}-{version[1]}.{kind}"

    def _forget(self, before: int) -> None:
        """Delete what precedes the last snapshot but one: only the newest train is ever run again."""
        for entry in os.scandir(self._folder):
            if not entry.name[:12].isdigit() or entry.name.endswith(".parts"):
                continue
            version = number_of(entry.name)
            if version < before or (version == before and entry.name.endswith(".delta")):
                Path(entry.path).unlink(missing_ok=True)


def _parted(logic: Logic) -> bool:
    """Whether a box keeps its state in parts, each written once and read on demand."""
    return getattr(logic, "parted", False)


def encode(state: Mapping[str, Mapping[str, pa.Table]], version: Version, base: Version) -> bytes:
    """Encode tables by box and name, with their version, the one they build on, and a checksum at the end."""
    body, index = io.BytesIO(), []
    for box, tables in state.items():
        for name, table in tables.items():
            start = body.tell()
            body.write(to_ipc(table))
            index.append([box, name, start, body.tell() - start])
    head = json.dumps({"version": version, "base": base, "tables": index}).encode()
    data = _MAGIC + len(head).to_bytes(8, "little") + head + body.getvalue()
    return data + checksum(data).to_bytes(4, "little")


def decode(data: bytes, version: Version, path: str) -> Delta:
    """Decode what `encode` wrote for this version; refuse anything else."""
    if (
        len(data) < 20
        or not data.startswith(_MAGIC)
        or checksum(memoryview(data)[:-4]) != int.from_bytes(data[-4:], "little")
    ):
        raise StateError(f"{path}: this file of the state is torn or changed", hint=LOST_STATE)
    size = int.from_bytes(data[8:16], "little")
    head = json.loads(data[16 : 16 + size])
    if tuple(head["version"]) != version:
        raise StateError(f"{path}: this is the file of another version", hint=LOST_STATE)
    body = memoryview(data)[16 + size : -4]
    state: dict[str, dict[str, pa.Table]] = {}
    for box, name, start, length in head["tables"]:
        state.setdefault(box, {})[name] = from_ipc(body[start : start + length])
    return Delta(state, (head["base"][0], head["base"][1]))
