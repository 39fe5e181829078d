"""The manifest of a connection point: which files hold which entries.

An entry holds what one train of the producer brought. It has its own log record, linked to the entry before
it, so a reader walks from HEAD back to its position without listing a directory. Compaction moves a prefix of
the log into segments, which a numbered base names. The highest base is the truth, and writing it is the
atomic switch. All records are immutable (Aurora, Sect. 4.2: tuples that fall off the queue go to the B-tree
in batches).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote

from penstock.model.errors import did_you_mean
from penstock.model.json_types import JsonObject
from penstock.model.types import STAMP, Schema
from penstock.store import durable
from penstock.store.errors import CorruptFileError, StoreError
from penstock.store.file_names import numbered, numbers_in
from penstock.store.locks import StillHeld, briefly_locked
from penstock.store.points.ranges import Bound

FORMAT = 1
ENTRY = "_entry"
NO_HORIZON = -(2**63) + 1  # the horizon of an entry that promises nothing
LOG, BASES, DATA, LEASES = "log", "base", "data", "leases"


@dataclass(frozen=True)
class DataFile:
    """One immutable Parquet file: its length and checksum, and the bounds that let a reader skip it."""

    name: str
    rows: int
    bytes: int
    crc: int
    first: int  # least and greatest entry of its rows
    last: int
    min_ts: int | None = None  # None: every _ts is null
    max_ts: int | None = None
    keys: int = 0  # rows whose storage key is not null
    min_key: Bound = None
    max_key: Bound = None  # None although keys > 0: unknown

    def as_json(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class PointEntry:
    """What one committed train of the producer brought: rows, and the horizon it promises from then on."""

    number: int
    rows: int
    horizon: int
    final: bool
    arrival: float  # wall time, seconds
    min_ts: int | None = None
    max_ts: int | None = None
    previous: int = -1  # the entry before this one, -1: none
    files: tuple[DataFile, ...] = ()  # empty once compacted: then `PointReader.plan` knows the files
    idle: bool = False  # nothing comes for now: readers need not wait for this point's horizon
    since: float | None = None  # when the oldest tuple behind these entered the network; wall time, seconds
    offered: int = 0  # tuples that came to the writer with that train
    kept: float = 1.0  # the share of what was due that valves above the point have kept

    def as_json(self) -> dict[str, object]:
        return {**vars(self), "files": [file.as_json() for file in self.files]}

    @staticmethod
    def from_json(body: JsonObject) -> PointEntry:
        return PointEntry(**{**body, "files": tuple(DataFile(**file) for file in body["files"])})

    def same(self, other: PointEntry) -> bool:
        """Whether both describe the same train identically.

        On replay, the arrival time and the previous entry may differ. An earlier version told no shares.
        """
        one, two = (replace(e, arrival=0.0, previous=-1, offered=0, kept=1.0) for e in (self, other))
        return one == two


@dataclass(frozen=True)
class Segment:
    """Consecutive entries whose rows lie together in files sorted by the storage key."""

    first: int
    last: int
    rows: int
    entries: DataFile  # a Parquet table with one row for each entry
    files: tuple[DataFile, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            **vars(self),
            "entries": self.entries.as_json(),
            "files": [file.as_json() for file in self.files],
        }

    @staticmethod
    def from_json(body: JsonObject) -> Segment:
        files = tuple(DataFile(**file) for file in body["files"])
        return Segment(**{**body, "entries": DataFile(**body["entries"]), "files": files})


@dataclass(frozen=True)
class Base:
    """Everything up to entry `through`, as compaction and retention have left it."""

    generation: int = 0
    through: int = -1  # later entries are in the log
    removed: int = -1  # entries up to here are gone
    thinned: int = -1  # entries up to here may lack tuples older than the persistence
    lost_before: int = NO_HORIZON  # every tuple from this `_ts` on is still there
    segments: tuple[Segment, ...] = ()
    # Files that no longer belong to the table, each with the first generation without it. They are deleted
    # when no lease holds an earlier generation.
    retired: tuple[tuple[int, str], ...] = ()

    def as_json(self) -> dict[str, object]:
        return {**vars(self), "segments": [segment.as_json() for segment in self.segments]}

    @staticmethod
    def from_json(body: JsonObject) -> Base:
        segments = tuple(Segment.from_json(segment) for segment in body["segments"])
        return Base(
            **{**body, "segments": segments, "retired": tuple((g, path) for g, path in body["retired"])}
        )


@dataclass(frozen=True)
class Head:
    """The newest entry, for readers that poll; `edition` counts replaced entries."""

    latest: int = -1
    edition: int = 0


@dataclass(frozen=True)
class Manifest:
    """The records of one connection point's directory. `sync`: new entries survive a power cut."""

    path: Path
    sync: bool = True

    @property
    def data(self) -> Path:
        return self.path / DATA

    @property
    def leases(self) -> Path:
        return self.path / LEASES

    def switching(self) -> AbstractContextManager[StillHeld]:
        """Held only briefly: to take a lease, switch to a new base, or delete files.

        Without it nothing gets lost. Only one pass can write the base of a generation, and a file is deleted
        only if no lease from an earlier generation holds it.
        """
        return briefly_locked(self.path / "switch.lock")

    @property
    def maintenance_lock(self) -> Path:
        """Held by the one compaction or retention pass that is running."""
        return self.path / "maintenance.lock"

    @cached_property
    def about(self) -> tuple[Schema, str]:
        """The visible columns and the storage key."""
        try:
            body = durable.read_record(self.path / "point.json")
        except FileNotFoundError:
            points = [unquote(p.name) for p in self.path.parent.glob("*") if (p / "point.json").exists()]
            name = unquote(self.path.name)
            raise StoreError(
                f"there is no connection point '{name}'",
                found=f"nothing at {self.path}",
                hint=did_you_mean(name, points) or "the network has not written to one yet",
            ) from None
        if body["format"] != FORMAT:
            raise StoreError(
                f"{self.path} was written by another version",
                found=f"format {body['format']}",
                expected=f"format {FORMAT}",
            )
        return Schema.of([(name, kind) for name, kind in body["columns"]]), body["key"]

    def create(self, schema: Schema, key: str) -> None:
        """Create the directory, or check that it is the right one."""
        if key != STAMP:
            schema.type_of(key)
        for part in (LOG, BASES, DATA, LEASES):
            durable.make_directory(self.path / part, sync=self.sync)
        if (self.path / "point.json").exists():
            self._refuse_other(schema, key)
            return
        columns = [[c.name, c.type] for c in schema]
        durable.write_record(self.path / "point.json", {"format": FORMAT, "columns": columns, "key": key})

    def _refuse_other(self, schema: Schema, key: str) -> None:
        if self.about != (schema, key):
            have, have_key = self.about
            name = unquote(self.path.name)
            raise StoreError(
                f"the table of connection point '{name}' has other columns or another storage key",
                found=f"{have.ddl()}, key {have_key}",
                expected=f"{schema.ddl()}, key {key}",
                hint="use another name for the changed connection point, or delete its directory",
            )

    def head(self) -> Head | None:
        """The newest entry as last announced to readers.

        None if the hint is absent or torn (then list the log).
        """
        try:
            return Head(**durable.read_record(self.path / "HEAD"))
        except (FileNotFoundError, CorruptFileError):
            return None

    def tell(self, head: Head, *, surely: bool = False) -> None:
        """Announce the newest entry. An owner that was followed must not take the announcement back.

        `surely`: the log has just been listed, so it is the announcement that is wrong.
        """
        known = None if surely else self.head()
        if known is not None and (known.latest, known.edition) > (head.latest, head.edition):
            return
        # Not flushed: HEAD is a hint that the log can rebuild.
        durable.write_record(self.path / "HEAD", vars(head), sync=False)

    def numbers(self) -> list[int]:
        """The entries in the log, by listing it: when opening, and when HEAD cannot be used."""
        return sorted(
            int(p.name[:-5]) for p in (self.path / LOG).iterdir() if p.name[0] != "." and p.suffix == ".json"
        )

    def log_changed(self) -> int:
        """When the log last gained or lost an entry: a mark to compare with, not a time."""
        return (self.path / LOG).stat().st_mtime_ns

    def entry_path(self, number: int) -> Path:
        return numbered(self.path / LOG, number)

    def entry(self, number: int) -> PointEntry:
        entry = PointEntry.from_json(durable.read_record(self.entry_path(number)))
        if entry.number != number:
            raise CorruptFileError(f"{self.entry_path(number)}: this is the record of entry {entry.number}")
        return entry

    def write_entry(self, entry: PointEntry) -> None:
        durable.write_record(self.entry_path(entry.number), entry.as_json(), sync=self.sync)

    def generation(self) -> int:
        """The number of the newest base, 0 if there is none yet."""
        return max(numbers_in(self.path / BASES), default=0)

    def base(self) -> Base:
        """The newest base. If it is torn, raise: files of an older one may be gone."""
        while True:
            newest = self.generation()
            try:
                return Base.from_json(durable.read_record(self.base_path(newest))) if newest else Base()
            except FileNotFoundError:
                continue  # replaced by a newer one and deleted since we listed them

    def base_path(self, generation: int) -> Path:
        return numbered(self.path / BASES, generation)

    def write_base(self, base: Base) -> None:
        # On a file system without locks two passes may run at once. Only one may switch.
        if not durable.create_record(self.base_path(base.generation), base.as_json()):
            raise StoreError(f"{self.path}: another process has just compacted this connection point")


def point_path(root: Path | str, name: str) -> Path:
    """The directory of a connection point's table under a checkpoint.

    >>> str(point_path("ckpt", "segment minutes"))
    'ckpt/points/segment%20minutes'
    """
    if not name.strip("."):
        raise StoreError(
            f"'{name}' cannot name a connection point", expected="a name with a letter or digit in it"
        )
    return Path(root) / "points" / quote(name, safe="")


def stamps_of(files: Iterable[DataFile]) -> tuple[int | None, int | None]:
    """The least and greatest `_ts` over all files."""
    files = tuple(files)
    least = [file.min_ts for file in files if file.min_ts is not None]
    greatest = [file.max_ts for file in files if file.max_ts is not None]
    return min(least, default=None), max(greatest, default=None)
