"""Refused rows: which rows are ignored, and why (docs/linear-road-semantics.md, "Input").

Idea: most rules look at one row and are SQL. Three look at the rows before: a Time below the last accepted
row's, a Time more than 60 s above both the last accepted and the next row's, and a report already accepted.
These are sequential, but only where neighbouring times fall or leap. All other rows are judged as a whole
array.

The page leaves two points open. Here "the next row" is the next one that passes the rules of a single row,
and a row that has no row before or after it cannot leap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypedDict

import duckdb
import numpy as np
import pyarrow as pa

from penstock.linear_road.rows.arrays import Bools, Bytes, Int32s, Int64s, Ints
from penstock.linear_road.rows.fields import COLUMNS, FEET_PER_SEGMENT
from penstock.linear_road.validate.lines import Chunk

_TIME, _VID, _XWAY, _DIR = (COLUMNS.index(name) for name in ("Time", "VID", "XWay", "Dir"))
LEAP = 60
_ACCEPTED, _BACK, _LEAPS, _REPEATED = 0, 1, 2, 3
_SEQUENTIAL = {_BACK: "time goes back", _LEAPS: "time leaps ahead", _REPEATED: "report repeated"}
_LARGEST = (1 << 31) - 1
_VID_BITS, _ROAD_BITS = 31, 18

RANGES: dict[str, tuple[int, int, str, tuple[int, ...]]] = {
    "Time": (0, 10799, "time", (0, 2, 3, 4)),
    "VID": (0, _LARGEST, "vehicle", (0, 2, 3, 4)),
    "Spd": (0, 100, "speed", (0,)),
    "XWay": (0, _LARGEST, "expressway", (0, 3, 4)),
    "Lane": (0, 4, "lane", (0,)),
    "Dir": (0, 1, "direction", (0,)),
    "Seg": (0, 99, "segment", (0,)),
    "Pos": (0, 100 * FEET_PER_SEGMENT - 1, "position", (0,)),
    "QID": (0, _LARGEST, "query", (2, 3, 4)),
    "Sinit": (0, 99, "start segment", (4,)),
    "Send": (0, 99, "end segment", (4,)),
    "Day": (1, 69, "day", (3,)),
}
"""For each field: least, largest, its name in the reason, and the types that use it."""


def _out_of_range(name: str) -> str:
    least, largest, word, types = RANGES[name]
    return (
        f"WHEN Type IN ({', '.join(map(str, types))}) AND {name} NOT BETWEEN {least} AND {largest} THEN "
        f"'{word} out of range'"
    )


# CASE names the first rule that a row breaks, so the order of the rules decides the reason.
WHY = f"""
CASE WHEN NOT readable THEN 'not 15 integers'
     WHEN Type NOT IN (0, 2, 3, 4) THEN 'unknown type'
     {" ".join(_out_of_range(name) for name in RANGES)}
     WHEN Type = 4 AND Sinit <> Send AND DOW NOT BETWEEN 1 AND 7 THEN 'day of week out of range'
     WHEN Type = 4 AND Sinit <> Send AND TOD NOT BETWEEN 1 AND 1440 THEN 'time of day out of range'
     WHEN Type = 0 AND Seg <> Pos // {FEET_PER_SEGMENT} THEN 'Seg is not Pos div 5280' END"""


@dataclass(frozen=True)
class Refused:
    """One refused row: where it stands, why, and its text."""

    file: str
    line: int
    why: str
    raw: str


class GateMemory(TypedDict):
    """What a gate remembers, in JSON."""

    last: int | None
    known: list[list[int]]


@dataclass
class Gate:
    """What the sequential rules remember from one chunk to the next."""

    last: int | None = None
    known: Int64s = field(default_factory=lambda: np.empty((3, 0), dtype=np.int64))
    """Time, road and VID of the reports accepted in the last second, as chunks may split it."""

    @staticmethod
    def from_json(memory: GateMemory) -> Gate:
        """Restore a gate from `as_json`."""
        return Gate(memory["last"], np.array(memory["known"], dtype=np.int64).reshape(3, -1))

    def as_json(self) -> GateMemory:
        """Its memory, as plain values."""
        return {"last": self.last, "known": self.known.tolist()}

    def accept(self, chunk: Chunk, formed: Bools, following: int | None) -> tuple[Bools, dict[int, str]]:
        """Judge the well-formed rows of a chunk: which rows stay, and why the others do not."""
        rows = np.flatnonzero(formed)
        times = chunk.columns[_TIME][rows]
        verdict = out_of_order(times, self.last, following)
        kept = rows[verdict == _ACCEPTED]
        # Repeated reports may count here: each has the Time of an accepted one.
        if len(kept):
            self.last = int(chunk.columns[_TIME][kept[-1]])
        reports = kept[chunk.columns[0][kept] == 0]
        repeated = self._repeated(chunk.columns, reports)
        accepted = np.zeros(len(formed), dtype=bool)
        accepted[kept] = True
        accepted[repeated] = False
        why = {int(rows[i]): _SEQUENTIAL[int(verdict[i])] for i in np.flatnonzero(verdict)}
        return accepted, why | dict.fromkeys(repeated.tolist(), _SEQUENTIAL[_REPEATED])

    def _repeated(self, columns: Int32s, reports: Int64s) -> Int64s:
        """The reports that repeat an earlier one."""
        time, vid = columns[_TIME][reports].astype(np.int64), columns[_VID][reports]
        road = columns[_XWAY][reports].astype(np.int64) * 2 + columns[_DIR][reports]
        # Chunks may split a second. So the carried reports come first, and count as the earlier ones.
        known: Int64s = np.hstack([self.known, [time, road, vid]])
        again = later_equals(_keys(*known))
        # Times never go back, so only the newest second can still see a repeated report.
        self.known = np.unique(known[:, known[0] == self.last], axis=1)
        carried = known.shape[1] - len(reports)
        return np.asarray(reports[again[again >= carried] - carried])


def _keys(time: Int64s, road: Int64s, vid: Int64s) -> Int64s:
    """One number for each report: 14 bits of time, 18 of road, 31 of vehicle.

    Roads with larger numbers are renumbered first.
    """
    if road.max(initial=0) < 1 << _ROAD_BITS:
        return (time << (_VID_BITS + _ROAD_BITS)) | (road << _VID_BITS) | vid
    # The bits of a road would run into those of the time. Number the pairs of time and road that occur.
    _, numbers = np.unique(np.stack([time, road]), axis=1, return_inverse=True)
    return (numbers.reshape(-1).astype(np.int64) << _VID_BITS) | vid


def later_equals(keys: Int64s) -> Int64s:
    """Indices of the keys that occurred before.

    >>> later_equals(np.array([5, 7, 5, 5])).tolist()
    [2, 3]
    """
    # Sorting values is several times faster than sorting indices, and most chunks repeat nothing.
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.empty(0, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    return np.sort(order[1:][keys[order][1:] == keys[order][:-1]])


def out_of_order(times: Ints, last: int | None, following: int | None) -> Bytes:
    """Apply the sequential time rules to well-formed rows: 0 accepted, 1 goes back, 2 leaps ahead.

    `last` is the Time of the last accepted row before these, `following` the Time of the row after them.

    >>> out_of_order(np.array([10, 500, 9, 11, 300, 301]), None, None).tolist()
    [0, 2, 1, 0, 0, 0]
    """
    verdict = np.zeros(len(times), dtype=np.uint8)
    if not len(times):
        return verdict
    before = np.concatenate([[times[0] if last is None else last], times[:-1]])
    # Rows are nearly always in order, so few of them are looked at one by one.
    suspicious = np.flatnonzero((times < before) | (times > before + LEAP))
    i = 0
    # All rows before a suspicious one are accepted, so its predecessor's Time is the last accepted one.
    while (k := np.searchsorted(suspicious, i)) < len(suspicious):
        i = int(suspicious[k])
        i = _walk(times, verdict, i, int(before[i]), following) + 1
    return verdict


def _walk(times: Ints, verdict: Bytes, i: int, last: int, following: int | None) -> int:
    """Refuse rows from `i` on until one is accepted again; returns its index."""
    while i < len(times):
        # A refused row does not move `last`, so the whole run of smaller times goes at once.
        if times[i] < last:
            until = _first_at_least(times, i, last)
            verdict[i:until] = _BACK
            i = until
        elif times[i] > last + LEAP and _is_above_next(times, i, following):
            verdict[i] = _LEAPS
            i += 1
        else:
            break
    return i


def _is_above_next(times: Ints, i: int, following: int | None) -> bool:
    upcoming = int(times[i + 1]) if i + 1 < len(times) else following
    return upcoming is not None and bool(times[i] > upcoming + LEAP)


def _first_at_least(times: Ints, i: int, least: int) -> int:
    """The first index from `i` on with times >= least, in growing windows, since runs are mostly short."""
    width = 16
    while i < len(times):
        at = np.flatnonzero(times[i : i + width] >= least)
        if len(at):
            return i + int(at[0])
        i, width = i + width, width * 4
    return len(times)


def as_table(chunk: Chunk, **more: Bools | Int32s) -> pa.Table:
    """A chunk as an Arrow table that SQL can read without a copy."""
    columns = {name: pa.array(values) for name, values in zip(COLUMNS, chunk.columns, strict=True)}
    return pa.table(columns | {name: pa.array(values) for name, values in more.items()})


def malformed(con: duckdb.DuckDBPyConnection, chunk: Chunk) -> dict[int, str]:
    """The rows that break a rule of a single row, and why."""
    row = np.arange(len(chunk.readable), dtype=np.int32)
    con.register("chunk", as_table(chunk, readable=chunk.readable, row=row))
    rows = con.execute(f"SELECT row, why FROM (SELECT row, {WHY} AS why FROM chunk) WHERE why IS NOT NULL")
    return dict(rows.fetchall())


@dataclass
class _Waiting:
    chunk: Chunk
    why: dict[int, str]
    formed: Bools


def sieve(
    con: duckdb.DuckDBPyConnection, source: Iterator[Chunk], gate: Gate | None = None
) -> Iterator[tuple[Chunk, Bools, list[Refused]]]:
    """Each chunk with the mask of its accepted rows and the list of its refused ones.

    The leap rule looks at the next row, so a chunk waits until one with a well-formed row follows. `gate`
    knows the rows before the source. When a chunk comes out, it also knows that chunk, and none after it.
    """
    gate = gate or Gate()
    waiting: list[_Waiting] = []
    for chunk in source:
        why = malformed(con, chunk)
        formed = np.ones(len(chunk.readable), dtype=bool)
        formed[list(why)] = False
        # A chunk without a well-formed row has no "next row", so several chunks may wait.
        if formed.any():
            following = int(chunk.columns[_TIME][np.argmax(formed)])
            yield from (_judged(gate, earlier, following) for earlier in waiting)
            waiting = []
        waiting.append(_Waiting(chunk, why, formed))
    yield from (_judged(gate, earlier, None) for earlier in waiting)


def _judged(gate: Gate, waiting: _Waiting, following: int | None) -> tuple[Chunk, Bools, list[Refused]]:
    accepted, why = gate.accept(waiting.chunk, waiting.formed, following)
    return waiting.chunk, accepted, _listed(waiting.chunk, waiting.why | why)


def _listed(chunk: Chunk, why: dict[int, str]) -> list[Refused]:
    at = chunk.first_line
    return [Refused(chunk.file.name, at + row, why[row], chunk.raw(row)) for row in sorted(why)]
