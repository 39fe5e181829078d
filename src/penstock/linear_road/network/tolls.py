"""Tolls: what a vehicle is told when it enters a segment, and what it is charged when it leaves.

Meaning: docs/linear-road-semantics.md. Idea: Lav, toll and the nearest accident depend only on road segment
and minute, so they form a grid that is made when a minute begins. A charge is the toll that was quoted when
the vehicle entered the segment it leaves: the same grid, of an earlier minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict

import numpy as np
import pyarrow as pa

from penstock.linear_road.network.tables import SEGMENTS, Roads, column, grown, spans
from penstock.linear_road.network.tracking import ENTERS, LEAVES
from penstock.linear_road.rows.arrays import Codes, Int32s, Int64s, Ints

PRODUCES = "Second TIMESTAMP, Kind INT, Time INT, VID INT, Lav INT, Toll INT, Seg INT"
"""`Kind` 0: a toll notice, 1: an accident alert naming `Seg`, 2: a charge of `Toll`."""

NOTICE, ALERT, CHARGE = 0, 1, 2
_SECOND, _MINUTE = 1_000_000, 60_000_000
_DOWNSTREAM = 5
"""Segments, its own included, in which an accident concerns a vehicle."""
_SLOW, _CROWDED = 40, 50
"""There is a toll below this average velocity, if there are more cars than this."""
_UTC = pa.timestamp("us", tz="UTC")


class _Columns(TypedDict, total=False):
    """The columns that one kind of row uses."""

    VID: Ints
    Lav: Int32s
    Toll: Int32s
    Seg: Int32s


class Tolls:
    """The road segments of one partition, and their tolls so far."""

    def __init__(self) -> None:
        self._roads = Roads()
        self._minute = -1  # counted from 0, as all minutes here
        self._lav, self._accident = np.zeros(0, np.int32), np.zeros(0, np.int8)
        self._tolls: dict[int, Int32s] = {}
        self._known: set[int] = set()  # minutes with any toll above 0
        self._parts: Mapping[str, pa.Table] = {}
        self._changed: dict[str, pa.Table | None] = {}

    # -- state

    def changes(self) -> dict[str, pa.Table | None]:
        """The grid of the minute that began, and its tolls."""
        changed, self._changed = self._changed, {}
        return changed

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        """Restore the grid; tolls of earlier minutes are read when someone is charged one."""
        if "grid" not in parts:
            return
        self._parts = parts
        self._roads = Roads(column(parts["roads"], "road"))
        self._minute = int(column(parts["minute"], "minute")[0])
        self._lav = column(parts["grid"], "lav").astype(np.int32)
        self._accident = column(parts["grid"], "accident").astype(np.int8)
        self._known = {int(name.removeprefix("toll/")) for name in parts if name.startswith("toll/")}

    def _toll(self, minute: int) -> Int32s:
        """The tolls of a minute; shorter than the grid if roads have appeared since."""
        if minute not in self._known:
            return np.zeros(0, np.int32)
        if minute not in self._tolls:
            self._tolls[minute] = column(self._parts[f"toll/{minute}"], "toll").view(np.int32)
        return self._tolls[minute]

    # -- work

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> pa.Table:  # noqa: ARG002 - protocol
        """Moves, figures of minutes and accidents in; notices, alerts and charges out."""
        moves, figures, accidents = inputs
        notices = [self._tell(part) for part in self._minutes(moves, figures, accidents) if part.num_rows]
        return (
            pa.concat_tables(notices).combine_chunks()
            if notices
            else _rows(NOTICE, np.zeros(0, np.int64), {})
        )

    def _minutes(self, moves: pa.Table, figures: pa.Table, accidents: pa.Table) -> Iterator[pa.Table]:
        """The moves minute by minute, each after the grid of its minute is made."""
        tables = (moves, figures, accidents)
        of_rows = [column(table, "Second") // _MINUTE for table in tables]
        for minute in sorted({int(minutes[first]) for minutes in of_rows for first, _ in spans(minutes)}):
            parts = [
                table.slice(*_range(minutes, minute)) for table, minutes in zip(tables, of_rows, strict=True)
            ]
            # A train may end within a minute. The next one goes on with the same grid.
            if minute != self._minute:
                self._begin(minute, *parts[1:])
            yield parts[0]

    def _begin(self, minute: int, figures: pa.Table, accidents: pa.Table) -> None:
        cells, wrecks = self._cells(figures), self._cells(accidents)
        size = len(self._roads) * SEGMENTS
        self._minute = minute
        self._lav, cars = np.full(size, -1, np.int32), np.zeros(size, np.int32)
        self._lav[cells], cars[cells] = column(figures, "Lav"), column(figures, "Cars")
        self._accident = nearest(wrecks, self._roads.keys)
        # A segment near an accident is free, so that vehicles are not charged for the jam.
        charged = (self._lav < _SLOW) & (cars > _CROWDED) & (self._accident < 0)
        toll = np.where(charged, 2 * (cars - _CROWDED) ** 2, 0).astype(np.int32)
        if toll.any():
            # Tolls are never dropped: nobody knows how long a vehicle stays in the segment it was quoted for.
            self._tolls[minute] = toll
            self._known.add(minute)
            self._changed[f"toll/{minute}"] = pa.table({"toll": toll})
        self._note()

    def _note(self) -> None:
        self._changed["grid"] = pa.table({"lav": self._lav, "accident": self._accident})
        self._changed["roads"] = pa.table({"road": self._roads.keys})
        self._changed["minute"] = pa.table({"minute": [self._minute]})

    def _cells(self, rows: pa.Table) -> Int32s:
        return self._roads.cells(column(rows, "XWay"), column(rows, "Dir"), column(rows, "Seg"))

    def _tell(self, moves: pa.Table) -> pa.Table:
        cells = self._cells(moves)
        # A road that appears within a minute has no figures yet: no Lav, no accident, no toll.
        if len(self._roads) * SEGMENTS > len(self._lav):
            self._lav = grown(self._lav, len(self._roads) * SEGMENTS, -1)
            self._accident = grown(self._accident, len(self._roads) * SEGMENTS, -1)
            self._note()
        second, vid, moved = column(moves, "Second"), column(moves, "VID"), column(moves, "Moves")
        # A vehicle hears a toll when it enters a segment, and pays that one when it leaves.
        enters = np.flatnonzero(moved & ENTERS)
        at = cells[enters]
        notice: _Columns = {
            "VID": vid[enters],
            "Lav": self._lav[at],
            "Toll": _of(self._toll(self._minute), at),
        }
        alarmed = enters[self._accident[at] >= 0]
        alert: _Columns = {"VID": vid[alarmed], "Seg": self._accident[cells[alarmed]].astype(np.int32)}
        charges = self._charges(moves, cells, moved)
        charged = np.flatnonzero(charges)
        charge: _Columns = {"VID": vid[charged], "Toll": charges[charged]}
        parts = [(NOTICE, enters, notice), (ALERT, alarmed, alert), (CHARGE, charged, charge)]
        return pa.concat_tables([_rows(kind, second[rows], columns) for kind, rows, columns in parts])

    def _charges(self, moves: pa.Table, cells: Int32s, moved: Ints) -> Int32s:
        """What each move is charged: the toll of the segment left, as it was quoted."""
        quoted = column(moves, "Quoted") // 60
        # Cells of one road and direction follow one another by segment.
        left = cells - column(moves, "Seg") + column(moves, "SegLeft")
        charges = np.zeros(len(cells), np.int32)
        leaves = (moved & LEAVES) > 0
        for minute in np.unique(quoted[leaves]).tolist():
            rows = np.flatnonzero(leaves & (quoted == minute))
            charges[rows] = _of(self._toll(minute), left[rows])
        return charges


def nearest(wrecks: Ints, roads: Int64s) -> Codes:
    """For each road segment, the nearest of segments 0..4 downstream with an accident; -1 if none.

    >>> nearest(np.array([7, 150]), np.array([0, 1]))[[2, 3, 7, 8, 149, 150, 154, 155]].tolist()
    [-1, 7, 7, -1, -1, 50, 50, -1]
    """
    accident_at = np.full(len(roads) * SEGMENTS, -1, np.int8)
    # From far to near: a nearer accident replaces a farther one.
    for back in range(_DOWNSTREAM - 1, -1, -1):
        for cell in wrecks.tolist():
            road, seg = divmod(cell, SEGMENTS)
            upstream = seg - back if roads[road] & 1 == 0 else seg + back
            # The road ends there. The benchmark's min(s + i, 99) would only name the last segment again.
            if 0 <= upstream < SEGMENTS:
                accident_at[road * SEGMENTS + upstream] = seg
    return accident_at


def _range(minutes: Ints, minute: int) -> tuple[int, int]:
    # A column latch gets its rows in order of time.
    first, last = np.searchsorted(minutes, (minute, minute + 1))
    return int(first), int(last - first)


def _of(grid: Int32s, cells: Int32s) -> Int32s:
    """The grid's values; 0 for a cell outside the grid."""
    if not len(grid):
        return np.zeros(len(cells), np.int32)
    return np.where(cells < len(grid), grid[np.minimum(cells, len(grid) - 1)], 0)


def _rows(kind: int, second: Ints, known: _Columns) -> pa.Table:
    """Rows of one kind; the columns that this kind does not use are -1."""
    unused = np.full(len(second), -1, np.int32)
    return pa.table(
        {
            "Second": pa.array(second).view(_UTC),
            "Kind": np.full(len(second), kind, np.int32),
            "Time": (second // _SECOND).astype(np.int32),
            "VID": np.asarray(known.get("VID", unused), np.int32),
            "Lav": np.asarray(known.get("Lav", unused), np.int32),
            "Toll": np.asarray(known.get("Toll", unused), np.int32),
            "Seg": np.asarray(known.get("Seg", unused), np.int32),
        }
    )
