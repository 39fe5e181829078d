"""Which files are whole: those that have not changed for a while.

Nothing tells when a writer is done, unless it renames its file into place. So a file counts as whole when its
size and its time of change were the same for `settle`, between two looks, by our own monotonic clock. Clocks
of other machines do not matter.

A file that nobody has written to for a minute need not wait: a run over old files is as fast as without. Here
the wall clock is compared with the file's time. If it is wrong by more than a minute, a file that is being
written may be taken; what is then added to it is found and becomes a dead letter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from os import stat_result

OLD = 60.0
"""Seconds after which a file is whole without a second look."""


@dataclass(frozen=True)
class Signature:
    """What shows that a file has changed. `mtime`: nanoseconds since 1970."""

    size: int
    mtime: int

    @classmethod
    def of(cls, stat: stat_result) -> Signature:
        return cls(stat.st_size, stat.st_mtime_ns)


class Settling:
    """The files that are not yet whole, and since when each of them has not changed."""

    def __init__(
        self,
        settle: float,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settle, self._clock, self._wall = settle, clock, wall
        self._since: dict[str, tuple[Signature, float]] = {}

    @property
    def waiting(self) -> tuple[str, ...]:
        """The files that were looked at and are not whole yet."""
        return tuple(self._since)

    def oldest(self, whole: Container[str]) -> int | None:
        """The time of the file that waits and was changed first, of those that are not whole now."""
        return min((s.mtime for name, (s, _) in self._since.items() if name not in whole), default=None)

    def due(self, name: str) -> bool:
        """Whether another look at the file can find it whole."""
        return name not in self._since or self._clock() - self._since[name][1] >= self._settle

    def whole(self, name: str, signature: Signature) -> bool:
        """Look at a file: whether it is whole."""
        known = self._since.get(name)
        if not self._settle or (known is None and self._wall() - signature.mtime / 1e9 > OLD):
            return True
        if known is not None and known[0] == signature:
            return self._clock() - known[1] >= self._settle
        self._since[name] = (signature, self._clock())
        return False

    def forget(self, names: Iterable[str]) -> None:
        """Stop waiting for files that are known now, or gone."""
        for name in names:
            self._since.pop(name, None)
