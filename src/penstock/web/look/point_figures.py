"""How far back each connection point reaches, and what it takes on disk. Looked at now and then only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.model.json_types import JsonObject
from penstock.store.errors import StoreError
from penstock.store.points.point import PointReader

_EVERY = 5.0  # seconds between two looks


class PointFigures:
    """The figures of all points; for one thread at a time."""

    def __init__(self, checkpoint: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._checkpoint, self._clock = checkpoint, clock
        self._readers: dict[str, PointReader] = {}
        self._known: dict[str, JsonObject] = {}
        self._looked = float("-inf")

    def figures(self, points: Iterable[str]) -> dict[str, JsonObject]:
        """By point; a point that nothing was written to yet is not there."""
        names = list(points)
        if self._clock() - self._looked >= _EVERY or set(names) - set(self._known):
            self._looked = self._clock()
            looked = {name: self._figures(name) for name in names}
            self._known = {name: figures for name, figures in looked.items() if figures is not None}
        return self._known

    def _figures(self, name: str) -> JsonObject | None:
        try:
            reader = self._readers.get(name) or PointReader(self._checkpoint, name)
            self._readers[name] = reader
            oldest, latest = reader.oldest(), reader.latest()
        except (StoreError, OSError):
            # Not written yet, or deleted between two looks: unknown, and looked at anew the next time.
            self._readers.pop(name, None)
            return None
        old = [file for segment in reader.base.segments for file in segment.files]
        files = [*old, *(file for entry in reader.log for file in entry.files)]
        least = [file.min_ts for file in files if file.min_ts is not None]
        greatest = [file.max_ts for file in files if file.max_ts is not None]
        return {
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.bytes for file in files),
            "oldest": min(least) / 1e6 if least else None,
            "newest": max(greatest) / 1e6 if greatest else None,
            "reaches": (max(greatest) - min(least)) / 1e6 if least and greatest else None,
            "first_entry": None if oldest is None else oldest.number,
            "last_entry": None if latest is None else latest.number,
        }
