"""Retention: the periodic pass that deletes tuples older than a connection point's persistence (A26, A71).

Time is event time. What lies further than `keep` behind the horizon goes, file by file, the oldest entries
first. Where no horizon is ever promised (behind a count window with the earliest stamp), the newest tuple
takes its place. Streams without timestamps are kept by the wall time of arrival. What a live lease still
needs stays (A64).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.store import durable
from penstock.store.locks import StillHeld
from penstock.store.points.compaction import Compaction, Sizes, compact
from penstock.store.points.generations import publish, sweep
from penstock.store.points.leases import Clock, reap
from penstock.store.points.manifest import (
    NO_HORIZON,
    Base,
    DataFile,
    Manifest,
    PointEntry,
    Segment,
    stamps_of,
)
from penstock.store.points.point import PointReader, segment_entries

_PASSES = 8  # segments made at once; a history longer than `keep` (a lease holds it) needs several


@dataclass(frozen=True)
class Retention:
    """What a pass did, and which reader kept it from doing more."""

    removed: int  # entries up to here are gone
    files: int
    rows: int
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Limit:
    """What counts as old, and up to which entry no reader needs it."""

    stamp: int
    arrival: float
    safe: int

    def old(self, stamp: int | None, arrival: float) -> bool:
        return arrival < self.arrival if stamp is None else stamp < self.stamp

    def entry_goes(self, entry: PointEntry) -> bool:
        old = self.old(entry.max_ts, entry.arrival) if entry.rows else self.tells_nothing(entry)
        return entry.number <= self.safe and old

    def tells_nothing(self, entry: PointEntry) -> bool:
        """Whether an entry without tuples can go: it has no horizon, or an old one."""
        return entry.horizon == NO_HORIZON or self.old(entry.horizon, entry.arrival)


def retain(
    root: Path | str, name: str, keep: int, *, clock: Clock = time.monotonic, grace: float = 600.0
) -> Retention | None:
    """Delete entries wholly older than `keep` microseconds behind the horizon.

    Returns None if another pass is running. The newest entry always stays, because it carries the horizon.
    """
    reader = PointReader(root, name)
    with durable.locked(reader.manifest.maintenance_lock, wait=False) as mine:
        if not mine:
            return None
        with reader.manifest.switching() as held:
            done = _retain(reader, keep, clock, held)
    sweep(reader.manifest, clock, grace=grace)
    return done


def _retain(reader: PointReader, keep: int, clock: Clock, held: StillHeld) -> Retention:
    reader.reload()
    leases = reap(reader.manifest, clock)
    latest = reader.latest()
    base = reader.base
    if latest is None:
        return Retention(base.removed, 0, 0)
    safe = min([latest.number, *(lease.position for lease in leases)])
    limit = _Limit(_now(reader, latest) - keep, latest.arrival - keep / 1e6, safe)
    segments, gone = _thin(reader.manifest, base, limit)
    entries = [] if segments else _leading(reader.log[:-1], limit)
    gone += [file for entry in entries for file in entry.files]
    after = _after(base, segments, entries, gone)
    if after != base:
        publish(reader.manifest, base, after, held, entries)
    readers = tuple(lease.reader for lease in leases if lease.position < latest.number)
    return Retention(after.removed, len(gone), sum(file.rows for file in gone), readers)


def _now(reader: PointReader, latest: PointEntry) -> int:
    """The current event time of the point."""
    if latest.horizon != NO_HORIZON:
        return latest.horizon
    files = [file for segment in reader.base.segments for file in segment.files]
    newest = stamps_of([*files, *(file for entry in reader.log for file in entry.files)])[1]
    return NO_HORIZON if newest is None else newest


def _after(
    base: Base, segments: tuple[Segment, ...], entries: list[PointEntry], gone: list[DataFile]
) -> Base:
    removed = max([base.removed, *(entry.number for entry in entries)])
    dropped = base.segments[: len(base.segments) - len(segments)]
    removed = max([removed, *(segment.last for segment in dropped)])
    newest_gone = stamps_of(gone)[1]
    return replace(
        base,
        segments=segments,
        removed=removed,
        thinned=max([base.thinned, *(file.last for file in gone)]),
        lost_before=base.lost_before if newest_gone is None else max(base.lost_before, newest_gone + 1),
        through=max(base.through, removed),
    )


def _thin(manifest: Manifest, base: Base, limit: _Limit) -> tuple[tuple[Segment, ...], list[DataFile]]:
    """The segments without their old files and without leading empty segments; and the files to delete."""
    kept: list[Segment] = []
    gone: list[DataFile] = []
    for segment in base.segments:
        last = segment_entries(manifest, segment)[-1]
        files = [f for f in segment.files if f.last <= limit.safe and limit.old(f.max_ts, last.arrival)]
        left = tuple(f for f in segment.files if f not in files)
        gone += files
        empty = segment.last <= limit.safe and not left and (segment.rows > 0 or limit.tells_nothing(last))
        if kept or not empty:
            kept.append(replace(segment, files=left))
    return tuple(kept), gone


def _leading(entries: list[PointEntry], limit: _Limit) -> list[PointEntry]:
    taken: list[PointEntry] = []
    for entry in entries:
        if not limit.entry_goes(entry):
            break
        taken.append(entry)
    return taken


def maintain(
    root: Path | str,
    name: str,
    keep: int,
    *,
    clock: Clock = time.monotonic,
    between: Callable[[], None] = lambda: None,
) -> tuple[Compaction | None, Retention | None]:
    """One pass of retention and compaction, as the background task runs it.

    `between` is called between its steps, which may take long: leases have to be renewed meanwhile.

    Old entries go first: once merged with newer ones, they would have to stay. After compaction has separated
    old from new, retention may delete more.
    """
    before = retain(root, name, keep, clock=clock)
    # A segment spans a quarter of the persistence, so tuples outlive it by at most that much.
    sizes = Sizes(span=max(1, keep // 4))
    passes = [compact(root, name, sizes, clock=clock)]
    while passes[-1] is not None and len(passes) < _PASSES:
        between()
        passes.append(compact(root, name, sizes, clock=clock))
    between()
    after = retain(root, name, keep, clock=clock) if passes[0] is not None else None
    return passes[0], _both(before, after)


def _both(one: Retention | None, other: Retention | None) -> Retention | None:
    if one is None or other is None:
        return one or other
    return replace(other, files=one.files + other.files, rows=one.rows + other.rows)
