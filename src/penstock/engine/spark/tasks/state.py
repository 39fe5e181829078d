"""Columnar partition state: Spark's delta-and-snapshot design with columns instead of rows.

The state of a stage in one partition after train b is version b. It consists of the logics of its boxes,
which stay in the Python worker that ran the last train. What a train changed is written as a delta before its
task ends. Now and then the whole state is written as a snapshot. Each file is named by version. A worker may
not hold the version it needs, because tasks move between workers and trains are replayed. It then loads that
version from the files. A torn or missing file is refused, never guessed.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.engine.arrow.boxes.column_latch import GONE, PUT
from penstock.engine.arrow.logic import Logic
from penstock.engine.spark.tasks.state_parts import Index, PartFiles, StateError
from penstock.store.durable import checksum, read_record, write_bytes, write_record
from penstock.store.file_names import numbered, numbers_in
from penstock.store.ipc import from_ipc, to_ipc

_MAGIC = b"PSTATE1\n"
SNAPSHOT_EVERY = 20  # trains; also when the deltas outweigh the last snapshot
Boxes = dict[str, Logic]


@dataclass
class Resident:
    """The state that a worker holds between trains."""

    version: int
    boxes: Boxes
    snapshot: int  # version of the last snapshot, or the base
    since: int = 0  # bytes of deltas since then
    size: int = 0  # bytes of that snapshot
    epoch: str = ""  # of the query that made it
    files: PartFiles | None = None
    index: Index = field(default_factory=dict)  # where the parts lie, for boxes that keep state in parts


_RESIDENT: dict[tuple[str, int], Resident] = {}


@dataclass
class PartitionState:
    """The versions of one stage's state in one partition."""

    root: str
    partition: int
    make: Callable[[], Boxes]
    base: int = -1  # the version at which the stage began, empty
    epoch: str = ""  # a new start of the query may have changed boxes, so older resident state is void
    plain: bool = True  # some boxes use deltas and snapshots; else all state is in parts
    _folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self._folder = Path(self.root) / str(self.partition)

    def at(self, version: int) -> Resident:
        """The state after train `version` (`base`: before the first), from memory or from files."""
        held = _RESIDENT.pop((self.root, self.partition), None)
        if held is not None and held.version == version and held.epoch == self.epoch:
            return held
        return self._load(version)

    def keep(self, held: Resident, version: int) -> int:
        """Write what the train changed as `version` and hold the state; returns the bytes written."""
        written = self._keep_parts(held, version)
        if self.plain:
            written += self._keep_delta(held, version)
        held.version = version
        _RESIDENT[(self.root, self.partition)] = held
        return written

    def _keep_parts(self, held: Resident, version: int) -> int:
        made: dict[str, Any] = {}
        gone: set[str] = set()
        parted = {name: logic for name, logic in held.boxes.items() if _parted(logic)}
        for box, logic in parted.items():
            delta = logic.delta()
            gone |= (
                {f"{box}:{name}" for name in delta[GONE].column(0).to_pylist()} if GONE in delta else set()
            )
            made |= {
                f"{box}:{name.removeprefix(PUT)}": table for name, table in delta.items() if name != GONE
            }
        if not parted:
            return 0
        assert held.files is not None
        held.index, written = held.files.write(version, held.index, made, gone)
        return written

    def _keep_delta(self, held: Resident, version: int) -> int:
        delta = {name: logic.delta() for name, logic in held.boxes.items() if not _parted(logic)}
        self._folder.mkdir(parents=True, exist_ok=True)
        data = encode(delta, held.version)
        held.since += len(data)
        written = len(data)
        write_bytes(self._path(version, "delta"), data, sync=False)
        held.version = version
        if version - held.snapshot >= SNAPSHOT_EVERY or held.since > max(held.size, 1 << 20):
            written += self._snapshot(held)
        return written

    def _snapshot(self, held: Resident) -> int:
        whole = {name: logic.snapshot() for name, logic in held.boxes.items() if not _parted(logic)}
        data = encode(whole, held.version)
        write_bytes(self._path(held.version, "snapshot"), data, sync=False)
        before, held.snapshot, held.since, held.size = held.snapshot, held.version, 0, len(data)
        self._forget(before)
        return len(data)

    def _load(self, version: int) -> Resident:
        boxes = self.make()
        files = PartFiles(self._folder)
        held = Resident(self.base, boxes, self.base, epoch=self.epoch, files=files)
        if version > self.base and any(map(_parted, boxes.values())):
            held.index = files.index(version)
            for name, logic in boxes.items():
                if _parted(logic):
                    logic.restore(files.lazy(held.index, name))
        if self.plain:
            self._load_plain(held, version)
        held.version = version
        return held

    def _load_plain(self, held: Resident, version: int) -> None:
        boxes = {name: logic for name, logic in held.boxes.items() if not _parted(logic)}
        start = max((v for v in self._versions("snapshot") if v <= version), default=self.base)
        if start > self.base:
            data, _ = self._read(start, "snapshot")
            for name, logic in boxes.items():
                logic.restore(data.get(name, {}))
            held.version = held.snapshot = start
            held.size = self._path(start, "snapshot").stat().st_size
        while held.version < version:
            following, base = self._next(held.version, version)
            if base != held.version:
                raise StateError(
                    f"{self._folder}: the state of train {held.version + 1} is missing "
                    f"(found {following} after {base})"
                )
            data, _ = self._read(following, "delta")
            for name, logic in boxes.items():
                logic.apply(data.get(name, {}))
            held.since += self._path(following, "delta").stat().st_size
            held.version = following

    def _next(self, version: int, wanted: int) -> tuple[int, int]:
        path = self._path(version + 1, "delta")
        if not path.exists():
            raise StateError(
                f"{self._folder}: the state after train {wanted} cannot be rebuilt, "
                f"version {version + 1} is missing"
            )
        return version + 1, self._read(version + 1, "delta")[1]

    def _read(self, version: int, kind: str) -> tuple[dict[str, dict[str, Any]], int]:
        path = self._path(version, kind)
        try:
            return decode(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise StateError(f"{path}: the state file is missing") from None

    def _versions(self, kind: str) -> list[int]:
        return list(numbers_in(self._folder, kind))

    def _path(self, version: int, kind: str) -> Path:
        return numbered(self._folder, version, kind)

    def _forget(self, before: int) -> None:
        """Delete what precedes the last snapshot but one: Spark replays only the newest train."""
        if before <= self.base:
            return
        for entry in os.scandir(self._folder):
            stem, _, kind = entry.name.partition(".")
            if stem.isdigit() and (int(stem) < before or (int(stem) == before and kind == "delta")):
                Path(entry.path).unlink(missing_ok=True)


def _parted(logic: Logic) -> bool:
    """Whether a box keeps its state in parts, each written once and read on demand."""
    return getattr(logic, "parted", False)


def stage_base(root: Path, committed: int) -> int:
    """The version at which a stage began, noted at first sight, so that lost files are noticed."""
    path = root / "base.json"
    if not path.exists():
        root.mkdir(parents=True, exist_ok=True)
        write_record(path, {"base": committed})
    return int(read_record(path)["base"])


def encode(state: Mapping[str, Mapping[str, Any]], base: int) -> bytes:
    """Encode tables by box and name, with the version they build on and a checksum at the end."""
    body, index = io.BytesIO(), []
    for box, tables in state.items():
        for name, table in tables.items():
            start = body.tell()
            body.write(to_ipc(table))
            index.append([box, name, start, body.tell() - start])
    head = json.dumps({"base": base, "tables": index}).encode()
    data = _MAGIC + len(head).to_bytes(8, "little") + head + body.getvalue()
    return data + checksum(data).to_bytes(4, "little")


def decode(data: bytes, path: str) -> tuple[dict[str, dict[str, Any]], int]:
    """Decode what `encode` wrote; refuse anything else."""
    if (
        len(data) < 20
        or not data.startswith(_MAGIC)
        or checksum(memoryview(data)[:-4]) != int.from_bytes(data[-4:], "little")
    ):
        raise StateError(f"{path}: the state file is torn or changed")
    size = int.from_bytes(data[8:16], "little")
    head = json.loads(data[16 : 16 + size])
    body = memoryview(data)[16 + size : -4]
    state: dict[str, dict[str, Any]] = {}
    for box, name, start, length in head["tables"]:
        state.setdefault(box, {})[name] = from_ipc(body[start : start + length])
    return state, head["base"]
