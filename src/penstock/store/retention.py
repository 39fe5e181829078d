"""Retention: the periodic pass that deletes tuples older than the persistence of a connection point (A26, A71).

Time is event time: what lies further than `keep` behind the horizon goes, file by file, the oldest entries first.
Streams without timestamps are kept by the wall time of arrival. What a live lease still needs stays (A64).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.store import durable
from penstock.store.compaction import Compaction, Sizes, compact
from penstock.store.generations import publish, sweep
from penstock.store.leases import Clock, reap
from penstock.store.manifest import Base, DataFile, Entry, Manifest, Segment
from penstock.store.point import PointReader, segment_entries


@dataclass(frozen=True)
class Retention:
    """What a pass did, and who kept it from doing more."""

    removed: int  # entries up to here are gone
    files: int
    rows: int
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Limit:
    """What is old, and up to which entry no reader needs it."""

    stamp: int
    arrival: float
    safe: int

    def old(self, stamp: int | None, arrival: float) -> bool:
        return arrival < self.arrival if stamp is None else stamp < self.stamp

    def entry_goes(self, entry: Entry) -> bool:
        # An entry without tuples only tells a horizon: it is as old as that.
        stamp = entry.max_ts if entry.rows else entry.horizon
        return entry.number <= self.safe and self.old(stamp, entry.arrival)


def retain(
    root: Path | str, name: str, keep: int, *, clock: Clock = time.time, grace: float = 600.0
) -> Retention | None:
    """Delete what is wholly older than `keep` microseconds behind the horizon; None if another pass is running.

    The newest entry always stays: it carries the horizon.
    """
    reader = PointReader(root, name)
    with durable.locked(reader.manifest.maintenance_lock, wait=False) as mine:
        if not mine:
            return None
        with durable.locked(reader.manifest.switch_lock):
            done = _retain(reader, keep, clock)
    sweep(reader.manifest, clock, grace=grace)
    return done


def _retain(reader: PointReader, keep: int, clock: Clock) -> Retention:
    reader.reload()
    leases = reap(reader.manifest, clock)
    latest = reader.latest()
    base = reader.base
    if latest is None:
        return Retention(base.removed, 0, 0)
    safe = min([latest.number, *(lease.position for lease in leases)])
    limit = _Limit(latest.horizon - keep, latest.arrival - keep / 1e6, safe)
    segments, gone = _thin(reader.manifest, base, limit)
    entries = [] if segments else _leading(reader.log[:-1], limit)
    gone += [file for entry in entries for file in entry.files]
    after = _after(base, segments, entries, gone)
    if after != base:
        publish(reader.manifest, base, after, entries)
    held = tuple(lease.reader for lease in leases if lease.position < latest.number)
    return Retention(after.removed, len(gone), sum(file.rows for file in gone), held)


def _after(base: Base, segments: tuple[Segment, ...], entries: list[Entry], gone: list[DataFile]) -> Base:
    removed = max([base.removed, *(entry.number for entry in entries)])
    dropped = base.segments[: len(base.segments) - len(segments)]
    removed = max([removed, *(segment.last for segment in dropped)])
    thinned = max([base.thinned, *(file.last for file in gone)])
    return replace(
        base, segments=segments, removed=removed, thinned=thinned, through=max(base.through, removed)
    )


def _thin(manifest: Manifest, base: Base, limit: _Limit) -> tuple[tuple[Segment, ...], list[DataFile]]:
    """The segments without their old files, the leading empty ones left out; and the files that go."""
    kept: list[Segment] = []
    gone: list[DataFile] = []
    for segment in base.segments:
        last = segment_entries(manifest, segment)[-1]
        files = [f for f in segment.files if f.last <= limit.safe and limit.old(f.max_ts, last.arrival)]
        left = tuple(f for f in segment.files if f not in files)
        gone += files
        empty = (
            segment.last <= limit.safe
            and not left
            and (segment.rows > 0 or limit.old(last.horizon, last.arrival))
        )
        if kept or not empty:
            kept.append(replace(segment, files=left))
    return tuple(kept), gone


def _leading(entries: list[Entry], limit: _Limit) -> list[Entry]:
    taken: list[Entry] = []
    for entry in entries:
        if not limit.entry_goes(entry):
            break
        taken.append(entry)
    return taken


def maintain(
    root: Path | str, name: str, keep: int, *, clock: Clock = time.time
) -> tuple[Compaction | None, Retention | None]:
    """One pass of both, as a background task runs it now and then."""
    # A quarter of the persistence: at most so much longer are tuples kept than asked for.
    done = compact(root, name, Sizes(span=max(1, keep // 4)), clock=clock)
    return done, retain(root, name, keep, clock=clock)
