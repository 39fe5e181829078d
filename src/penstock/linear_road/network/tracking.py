"""Vehicle tracking: which report begins a trip, enters a segment, leaves one, or stands still (docs/linear-road-semantics.md, "Trips").

Idea: the previous report of a vehicle is the one exactly 30 s earlier, so the state is the reports of the last minute, second by
second. A second is one part of the state: a train writes the seconds it brought and lets go of those a minute old, whatever
else there is. Vehicles out of step with their 30 s are rare and looked up in all seconds of the minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from penstock.linear_road.network.tables import Array, column, find, index, spans, start

PRODUCES = (
    "Second TIMESTAMP, VID INT, XWay INT, Dir INT, Lane INT, Seg INT, Pos INT, Spd INT, Moves TINYINT, Stops TINYINT, "
    "SegLeft INT, Quoted INT, Before INT, BeforeSpd INT"
)
"""`Moves`: 1 it enters its segment (and is told the toll), 2 it has left `SegLeft`, where it was told the toll at time `Quoted`;
3 both. `Stops`: 2 its vehicle stands since four reports, 1 it does so no longer. `Before` and `BeforeSpd`: number and sum of speeds of the
vehicle's earlier reports from this road segment in this minute."""

ENTERS, LEAVES = 1, 2
FREED, STOPPED = 1, 2
_SECOND, _MINUTE, _STEP = 1_000_000, 60, 30
_EXIT = 4
_MOST = 7  # a count of still reports above 4 need not be exact
_KEPT = ("VID", "XWay", "Dir", "Lane", "Seg", "Pos", "Spd")


@dataclass(frozen=True)
class Bucket:
    """The reports of one second: `keys` vehicle and road, `facts` packed (see `_pack`), `slots` the index of the keys."""

    keys: Array
    facts: Array
    slots: Array


NOBODY = Bucket(np.zeros(0, np.int64), np.zeros(0, np.int64), np.full(2, -1, np.int32))


class Tracking:
    """The vehicles of one partition."""

    def __init__(self) -> None:
        self._buckets: dict[int, Bucket] = {}
        self._parts: Mapping[str, Any] = {}
        self._seconds: set[int] = set()
        self._odd: dict[int, int] = {}  # vehicles out of step, and when that was last seen
        self._changed: dict[str, Any] = {}

    # -- state

    def changes(self) -> dict[str, Any]:
        """The seconds that came and went."""
        changed, self._changed = self._changed, {}
        return changed

    def restore(self, parts: Mapping[str, Any]) -> None:
        """A second is read when a vehicle is looked for in it."""
        self._parts = parts
        self._seconds = {int(name.removeprefix("s/")) for name in parts if name.startswith("s/")}
        if "odd" in parts:
            odd = parts["odd"]
            self._odd = dict(zip(column(odd, "key").tolist(), column(odd, "seen").tolist(), strict=True))

    def _bucket(self, second: int) -> Bucket:
        if second not in self._seconds:
            return NOBODY
        if second not in self._buckets:
            rows, slots = self._parts[f"s/{second}"], self._parts[f"i/{second}"]
            self._buckets[second] = Bucket(column(rows, "key"), column(rows, "facts"), column(slots, "slot"))
        return self._buckets[second]

    def _add(self, second: int, bucket: Bucket) -> None:
        self._buckets[second] = bucket
        self._seconds.add(second)
        self._changed[f"s/{second}"] = pa.table({"key": bucket.keys, "facts": bucket.facts})
        self._changed[f"i/{second}"] = pa.table({"slot": bucket.slots})
        for old in [s for s in self._seconds if s <= second - _MINUTE]:
            self._seconds.discard(old)
            self._buckets.pop(old, None)
            self._changed |= {f"s/{old}": None, f"i/{old}": None}

    # -- work

    def process(self, inputs: list[Any], until: int, final: bool) -> pa.Table:  # noqa: ARG002
        """Reports in, the same reports out with what is to be known about them."""
        reports = inputs[0]
        seconds = column(reports, "Second")
        found = _Found.of(len(seconds))
        values = {name: column(reports, name) for name in _KEPT}
        for first, last in spans(seconds):
            rows = slice(first, last)
            self._second(
                int(seconds[first]) // _SECOND, {n: v[rows] for n, v in values.items()}, found.cut(rows)
            )
        return _table(reports, found)

    def _second(self, t: int, rows: dict[str, Array], found: _Found) -> None:
        before = self._bucket(t - _STEP)
        same_minute = t - _STEP >= t // _MINUTE * _MINUTE
        keys, facts = np.empty(len(rows["VID"]), np.int64), np.empty(len(rows["VID"]), np.int64)
        _follow(  # type: ignore[call-arg]
            t, same_minute, *(rows[name] for name in _KEPT), before.keys, before.facts, before.slots, keys, facts,
            found.moves, found.stops, found.left, found.quoted, found.before, found.spd, found.look,
        )  # fmt: skip
        self._look(t, keys, facts, rows["Seg"], found)
        slots, twice = index(keys)
        if twice:
            _set_apart(keys, facts, found)
        self._add(t, Bucket(keys, facts, slots))

    def _look(self, t: int, keys: Array, facts: Array, segs: Array, found: _Found) -> None:
        """The rare ones: trips that begin, vehicles that stand still, vehicles out of step."""
        rows = np.flatnonzero(found.look)
        if self._odd:
            known = np.fromiter(self._odd, np.int64, len(self._odd))
            rows = np.union1d(rows, np.flatnonzero(np.isin(keys, known)))
        if not len(rows):
            return
        seen = np.zeros((4, len(rows)), np.int32)
        minute = t // _MINUTE * _MINUTE
        for second in self._seconds:
            if t - _MINUTE < second < t:
                bucket = self._bucket(second)
                near, here = second > t - _STEP, second >= minute
                _meet(
                    rows,
                    keys,
                    segs,
                    bucket.keys,
                    bucket.facts,
                    bucket.slots,
                    near,
                    here,
                    second == t - _STEP,
                    seen,
                )
        self._judge(t, rows, keys, facts, seen, found)

    def _judge(self, t: int, rows: Array, keys: Array, facts: Array, seen: Array, found: _Found) -> None:
        out_of_step, stood, before, spd = seen
        found.before[rows], found.spd[rows] = before, spd
        # a report in between: the four latest are not 30 s apart
        broken = rows[(out_of_step & 2) > 0]
        facts[broken] = (facts[broken] & ~np.int64(7)) | 1
        found.stops[broken] = 0
        found.stops[rows[stood > 0]] = FREED
        for key in keys[rows[(out_of_step & 1) > 0]].tolist():
            self._odd[key] = t
        old = [key for key, at in self._odd.items() if at <= t - 2 * _MINUTE]
        for key in old:
            del self._odd[key]
        if old or (out_of_step & 1).any():
            odd = {"key": list(self._odd), "seen": list(self._odd.values())}
            self._changed["odd"] = pa.table({n: pa.array(v, pa.int64()) for n, v in odd.items()})


def _set_apart(keys: Array, facts: Array, found: _Found) -> None:
    """Vehicles that report from two roads in one second: no four reports 30 s apart have such a one among them."""
    _, same, times = np.unique(keys >> 32, return_inverse=True, return_counts=True)
    tied = times[same] > 1
    facts[tied] &= ~np.int64(7)
    found.stops[tied & (found.stops > 0)] = FREED


@dataclass(frozen=True)
class _Found:
    """What is found out about each report."""

    moves: Array
    stops: Array
    left: Array
    quoted: Array
    before: Array
    spd: Array
    look: Array

    @classmethod
    def of(cls, rows: int) -> _Found:
        moves, stops, look = (np.zeros(rows, np.int8) for _ in range(3))
        left, quoted, before, spd = (np.zeros(rows, np.int32) for _ in range(4))
        return cls(moves, stops, left, quoted, before, spd, look)

    def cut(self, rows: slice) -> _Found:
        return _Found(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def _table(reports: Any, found: _Found) -> pa.Table:
    kept = {name: reports.column(name) for name in ("Second", *_KEPT)}
    return pa.table({
        "Second": kept["Second"], **kept, "Moves": found.moves, "Stops": found.stops, "SegLeft": found.left,
        "Quoted": found.quoted, "Before": found.before, "BeforeSpd": found.spd,
    })  # fmt: skip


@njit(cache=True, nogil=True, inline="always")
def _pack(pos: int, lane: int, spd: int, quoted: int, count: int) -> Any:
    """Everything of a report that its follower needs, in one number; `quoted` is -1 if no toll was told here."""
    return (
        (np.int64(pos) << 40)
        | (np.int64(lane) << 36)
        | (np.int64(spd) << 28)
        | (np.int64(quoted + 1) << 4)
        | count
    )


@njit(cache=True, nogil=True)
def _follow(
    t: int, same_minute: bool, vid: Array, xway: Array, direction: Array, lane: Array, seg: Array, pos: Array,
    spd: Array, old_keys: Array, old_facts: Array, old_slots: Array, keys: Array, facts: Array, moves: Array,
    stops: Array, left: Array, quoted: Array, before: Array, before_spd: Array, look: Array,
) -> None:  # fmt: skip
    """Find each report's previous one and say what has happened in between."""
    for i in range(len(vid)):
        key: Any = (np.int64(vid[i]) << 32) | (np.int64(xway[i]) << 1) | np.int64(direction[i])
        keys[i] = key
        told, count = -1, 1
        j = find(key, old_keys, old_slots)
        if j < 0:
            look[i] = 1
            if lane[i] != 4:
                moves[i] = 1
                told = t
        else:
            old = old_facts[j]
            old_pos, old_lane = old >> 40, (old >> 36) & 15
            old_told, old_count = ((old >> 4) & 0xFFFFFF) - 1, old & 7
            old_seg = old_pos // 5280
            first = old_lane == 4 and lane[i] != 4
            moved = old_seg != seg[i]
            if moved and not first and old_told >= 0:
                moves[i] = 2
                left[i], quoted[i] = old_seg, old_told
            if lane[i] != 4 and (first or moved):
                moves[i] |= 1
                told = t
            elif not moved:
                told = old_told
            if 1 <= lane[i] <= 3 and old_lane == lane[i] and old_pos == pos[i]:
                count = min(old_count + 1, 7)
                look[i] = 1
                if count >= 4:
                    stops[i] = 2
            elif old_count >= 4:
                stops[i] = 1
            if same_minute and not moved:
                before[i] = 1
                before_spd[i] = (old >> 28) & 255
        facts[i] = _pack(pos[i], lane[i], spd[i], told, count)


@njit(cache=True, nogil=True)
def _meet(
    rows: Array, keys: Array, segs: Array, old_keys: Array, old_facts: Array, old_slots: Array, near: bool,
    here: bool, step: bool, seen: Array,
) -> None:  # fmt: skip
    """Look for the vehicles of some reports in another second of the last minute.

    `seen`: 0 bits: 1 out of step, 2 a report in between; 1 stood there; 2 and 3 number and speeds of reports from the same road
    segment in this minute. `near`: less than 30 s ago; `here`: in this minute; `step`: exactly 30 s ago.
    """
    size = len(old_slots)
    for r in range(len(rows)):
        key = keys[rows[r]]
        slot = start(key, size)
        while old_slots[slot] >= 0:
            j = old_slots[slot]
            slot = (slot + 1) & (size - 1)
            if old_keys[j] >> 32 != key >> 32:
                continue
            if near:
                seen[0, r] |= 2
                if old_facts[j] & 7 >= 4:
                    seen[1, r] = 1
            if old_keys[j] == key:
                if not step:
                    seen[0, r] |= 1
                if here and (old_facts[j] >> 40) // 5280 == segs[rows[r]]:
                    seen[2, r] += 1
                    seen[3, r] += (old_facts[j] >> 28) & 255
