"""From one base to the next: the atomic switch of compaction and retention, and deletion of unused files.

A file that a new base no longer needs is first marked as retired. It is deleted once every live lease holds
that base or a later one, so a reader in the middle of an old plan is safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from penstock.store import durable
from penstock.store.errors import StoreError
from penstock.store.locks import StillHeld
from penstock.store.points.leases import Clock, reap
from penstock.store.points.manifest import BASES, DATA, LOG, Base, DataFile, Manifest, PointEntry, Segment


def publish(
    manifest: Manifest, before: Base, after: Base, held: StillHeld, entries: Iterable[PointEntry] = ()
) -> Base:
    """Make `after` the current base; retire the files it no longer names and the log records of `entries`.

    Call it under the switch lock. `held`: whether it still is; leases were read under it.
    """
    number = before.generation + 1
    kept = set(_names(after.segments))
    gone = [f"{DATA}/{name}" for name in _names(before.segments) if name not in kept]
    for entry in entries:
        gone += [
            f"{LOG}/{manifest.entry_path(entry.number).name}",
            *(f"{DATA}/{file.name}" for file in entry.files),
        ]
    if before.generation:
        gone.append(f"{BASES}/{manifest.base_path(before.generation).name}")
    waiting = [(g, path) for g, path in before.retired if (manifest.path / path).exists()]
    base = replace(after, generation=number, retired=(*waiting, *((number, path) for path in gone)))
    if not held():
        raise StoreError(
            f"{manifest.path}: this process was suspended too long; others go on, and this pass is void"
        )
    manifest.write_base(base)
    return base


def sweep(manifest: Manifest, clock: Clock = time.monotonic, *, grace: float = 600.0) -> int:
    """Delete retired files that no lease holds, and leftovers of killed processes; returns how many."""
    with manifest.switching():
        # The base first: a lease that is taken after it is of this generation or a later one.
        base = manifest.base()
        oldest = min((lease.generation for lease in reap(manifest, clock)), default=None)
        done = [path for generation, path in base.retired if oldest is None or generation <= oldest]
        # Delete log records before data files: a reader that still finds the record must find its files.
        paths = [manifest.path / path for path in sorted(done, key=lambda path: not path.startswith(LOG))]
        paths += _orphans(manifest, base, grace)
        deleted = sum(_delete(path) for path in paths)
    return deleted + sum(
        durable.remove_litter(manifest.path / part, seconds=grace) for part in (LOG, BASES, DATA, "")
    )


def _names(segments: Iterable[Segment]) -> list[str]:
    return [file.name for segment in segments for file in (segment.entries, *segment.files)]


def _orphans(manifest: Manifest, base: Base, grace: float) -> list[Path]:
    """Staged files of trains that were committed without them, and files of a killed compaction."""
    log = manifest.numbers()
    latest = max([*log, base.through])
    named = {f.name for number in log if number > base.through for f in _files(manifest, number)}
    named |= {*_names(base.segments), *(path.removeprefix(f"{DATA}/") for _, path in base.retired)}
    past = [
        path
        for path in manifest.data.glob("*.parquet")
        if path.name not in named and _born(path.name) <= (base.generation if path.name[0] == "c" else latest)
    ]
    return [path for path in past if time.time() - path.stat().st_mtime > grace]


def _files(manifest: Manifest, number: int) -> tuple[DataFile, ...]:
    return manifest.entry(number).files


def _born(name: str) -> int:
    """The entry, or the generation of a compaction, that a data file was made for."""
    return int(name.removeprefix("c").split("-")[0])


def _delete(path: Path) -> int:
    try:
        path.unlink()
    except FileNotFoundError:
        return 0
    return 1
