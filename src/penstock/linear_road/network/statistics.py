"""Segment statistics: cars and latest average velocity of each road segment and minute.

Meaning: docs/linear-road-semantics.md, "Toll notification". Idea: a vehicle's mean speed in a minute changes
with each of its reports, so the sum over vehicles is updated by the difference. A minute is closed as soon as
nothing of it can come any more, and only then passed on: no toll of minute m before all reports of m - 1 are
counted (Aurora's order).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numba import njit

from penstock.linear_road.network.tables import SEGMENTS, Roads, column, float_column, grown, spans
from penstock.linear_road.rows.arrays import Floats, Int32s

PRODUCES = "Second TIMESTAMP, XWay INT, Dir INT, Seg INT, Lav INT, Cars INT"
"""Holds in the minute that begins at `Second`: the latest average velocity, and the cars of the minute
before.
"""

_MINUTE = 60_000_000
_LOOK_BACK = 5
"""Minutes whose mean speeds make up the latest average velocity."""
_ROUNDING = 1e-9
_UTC = pa.timestamp("us", tz="UTC")


class Statistics:
    """The road segments of one partition."""

    def __init__(self) -> None:
        self._roads = Roads()
        self._minute = -1  # the open one, counted from 0
        self._cars: Int32s = np.zeros(0, np.int32)
        self._sums: Floats = np.zeros(0, np.float64)
        self._last: Int32s = np.zeros(0, np.int32)  # the cars of the minute before
        self._means: dict[int, Floats] = {}  # minute -> mean speed, NaN where no vehicle reported
        self._changed: dict[str, pa.Table | None] = {}

    def changes(self) -> dict[str, pa.Table | None]:
        """The whole open minute, and the minutes that were closed or are too old."""
        changed, self._changed = self._changed, {}
        if self._minute >= 0:
            changed["open"] = pa.table({"cars": self._cars, "sums": self._sums})
            changed["roads"] = pa.table({"road": self._roads.keys})
            changed["minute"] = pa.table({"minute": [self._minute]})
        return changed

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        if "minute" not in parts:
            return
        self._minute = int(column(parts["minute"], "minute")[0])
        self._roads = Roads(column(parts["roads"], "road"))
        self._cars = column(parts["open"], "cars").astype(np.int32)
        self._sums = float_column(parts["open"], "sums").copy()
        closed = [name for name in parts if name.startswith("m/")]
        self._means = {int(name.removeprefix("m/")): float_column(parts[name], "mean") for name in closed}

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> pa.Table:
        """Tracked reports in; for each minute that begins, its figures out."""
        reports = inputs[0]
        minutes = column(reports, "Second") // _MINUTE
        tables: list[pa.Table] = []
        for first, last in spans(minutes):
            self._close(int(minutes[first]), tables)
            self._count(reports.slice(first, last - first))
        # The figures of a minute serve the tolls of the next one. After the end there is none.
        if not final and self._minute >= 0:
            # At `until` itself nothing has come yet, so the minute that begins there waits.
            self._close((until - 1) // _MINUTE, tables)
        return pa.concat_tables(tables) if tables else _nothing()

    def _count(self, reports: pa.Table) -> None:
        values = [column(reports, n) for n in ("XWay", "Dir", "Seg", "Spd", "Before", "BeforeSpd")]
        cells = self._roads.cells(*values[:3])
        size = len(self._roads) * SEGMENTS
        self._cars, self._sums = grown(self._cars, size, 0), grown(self._sums, size, 0)
        _count(cells, values[3], values[4], values[5], self._cars, self._sums)

    def _close(self, minute: int, tables: list[pa.Table]) -> None:
        """Let minutes pass until this one is open; adds the figures of each that begins to `tables`."""
        if self._minute < 0:
            self._minute = minute
        while self._minute < minute:
            if not self._means and not self._cars.any():
                self._minute = minute  # nothing to report until then
                break
            self._end_minute()
            tables.append(self._figures())

    def _end_minute(self) -> None:
        if self._cars.any():
            # 0 / 0 is NaN, which marks a segment without cars.
            with np.errstate(invalid="ignore", divide="ignore"):
                self._means[self._minute] = self._sums / self._cars
            self._changed[f"m/{self._minute}"] = pa.table({"mean": self._means[self._minute]})
        self._last = self._cars
        self._minute += 1
        self._cars, self._sums = np.zeros(len(self._cars), np.int32), np.zeros(len(self._cars), np.float64)
        for old in [m for m in self._means if m < self._minute - _LOOK_BACK]:
            del self._means[old]
            self._changed[f"m/{old}"] = None

    def _figures(self) -> pa.Table:
        """The figures that apply to the minute that has just begun."""
        size = len(self._cars)
        total, known = np.zeros(size), np.zeros(size, np.int32)
        for means in self._means.values():
            # An earlier minute may know fewer roads, so its array may be shorter.
            there = ~np.isnan(means)
            total[: len(means)][there] += means[there]
            known[: len(means)] += there
        cells = np.flatnonzero(known)
        # A mean of whole numbers may come out a hair below the number it is.
        lav = np.floor(total[cells] / known[cells] + _ROUNDING).astype(np.int32)
        roads = self._roads.keys[cells // SEGMENTS]
        return pa.table(
            {
                "Second": pa.array(np.full(len(cells), self._minute * _MINUTE, np.int64)).view(_UTC),
                "XWay": (roads >> 1).astype(np.int32),
                "Dir": (roads & 1).astype(np.int32),
                "Seg": (cells % SEGMENTS).astype(np.int32),
                "Lav": lav,
                "Cars": self._last[cells],
            }
        )


def _nothing() -> pa.Table:
    number = pa.array([], pa.int32())
    return pa.table(
        {"Second": pa.array([], _UTC)} | dict.fromkeys(("XWay", "Dir", "Seg", "Lav", "Cars"), number)
    )


@njit(cache=True, nogil=True)
def _count(
    cells: Int32s, spd: Int32s, before: Int32s, before_spd: Int32s, cars: Int32s, sums: Floats
) -> None:
    for i in range(len(cells)):
        if before[i] == 0:
            cars[cells[i]] += 1
            sums[cells[i]] += spd[i]
        else:
            # The vehicle's mean speed so far is in the sum already: replace it by the new mean.
            sums[cells[i]] += (before_spd[i] + spd[i]) / (before[i] + 1) - before_spd[i] / before[i]
