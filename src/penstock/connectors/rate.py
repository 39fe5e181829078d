"""A synthetic stream that counts up with the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.connectors.contract import Decoded, Input, Position, Slice, Taken, Waiting
from penstock.connectors.tables import counted_from
from penstock.model.boxes import Source
from penstock.model.formats.rate import Rate
from penstock.model.types import arrow_schema

_SECOND = 1_000_000
_PARTS = 8  # the arrivals of a train are told in so many parts


@dataclass(frozen=True)
class RatePosition(Position):
    """When the stream began, in microseconds, and the number of rows taken."""

    start: int
    row: int = 0


@dataclass(frozen=True)
class RateSlice(Slice):
    """A number of rows, starting with number `row`."""

    row: int
    rows: int
    start: int
    rate: int

    def read(self) -> bytes:
        return b""

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        del data  # the numbers are enough
        values = np.arange(self.row, self.row + self.rows, dtype=np.int64)
        stamps = pa.array(self.start + values * _SECOND // self.rate)
        types = arrow_schema(source.schema, hidden=False)
        columns = [stamps.cast(types[0].type), pa.array(values, types[1].type)]
        return counted_from(pa.Table.from_arrays(columns, schema=types), self.row)

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        del source, data
        return self.rows

    def weight(self) -> int:
        return self.rows * 20


class RateInput(Input[RatePosition]):
    """Counts up at a fixed number of rows a second since the first train."""

    def __init__(self, source: Source, directory: Path) -> None:
        del directory  # the position is enough
        assert isinstance(source.format, Rate)
        self._rate = source.format.rows_per_second
        self._origin: float | None = None  # wall time when the monotonic clock was 0, as this run sees it

    def _now(self, position: RatePosition | None) -> int:
        """Wall time in microseconds that goes on evenly, whatever happens to the clock."""
        if self._origin is None:
            # After a restart go on from the last row, even if the clock was set back before it.
            least = 0.0 if position is None else position.start / _SECOND + position.row / self._rate
            self._origin = max(time.time(), least) - time.monotonic()
        return int((self._origin + time.monotonic()) * _SECOND)

    def take(self, position: RatePosition | None, limit: int) -> Taken:
        now = self._now(position)
        position = position or RatePosition(now)
        start, first = position.start, position.row
        count = max(0, min(limit, int((now - start) * self._rate / _SECOND) - first))
        slices = [RateSlice(first, count, start, self._rate)] if count else []
        newest = start + (first + count - 1) * _SECOND // self._rate if count else None
        due = self._due(start, first)
        parts = min(count, _PARTS)
        ends = [first + count * part // max(1, parts) for part in range(parts + 1)]
        arrivals = [(self._due(start, a), b - a) for a, b in pairwise(ends)]
        return Taken(
            slices, RatePosition(start, first + count), count, newest, arrived=due, arrivals=arrivals
        )

    def _due(self, start: int, row: int) -> float:
        """When a row comes, in seconds."""
        return start / _SECOND + (row + 1) / self._rate

    def waiting(self, position: RatePosition | None) -> Waiting:
        if position is None:
            return Waiting(0, 0)
        count = int((self._now(position) - position.start) * self._rate / _SECOND) - position.row
        return Waiting(count, 0, self._due(position.start, position.row)) if count > 0 else Waiting(0, 0)
