"""Leases: they protect what a running reader still needs, and expire when the reader dies.

In Aurora each successor of a queue holds a tail, the oldest tuple it still needs (Sect. 4.2: A63, A64). Here
the tail is a small file with the reader's position, which any process can write next to the table. It expires
unless it is renewed. With `seconds=None` it stays until released. The network's own sub-networks use such
leases, because they must find their place after any pause.

Times are on the host's monotonic clock, which nobody can set back. A lease of another host, or of an earlier
boot, has a clock that says nothing here: it counts as live until it was seen unchanged for its whole length.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import quote

from penstock.store import durable
from penstock.store.boot import boot_id
from penstock.store.errors import HistoryLostError, LeaseLostError
from penstock.store.points.manifest import Manifest
from penstock.store.points.point import PointReader

Clock = Callable[[], float]


@dataclass(frozen=True)
class Lease:
    """A reader needs every entry after `position`, and the files of base `generation`."""

    reader: str
    position: int
    generation: int
    expires: float | None  # seconds on the clock of its boot; None: never
    seconds: float | None = None  # how long it lasts after a renewal
    boot: str = ""


_watched: dict[Path, tuple[float, float]] = {}
"""Leases of other boots: their `expires`, and when this process first saw it, on its own clock."""


def _lives(path: Path, lease: Lease, now: float) -> bool:
    if lease.expires is None:
        return True
    if lease.boot == boot_id():
        return now < lease.expires
    expires, seen = _watched.get(path, (None, now))
    if expires != lease.expires:
        _watched[path], seen = (lease.expires, now), now
    return now - seen < (lease.seconds or 0.0)


def live_leases(manifest: Manifest, clock: Clock = time.monotonic) -> list[Lease]:
    """The leases that have not expired, by reader."""
    now = clock()
    live = [lease for path, lease in _leases(manifest).items() if _lives(path, lease, now)]
    return sorted(live, key=lambda lease: lease.reader)


def reap(manifest: Manifest, clock: Clock = time.monotonic) -> list[Lease]:
    """Remove expired leases and return the live ones.

    Call it under the switch lock, before deleting.
    """
    now, kept = clock(), []
    for path, lease in _leases(manifest).items():
        if _lives(path, lease, now):
            kept.append(lease)
        else:
            path.unlink(missing_ok=True)
    return kept


def _leases(manifest: Manifest) -> dict[Path, Lease]:
    leases = {}
    for path in manifest.leases.glob("*.json"):
        try:
            leases[path] = Lease(**durable.read_record(path))
        except FileNotFoundError:
            continue  # released since we listed it
    return leases


class ReaderLease:
    """A lease held by its reader.

    Call `renew(position)` between trains: plans made before it are no longer protected. Call `renew()` from
    anywhere, also while a train is being read, to stay alive. Neither writes more often than every `every`
    seconds: a lease that lags holds too much, never too little. Call `settle()` when no train runs any more,
    so that the lease does not lag for good.
    """

    def __init__(
        self, reader: PointReader, lease: Lease, seconds: float | None, every: float, clock: Clock
    ) -> None:
        self._reader, self._lease, self._seconds, self._every, self._clock = (
            reader,
            lease,
            seconds,
            every,
            clock,
        )
        self._path = _lease_path(reader.manifest, lease.reader)
        self._written = clock()
        self._position = lease.position
        self._mutex = threading.Lock()

    @property
    def position(self) -> int:
        """The last entry that the reader has finished."""
        return self._position

    def renew(self, position: int | None = None) -> None:
        """Report that the reader lives and, with a position, that it has finished everything up to there."""
        with self._mutex:
            self._position = max(self._position, -1 if position is None else position)
            now = self._clock()
            if self._every and 0 <= now - self._written < self._every:
                return
            with self._reader.manifest.switching():
                self._renew(now, between_trains=position is not None)

    def settle(self) -> None:
        """Write the reader's position, even if it was written only just before."""
        with self._mutex, self._reader.manifest.switching():
            self._renew(self._clock(), between_trains=True)

    def _renew(self, now: float, *, between_trains: bool) -> None:
        if not self._path.exists():
            raise LeaseLostError(
                f"reader '{self._lease.reader}' of connection point '{self._reader.name}' has lost its lease",
                found="not renewed in time",
                expected=f"a renewal within {self._seconds} s",
                hint="start again from everything retained, or take longer leases",
            )
        expires = None if self._seconds is None else now + self._seconds
        lease = replace(self._lease, expires=expires)
        if between_trains:
            self._reader.reload()
            lease = replace(lease, position=self._position, generation=self._reader.generation)
        durable.write_record(self._path, vars(lease))
        self._lease, self._written = lease, now

    def release(self) -> None:
        """Release the lease; the reader needs nothing any more."""
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take_lease(
    reader: PointReader,
    name: str,
    position: int | None = None,
    *,
    seconds: float | None = 60.0,
    every: float = 1.0,
    clock: Clock = time.monotonic,
) -> ReaderLease:
    """Hold everything after `position` (None: everything retained) for a reader of this name.

    Taking it again under the same name, after a restart, replaces the previous lease. The reader is brought
    up to date, so plans made from here on are protected.
    """
    with reader.manifest.switching():
        lease = _written(reader, name, position, seconds, clock)
        # Whoever holds the lock is alone, unless it was taken away meanwhile.
        while reader.manifest.generation() != lease.generation:
            lease = _written(reader, name, position, seconds, clock)
    return ReaderLease(reader, lease, seconds, every, clock)


def _written(
    reader: PointReader, name: str, position: int | None, seconds: float | None, clock: Clock
) -> Lease:
    reader.reload()
    start = reader.removed if position is None else position
    reader.must_reach(start, name)
    if position is not None and -1 < position < reader.thinned:
        raise HistoryLostError(
            f"reader '{name}' of connection point '{reader.name}' comes too late",
            found=f"tuples of entries up to {reader.thinned} have been deleted",
            expected=f"everything after entry {position}",
            hint="start again from everything retained (no position)",
        )
    expires = None if seconds is None else clock() + seconds
    lease = Lease(name, start, reader.generation, expires, seconds, boot_id())
    durable.write_record(_lease_path(reader.manifest, name), vars(lease))
    return lease


def _lease_path(manifest: Manifest, reader: str) -> Path:
    return manifest.leases / f"{quote(reader, safe='').replace('.', '%2E')}.json"
