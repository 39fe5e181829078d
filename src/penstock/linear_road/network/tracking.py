"""Vehicle tracking: which report begins a trip, enters a segment, leaves one, or stands still.

Meaning: docs/linear-road-semantics.md, "Trips". Idea: the previous report of a vehicle is the one exactly 30
s earlier, so the state consists of the last minute's reports, second by second. A second is one part of the
state: a train writes the seconds it brought and drops those a minute old. Vehicles that break the 30 s rhythm
are rare; they are looked up in all seconds of the minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from penstock.linear_road.network.tables import column, find, index, spans, start
from penstock.linear_road.rows.arrays import Codes, Int32s, Int64s, Ints

PRODUCES = (
    "Second TIMESTAMP, VID INT, XWay INT, Dir INT, Lane INT, Seg INT, Pos INT, Spd INT, Moves TINYINT, "
    "Stops TINYINT, SegLeft INT, Quoted INT, Before INT, BeforeSpd INT"
)
"""`Moves`: 1 the vehicle enters its segment (and is quoted the toll), 2 it has left `SegLeft`, where it was
quoted the toll at time `Quoted`; 3 both. `Stops`: 2 the vehicle has stood for four reports, 1 it no longer
does. `Before` and `BeforeSpd`: number and sum of speeds of its earlier reports from this segment in this
minute."""

ENTERS, LEAVES = 1, 2
FREED, STOPPED = 1, 2
_SECOND, _MINUTE, _STEP = 1_000_000, 60, 30
_FEET = 5280  # of a segment
_EXIT = 4  # the exit lane; lanes 1 to 3 are travel lanes
_STANDS = 4  # after this many reports in a row from one position, the vehicle is stopped
_MOST = 7  # a count of still reports above 4 need not be exact
_KEPT = ("VID", "XWay", "Dir", "Lane", "Seg", "Pos", "Spd")

# One report packed into 64 bits, from the lowest: how often the vehicle has reported from this position (4
# bits), when it was last quoted a toll, plus 1 (24), speed (8), lane (4), position (24).
_QUOTED_AT, _SPD_AT, _LANE_AT, _POS_AT = 4, 28, 36, 40
_QUOTED_MASK, _SPD_MASK, _LANE_MASK, _COUNT_MASK = 0xFFFFFF, 0xFF, 0xF, 7
_OUT_OF_STEP, _IN_BETWEEN = 1, 2


class Bucket(NamedTuple):
    """The reports of one second: `keys` vehicle and road, `facts` packed, `slots` an index of the keys."""

    keys: Int64s
    facts: Int64s
    slots: Int32s


class _Reports(NamedTuple):
    """The columns of one second's reports, in the order of `_KEPT`."""

    vid: Ints
    xway: Ints
    direction: Ints
    lane: Ints
    seg: Ints
    pos: Ints
    spd: Ints


class _Packed(NamedTuple):
    """The reports of the current second as its bucket will hold them."""

    keys: Int64s
    facts: Int64s


class _Outcome(NamedTuple):
    """What is found about each report; `look`: whether it needs a closer look."""

    moves: Codes
    stops: Codes
    left: Int32s
    quoted: Int32s
    before: Int32s
    before_spd: Int32s
    look: Codes

    @classmethod
    def empty(cls, rows: int) -> _Outcome:
        moves, stops, look = (np.zeros(rows, np.int8) for _ in range(3))
        left, quoted, before, before_spd = (np.zeros(rows, np.int32) for _ in range(4))
        return cls(moves, stops, left, quoted, before, before_spd, look)

    def cut(self, rows: slice) -> _Outcome:
        """A view of some rows: writing to it writes here."""
        return _Outcome(
            self.moves[rows],
            self.stops[rows],
            self.left[rows],
            self.quoted[rows],
            self.before[rows],
            self.before_spd[rows],
            self.look[rows],
        )


class _Age(NamedTuple):
    """How far back a second of the last minute lies."""

    near: bool
    """Less than 30 s."""
    this_minute: bool
    step: bool
    """Exactly 30 s."""


NOBODY = Bucket(np.zeros(0, np.int64), np.zeros(0, np.int64), np.full(2, -1, np.int32))


class Tracking:
    """The vehicles of one partition."""

    def __init__(self) -> None:
        self._buckets: dict[int, Bucket] = {}
        self._parts: Mapping[str, pa.Table] = {}
        self._seconds: set[int] = set()
        self._odd: dict[int, int] = {}  # vehicles out of step, and when that was last seen
        self._changed: dict[str, pa.Table | None] = {}

    # -- state

    def changes(self) -> dict[str, pa.Table | None]:
        """The seconds that came and went."""
        changed, self._changed = self._changed, {}
        return changed

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        """Restore the seconds; each is read when a vehicle is looked for in it."""
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
            self._buckets[second] = Bucket(
                column(rows, "key").view(np.int64),
                column(rows, "facts").view(np.int64),
                column(slots, "slot").view(np.int32),
            )
        return self._buckets[second]

    def _add(self, second: int, bucket: Bucket) -> None:
        self._buckets[second] = bucket
        self._seconds.add(second)
        # The index is a part of its own: a worker that takes over need not build it again.
        self._changed[f"s/{second}"] = pa.table({"key": bucket.keys, "facts": bucket.facts})
        self._changed[f"i/{second}"] = pa.table({"slot": bucket.slots})
        for old in [s for s in self._seconds if s <= second - _MINUTE]:
            self._seconds.discard(old)
            self._buckets.pop(old, None)
            self._changed |= {f"s/{old}": None, f"i/{old}": None}

    # -- work

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> pa.Table:  # noqa: ARG002 - protocol
        """Reports in, the same reports out with what tracking found."""
        reports = inputs[0]
        seconds = column(reports, "Second")
        outcome = _Outcome.empty(len(seconds))
        columns = _Reports(*(column(reports, name) for name in _KEPT))
        for first, last in spans(seconds):
            rows = slice(first, last)
            of_second = _Reports(*(values[rows] for values in columns))
            self._second(int(seconds[first]) // _SECOND, of_second, outcome.cut(rows))
        return _table(reports, outcome)

    def _second(self, t: int, reports: _Reports, outcome: _Outcome) -> None:
        same_minute = t - _STEP >= t // _MINUTE * _MINUTE
        rows = len(reports.vid)
        packed = _Packed(np.empty(rows, np.int64), np.empty(rows, np.int64))
        _follow(t, same_minute, reports, self._bucket(t - _STEP), packed, outcome)
        self._look(t, packed, reports.seg, outcome)
        slots, twice = index(packed.keys)
        if twice:
            _set_apart(packed, outcome)
        # Last, because the steps above may still reset counts of still reports in `packed`.
        self._add(t, Bucket(packed.keys, packed.facts, slots))

    def _look(self, t: int, packed: _Packed, segs: Ints, outcome: _Outcome) -> None:
        """Handle the rare reports: trips that begin, vehicles that stand still, vehicles out of step."""
        rows = np.flatnonzero(outcome.look)
        if self._odd:
            known = np.fromiter(self._odd, np.int64, len(self._odd))
            rows = np.union1d(rows, np.flatnonzero(np.isin(packed.keys, known)))
        if not len(rows):
            return
        seen = np.zeros((4, len(rows)), np.int32)
        minute = t // _MINUTE * _MINUTE
        for second in self._seconds:
            if t - _MINUTE < second < t:
                age = _Age(second > t - _STEP, second >= minute, second == t - _STEP)
                _meet(rows, packed.keys, segs, self._bucket(second), age, seen)
        self._judge(t, rows, packed, seen, outcome)

    def _judge(self, t: int, rows: Int64s, packed: _Packed, seen: Int32s, outcome: _Outcome) -> None:
        flags, stood, before, spd = seen
        # `_follow` has counted only the report of 30 s ago. Here all reports of this minute are counted.
        outcome.before[rows], outcome.before_spd[rows] = before, spd
        # A report in between means that the four latest are not 30 s apart, so the count of still reports
        # restarts.
        broken = rows[(flags & _IN_BETWEEN) > 0]
        packed.facts[broken] = (packed.facts[broken] & ~np.int64(_COUNT_MASK)) | 1
        outcome.stops[broken] = 0
        # After the reset above: a vehicle that stood must be freed, or its stay would last up to 30 s.
        outcome.stops[rows[stood > 0]] = FREED
        self._remember_odd(t, packed.keys[rows[(flags & _OUT_OF_STEP) > 0]].tolist())

    def _remember_odd(self, t: int, keys: list[int]) -> None:
        """Look vehicles out of step up again in the next two minutes."""
        self._odd |= dict.fromkeys(keys, t)
        old = [key for key, at in self._odd.items() if at <= t - 2 * _MINUTE]
        for key in old:
            del self._odd[key]
        if old or keys:
            odd = {"key": list(self._odd), "seen": list(self._odd.values())}
            self._changed["odd"] = pa.table({n: pa.array(v, pa.int64()) for n, v in odd.items()})


def _set_apart(packed: _Packed, outcome: _Outcome) -> None:
    """Reset vehicles that report from two roads in one second: their four latest are not 30 s apart."""
    _, same, times = np.unique(packed.keys >> 32, return_inverse=True, return_counts=True)
    tied = times[same] > 1
    # 0 and not 1: no report of this second can be the first of four.
    packed.facts[tied] &= ~np.int64(_COUNT_MASK)
    outcome.stops[tied & (outcome.stops > 0)] = FREED


def _table(reports: pa.Table, outcome: _Outcome) -> pa.Table:
    return pa.table(
        {
            **{name: reports.column(name) for name in ("Second", *_KEPT)},
            "Moves": outcome.moves,
            "Stops": outcome.stops,
            "SegLeft": outcome.left,
            "Quoted": outcome.quoted,
            "Before": outcome.before,
            "BeforeSpd": outcome.before_spd,
        }
    )


@njit(cache=True, nogil=True, inline="always")
def _pack(pos: int, lane: int, spd: int, quoted: int, count: int) -> np.int64:
    """Pack everything of a report that the next report needs into one number.

    `quoted` is -1 if no toll was quoted here.
    """
    return (
        (np.int64(pos) << _POS_AT)
        | (np.int64(lane) << _LANE_AT)
        | (np.int64(spd) << _SPD_AT)
        | (np.int64(quoted + 1) << _QUOTED_AT)
        | count
    )


@njit(cache=True, nogil=True, inline="always")
def _key(vid: int, xway: int, direction: int) -> np.int64:
    """The vehicle in the upper half, the road in the lower one."""
    return (np.int64(vid) << 32) | (np.int64(xway) << 1) | np.int64(direction)


@njit(cache=True, nogil=True)
def _follow(
    t: int, same_minute: bool, reports: _Reports, earlier: Bucket, packed: _Packed, outcome: _Outcome
) -> None:
    """Find each report's previous one, 30 s earlier, and record what has happened in between."""
    following, known = 0, len(earlier.keys)
    for i in range(len(reports.vid)):
        lane, seg, pos = reports.lane[i], reports.seg[i], reports.pos[i]
        key = _key(reports.vid[i], reports.xway[i], reports.direction[i])
        packed.keys[i] = key
        quoted, count = -1, 1
        # Vehicles mostly report in the order of 30 s ago, so look there first: that is already in the cache.
        j = following
        if j >= known or earlier.keys[j] != key:
            j = find(key, earlier.keys, earlier.slots)
        if j < 0:
            # A trip begins, or the vehicle is out of step: `_look` finds out which.
            outcome.look[i] = 1
            if lane != _EXIT:
                outcome.moves[i] = ENTERS
                quoted = t
        else:
            following = j + 1
            old = earlier.facts[j]
            old_pos, old_lane = old >> _POS_AT, (old >> _LANE_AT) & _LANE_MASK
            old_quoted, old_count = ((old >> _QUOTED_AT) & _QUOTED_MASK) - 1, old & _COUNT_MASK
            old_seg = old_pos // _FEET
            # The previous trip ended on the exit lane, so this report begins another one.
            first = old_lane == _EXIT and lane != _EXIT
            moved = old_seg != seg
            # A vehicle that was quoted a toll pays it on leaving the segment.
            if moved and not first and old_quoted >= 0:
                outcome.moves[i] = LEAVES
                outcome.left[i], outcome.quoted[i] = old_seg, old_quoted
            if lane != _EXIT and (first or moved):
                outcome.moves[i] |= ENTERS
                quoted = t
            # Also on the exit lane: who crosses from there into the next segment still pays.
            elif not moved:
                quoted = old_quoted
            # Four reports in a row from one position of a travel lane: the vehicle has stopped.
            if 1 <= lane < _EXIT and old_lane == lane and old_pos == pos:
                count = min(old_count + 1, _MOST)
                # `_look` must see whether the vehicle has reported from elsewhere in between.
                outcome.look[i] = 1
                if count >= _STANDS:
                    outcome.stops[i] = STOPPED
            elif old_count >= _STANDS:
                outcome.stops[i] = FREED
            if same_minute and not moved:
                outcome.before[i] = 1
                outcome.before_spd[i] = (old >> _SPD_AT) & _SPD_MASK
        packed.facts[i] = _pack(pos, lane, reports.spd[i], quoted, count)


@njit(cache=True, nogil=True)
def _meet(rows: Int64s, keys: Int64s, segs: Ints, earlier: Bucket, age: _Age, seen: Int32s) -> None:
    """Look for the vehicles of some reports in another second of the last minute.

    `seen`, a column for each report: 0 flags (out of step, a report in between), 1 whether it stood there, 2
    and 3 number and speeds of its reports from the same road segment in this minute.
    """
    size = len(earlier.slots)
    for r in range(len(rows)):
        key = keys[rows[r]]
        # The index hashes the vehicle alone, so all its reports of a second lie in one chain of slots.
        slot = start(key, size)
        while earlier.slots[slot] >= 0:
            j = earlier.slots[slot]
            slot = (slot + 1) & (size - 1)
            if earlier.keys[j] >> 32 != key >> 32:
                continue
            # From any road: the four latest reports are the vehicle's, wherever it drives.
            if age.near:
                seen[0, r] |= _IN_BETWEEN
                if earlier.facts[j] & _COUNT_MASK >= _STANDS:
                    seen[1, r] = 1
            # The rest concerns this road only, since trips and statistics belong to one road.
            if earlier.keys[j] == key:
                if not age.step:
                    seen[0, r] |= _OUT_OF_STEP
                if age.this_minute and (earlier.facts[j] >> _POS_AT) // _FEET == segs[rows[r]]:
                    seen[2, r] += 1
                    seen[3, r] += (earlier.facts[j] >> _SPD_AT) & _SPD_MASK
