"""A connection point's retained table (Aurora, Sect. 2.2 and 4.2): one producer, any number of readers.

The producer stages files in its tasks and commits one entry for each train. A reader keeps the number of the
last entry it has taken and asks for what came after. Compaction and retention never change the rows of the
entries after a position. So a query that reads history first and then continues live (A48, A51) has no seam.

Producer::

    writer = PointWriter(checkpoint, "minutes", schema, key="seg")
    files = writer.stage(train, tables, partition=p)          # in the tasks; the writer can be pickled
    writer.commit(train, all_files, horizon=h, final=False)   # on the driver

Reader::

    reader = PointReader(checkpoint, "minutes")
    for entry in reader.entries(position): ...                # cheap enough to poll every few milliseconds
    plan = reader.plan(position + 1, reader.latest().number, key_ranges)
    for table in plan.tables(plan.files[::2]): ...            # in a task; the plan can be pickled
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.model.types import SEQ, STAMP, Schema, arrow_schema
from penstock.store import durable
from penstock.store.errors import HistoryLostError, MissingFileError, StoreError
from penstock.store.file_names import numbered_part
from penstock.store.points.manifest import (
    ENTRY,
    Base,
    DataFile,
    Head,
    Manifest,
    PointEntry,
    Segment,
    point_path,
    stamps_of,
)
from penstock.store.points.ranges import Ranges, touches
from penstock.store.points.tables import FILE_ROWS, conform, read_files, stored_schema, write_files

# Sort this many rows at once in a task: a train may be larger than the task's memory.
_SORT_ROWS = 1 << 20
_SEGMENTS_HELD = 16


class PointWriter:
    """The producer's side. One producer writes a connection point; its tasks may stage from anywhere."""

    def __init__(
        self,
        root: Path | str,
        name: str,
        schema: Schema,
        key: str | None = None,
        *,
        file_rows: int = FILE_ROWS,
        sync: bool = True,
    ) -> None:
        self.name, self.schema, self.key, self.file_rows = name, schema, key or STAMP, file_rows
        self.manifest = Manifest(point_path(root, name), sync)
        self.manifest.create(schema, self.key)
        self._head: Head | None = None

    def stage(self, entry: int, tables: Iterable[pa.Table], *, partition: int = 0) -> list[DataFile]:
        """Write the rows of a train's partition to files that no reader sees before `commit`.

        Tables have the visible columns, `_ts` and `_seq`. A replayed train writes the same files again.
        """

        def stem(n: int) -> str:
            return f"{numbered_part(entry, partition)}-{n:04d}"

        written: list[DataFile] = []
        for table in self._batches(entry, tables):
            written += write_files(
                self.manifest.data,
                table,
                self.key,
                stem,
                rows=self.file_rows,
                start=len(written),
                sync=self.manifest.sync,
            )
        if written and self.manifest.sync:
            durable.sync_directory(self.manifest.data)
        return written

    def _batches(self, entry: int, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        wanted = arrow_schema(self.schema)
        batch: list[pa.Table] = []
        for table in tables:
            batch.append(conform(table, wanted, self.name))
            if sum(t.num_rows for t in batch) >= _SORT_ROWS:
                yield _with_entry(pa.concat_tables(batch), entry)
                batch = []
        if any(t.num_rows for t in batch):
            yield _with_entry(pa.concat_tables(batch), entry)

    def commit(  # noqa: PLR0913 - what an entry tells, each with its default
        self,
        entry: int,
        files: Iterable[DataFile],
        horizon: int,
        *,
        final: bool = False,
        idle: bool = False,
        arrival: float | None = None,
        since: float | None = None,
        offered: int = 0,
        kept: float = 1.0,
        replace: bool = False,
    ) -> PointEntry:
        """Make a train's files visible, all or none. Committing the same entry again does nothing.

        Committing different content needs `replace`.
        """
        ordered = tuple(sorted(files, key=lambda file: file.name))
        least, greatest = stamps_of(ordered)
        committed = PointEntry(
            number=entry,
            rows=sum(f.rows for f in ordered),
            horizon=horizon,
            final=final,
            arrival=time.time() if arrival is None else arrival,
            min_ts=least,
            max_ts=greatest,
            files=ordered,
            idle=idle,
            since=since,
            offered=offered,
            kept=kept,
        )
        head = self._head or self._find_head()
        if entry <= head.latest:
            return self._again(committed, head, replace=replace)
        self._check_staged(committed)
        committed = _linked(committed, head.latest)
        self.manifest.write_entry(committed)
        self._tell(Head(entry, head.edition))
        return committed

    def latest(self) -> int:
        """The number of the last committed entry, -1 if there is none."""
        return (self._head or self._find_head()).latest

    def _find_head(self) -> Head:
        """Find the newest entry in the log: a kill may have come between its log record and HEAD."""
        head = self.manifest.head() or Head()
        latest = max([*self.manifest.numbers(), self.manifest.base().through])
        self._tell(Head(latest, head.edition), surely=True)
        return Head(latest, head.edition)

    def _tell(self, head: Head, *, surely: bool = False) -> None:
        self.manifest.tell(head, surely=surely)
        self._head = head

    def _again(self, committed: PointEntry, head: Head, *, replace: bool) -> PointEntry:
        """Commit an entry that already exists.

        A replay after a restart changes nothing. A change is made only if asked for.
        """
        with self.manifest.switching():
            base = self.manifest.base()
            if committed.number <= base.removed:
                return committed
            before = self._committed(committed.number, base)
            if before.same(committed if before.files else _without_files(committed)):
                return before
            if not replace or committed.number <= base.through:
                raise _differs(self.name, before, committed, compacted=committed.number <= base.through)
            self._check_staged(committed)
            committed = _linked(committed, before.previous)
            self.manifest.write_entry(committed)
            self._tell(Head(head.latest, head.edition + 1))
            return committed

    def _committed(self, number: int, base: Base) -> PointEntry:
        if number > base.through and self.manifest.entry_path(number).exists():
            return self.manifest.entry(number)
        for segment in base.segments:
            if segment.first <= number <= segment.last:
                for entry in segment_entries(self.manifest, segment):
                    if entry.number == number:
                        return entry
        raise StoreError(
            f"connection point '{self.name}': entry {number} comes too late",
            found=f"entry {self.latest()} is committed already",
            expected="entries in growing order",
        )

    def _check_staged(self, entry: PointEntry) -> None:
        for file in entry.files:
            path = self.manifest.data / file.name
            if not path.exists() or path.stat().st_size != file.bytes:
                problem = f"entry {entry.number} names a file that is not there whole: {path}"
                raise MissingFileError(f"connection point '{self.name}': {problem}")


@dataclass(frozen=True)
class ReadPlan:
    """The files that hold matching rows of entries first..last, and how much was skipped unread."""

    directory: Path
    schema: pa.Schema
    first: int
    last: int
    files: tuple[DataFile, ...] = ()
    skipped_files: int = 0
    rows: int = 0  # in `files`: an upper bound where a compacted file also holds other entries
    skipped_rows: int = 0

    def tables(
        self, files: Iterable[DataFile] | None = None, columns: list[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows, file by file, checked; a Spark task passes its share of the files."""
        chosen = self.files if files is None else files
        return read_files(self.directory, chosen, self.first, self.last, self.schema, columns)

    def check(self) -> None:
        """Refuse missing and torn files by length alone, for engines that read the files themselves."""
        for file in self.files:
            durable.check_length(self.directory / file.name, file.bytes)


class PointReader:
    """A reader's side, for one thread. Without a lease, unread entries may be deleted."""

    def __init__(self, root: Path | str, name: str) -> None:
        self.name = name
        self.manifest = Manifest(point_path(root, name))
        self.schema, self.key = self.manifest.about
        self._edition = 0
        self._base = Base()
        self._log: dict[int, PointEntry] = {}  # in ascending order
        self._segments: dict[str, list[PointEntry]] = {}
        self._log_changed = self.manifest.log_changed()
        self.reload()

    @property
    def generation(self) -> int:
        """The base this reader works with.

        While a lease holds it, files that a later base no longer needs are safe.
        """
        return self._base.generation

    @property
    def removed(self) -> int:
        """The last entry that retention has deleted, -1 if none: the position before everything retained."""
        return self._base.removed

    @property
    def thinned(self) -> int:
        """Entries up to here may lack tuples older than the persistence."""
        return max(self._base.thinned, self._base.removed)

    def refresh(self) -> None:
        """Read new entries: one small file if there are none, one more for each new entry."""
        changed = self.manifest.log_changed()
        head = self.manifest.head()
        if head is None or head.edition != self._edition:
            self.reload()
        elif head.latest > self._newest():
            self._walk(head.latest)
        elif changed != self._log_changed:
            # HEAD should have moved with the log. An owner that was suspended may have taken it back.
            self._walk(max(self.manifest.numbers(), default=-1))
        self._log_changed = changed

    def reload(self) -> None:
        """Start over from the newest base and a listing of the log."""
        while True:
            head = self.manifest.head() or Head()
            base = self.manifest.base()
            known = self._log if head.edition == self._edition else {}
            try:
                numbers = [n for n in self.manifest.numbers() if n > base.through]
                log = {n: known.get(n) or self.manifest.entry(n) for n in numbers}
            except FileNotFoundError:
                continue  # compacted and deleted since we listed it: there is a newer base
            if self.manifest.generation() != base.generation:
                continue  # a switch since we read the base may have removed entries from the log
            _check_chain(self.name, head, base, list(log.values()))
            self._base, self._log, self._edition = base, log, head.edition
            return

    @property
    def base(self) -> Base:
        """What this reader knows of compaction and retention."""
        return self._base

    @property
    def log(self) -> list[PointEntry]:
        """The entries known to this reader that are not compacted yet."""
        return list(self._log.values())

    @property
    def edition(self) -> int:
        """Counts replaced entries, as far as this reader knows."""
        return self._edition

    def _newest(self) -> int:
        return next(reversed(self._log), self._base.through)

    def _walk(self, number: int) -> None:
        known, walked = self._newest(), []
        try:
            while number > known:
                walked.append(self.manifest.entry(number))
                number = walked[-1].previous
        except FileNotFoundError:
            self.reload()
            return
        self._log.update((entry.number, entry) for entry in reversed(walked))

    def entries(self, after: int = -1) -> list[PointEntry]:
        """The entries after a position, oldest first. Refuses a position whose next entries are gone."""
        self.refresh()
        self._check_retained(after)
        kept = [s for s in self._base.segments if s.last > after]
        old = [e for segment in kept for e in self._entries_of(segment) if e.number > after]
        return old + [entry for number, entry in self._log.items() if number > after]

    def _entries_of(self, segment: Segment) -> list[PointEntry]:
        """The entries of a segment, cached: a reader working through history asks for them repeatedly."""
        name = segment.entries.name
        if name not in self._segments:
            self._segments = dict([*self._segments.items()][-_SEGMENTS_HELD + 1 :])
            self._segments[name] = segment_entries(self.manifest, segment)
        return self._segments[name]

    def latest(self) -> PointEntry | None:
        """The newest entry, which carries the horizon."""
        self.refresh()
        if self._log:
            return self._log[next(reversed(self._log))]
        return self._entries_of(self._base.segments[-1])[-1] if self._base.segments else None

    def oldest(self) -> PointEntry | None:
        """The oldest retained entry."""
        self.refresh()
        if self._base.segments:
            return self._entries_of(self._base.segments[0])[0]
        return next(iter(self._log.values()), None)

    def plan(
        self, first: int, last: int, key_ranges: Ranges | None = None, ts_ranges: Ranges | None = None
    ) -> ReadPlan:
        """Plan which files to read for entries first..last.

        Files that cannot hold a key or timestamp in the ranges are left out (A49).
        """
        if last > self._newest():
            self.refresh()
        self._check_retained(first - 1)
        every = [f for f in self._files() if f.last >= first and f.first <= last]
        chosen = [
            f
            for f in every
            if touches(key_ranges, f.min_key, f.max_key, f.keys)
            and touches(ts_ranges, f.min_ts, f.max_ts, int(f.min_ts is not None))
        ]
        rows, total = sum(f.rows for f in chosen), sum(f.rows for f in every)
        return ReadPlan(
            self.manifest.data,
            stored_schema(self.schema),
            first,
            last,
            tuple(chosen),
            len(every) - len(chosen),
            rows,
            total - rows,
        )

    def _files(self) -> Iterator[DataFile]:
        for segment in self._base.segments:
            yield from segment.files
        for entry in self._log.values():
            yield from entry.files

    def must_reach(self, position: int, reader: str) -> None:
        """Refuse a position beyond the end: what comes next would have other numbers than it waits for."""
        if position > self._newest():
            raise HistoryLostError(
                f"reader '{reader}' of connection point '{self.name}' has read more than there is",
                found=f"the newest entry is {self._newest()}",
                expected=f"at least entry {position}, where the reader is: somebody has begun the point anew",
                hint="start again from everything retained: attach it without `resume`",
            )

    def _check_retained(self, after: int) -> None:
        # Position -1 asks for whatever exists. After any other position nothing may be missing.
        if -1 < after < self._base.removed:
            raise HistoryLostError(
                f"connection point '{self.name}': entries after {after} have been deleted",
                found=f"the oldest retained entry comes after {self._base.removed}",
                expected=f"entry {after + 1} or the one next to it",
                hint="hold a lease while reading, or start again from everything retained (position -1)",
            )

    def read(
        self,
        first: int = 0,
        last: int | None = None,
        key_ranges: Ranges | None = None,
        ts_ranges: Ranges | None = None,
        columns: list[str] | None = None,
    ) -> pa.Table:
        """The rows of entries first..last as one table, ordered by entry, `_ts`, `_seq`.

        Meant for tests and small readers.
        """
        self.refresh()
        until = self._newest() if last is None else last
        while True:
            plan = self.plan(first, until, key_ranges, ts_ranges)
            try:
                parts = list(plan.tables())
                break
            except MissingFileError:
                # Without a lease, a compaction may delete files between plan and read. Only then, plan again.
                before = self.generation
                self.reload()
                if self.generation == before:
                    raise
        table = pa.concat_tables([plan.schema.empty_table(), *parts])
        ordered = table.sort_by([(ENTRY, "ascending"), (STAMP, "ascending"), (SEQ, "ascending")])
        return ordered if columns is None else ordered.select(columns)


def segment_entries(manifest: Manifest, segment: Segment) -> list[PointEntry]:
    """The entries of a compacted segment, without files: their rows lie together in the segment's files."""
    file = segment.entries
    data = durable.read_checked(manifest.data / file.name, file.bytes, file.crc)
    rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(data), use_threads=False).to_pylist()
    return [PointEntry(**row) for row in rows]


def _check_chain(name: str, head: Head, base: Base, log: list[PointEntry]) -> None:
    """Refuse a log that lacks an entry: each names the one before it, and HEAD the last."""
    before = base.through
    for entry in log:
        if entry.previous > before or (entry is not log[0] and entry.previous != before):
            raise _lost_entry(name, entry.previous)
        before = entry.number
    if head.latest > before:
        raise _lost_entry(name, head.latest)


def _lost_entry(name: str, number: int) -> MissingFileError:
    return MissingFileError(
        f"connection point '{name}': entry {number} is lost", hint="restore the checkpoint from a copy"
    )


def _with_entry(table: pa.Table, entry: int) -> pa.Table:
    return table.append_column(
        pa.field(ENTRY, pa.int64()), pa.repeat(pa.scalar(entry, pa.int64()), table.num_rows)
    )


def _linked(entry: PointEntry, previous: int) -> PointEntry:
    return replace(entry, previous=previous)


def _without_files(entry: PointEntry) -> PointEntry:
    return replace(entry, files=())


def _differs(name: str, before: PointEntry, committed: PointEntry, *, compacted: bool) -> StoreError:
    return StoreError(
        f"connection point '{name}': entry {committed.number} is committed already, with another content",
        found=_content(committed),
        expected=_content(before),
        hint="compacted entries cannot be replaced"
        if compacted
        else "a replayed train must be the same; pass replace=True to change it",
    )


def _content(entry: PointEntry) -> str:
    files = [file.name for file in entry.files]
    return f"{entry.rows} rows, horizon {entry.horizon}, final {entry.final}, files {files}"
