"""Accidents: two vehicles stopped at one location (docs/linear-road-semantics.md, "Accidents").

Idea: tracking says which vehicles stand and which have moved on. Each stay is an interval of seconds. A
segment has an accident in a minute if two stays at one location share a second of it. There are few of
them, so this is plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.linear_road.network.tables import column
from penstock.linear_road.network.tracking import STOPPED

PRODUCES = "Second TIMESTAMP, XWay INT, Dir INT, Seg INT"
"""There was an accident in the road segment in the minute before `Second`."""

NOW = "now"
"""The figure of this box: how many accidents there are."""

_SECOND, _MINUTE = 1_000_000, 60
_SILENCE = 30
"""Seconds after which a standing vehicle must report again; without a report it no longer stands."""
_UTC = pa.timestamp("us", tz="UTC")
Location = tuple[int, int, int, int, int]
"""Expressway, direction, lane, position, segment."""

Ended = list[tuple[int, Location]]
"""Accidents of minutes that are over: the second at which the minute ended, and where."""


@dataclass
class Stay:
    """A vehicle stands from `since` until before `until`, as far as is known."""

    vid: int
    location: Location
    since: int
    until: int


class Accidents:
    """The standing vehicles of one partition."""

    def __init__(self) -> None:
        self._stays: list[Stay] = []
        self._minute = -1  # the open one, counted from 0
        self._moved = False
        self._now = 0  # the newest second, for `figures`

    def figures(self) -> dict[str, int]:
        """How many accidents there are after this train."""
        return {NOW: len(_crowded(self._stays, self._now, self._now + 1))}

    def changes(self) -> dict[str, pa.Table | None]:
        """All stays, if any came, went or grew."""
        if not self._moved:
            return {}
        self._moved = False
        rows = [(s.vid, *s.location, s.since, s.until) for s in self._stays]
        names = ("vid", "xway", "dir", "lane", "pos", "seg", "since", "until")
        stays = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(names)}
        return {"stays": pa.table(stays), "minute": pa.table({"minute": [self._minute]})}

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        if "stays" not in parts:
            return
        rows = zip(*(c.to_pylist() for c in parts["stays"].columns), strict=True)
        self._stays = [Stay(vid, tuple(location), since, until) for vid, *location, since, until in rows]
        self._minute = int(column(parts["minute"], "minute")[0])

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> pa.Table:
        """Take reports of vehicles that stand or stood.

        For each minute that ends, return where its accidents were.
        """
        ended: Ended = []
        names = ("Second", "VID", "Stops", "XWay", "Dir", "Lane", "Pos", "Seg")
        rows = zip(*(column(inputs[0], name).tolist() for name in names), strict=True)
        for second, vid, stops, xway, direction, lane, pos, seg in rows:
            t = second // _SECOND
            self._pass(t // _MINUTE, ended)
            self._report(t, vid, stops, (xway, direction, lane, pos, seg))
        # Alerts need the minute before. After the end there is no alert, so the open minute stays open.
        if not final:
            self._now = until // _SECOND
            # At `until` itself nothing has come yet, so the minute that begins there stays closed.
            self._pass((until - 1) // _SECOND // _MINUTE, ended)
        return _table(ended)

    def _report(self, t: int, vid: int, stops: int, location: Location) -> None:
        self._moved = True
        mine = [stay for stay in self._stays if stay.vid == vid and stay.until >= t]
        # A report 30 s after the last one from there extends the stay. Any other ends the stays so far.
        same = [stay for stay in mine if stay.location == location and stay.until == t]
        if stops == STOPPED and same:
            same[0].until = t + _SILENCE
            return
        for stay in mine:
            stay.until = min(stay.until, t)
        if stops == STOPPED:
            self._stays.append(Stay(vid, location, t, t + _SILENCE))

    def _pass(self, minute: int, ended: Ended) -> None:
        """Let minutes pass until this one is open; adds their accidents to `ended`."""
        # Where nobody stands, minutes pass without a look: none of them has an accident.
        if self._minute < 0 or not self._stays:
            self._moved |= self._minute != minute
            self._minute = max(minute, self._minute)
        while self._minute < minute:
            begin, end = self._minute * _MINUTE, (self._minute + 1) * _MINUTE
            ended += [(end, location) for location in _crowded(self._stays, begin, end)]
            self._stays = [stay for stay in self._stays if stay.until > end]
            self._minute += 1
            self._moved = True


def _crowded(stays: Iterable[Stay], begin: int, end: int) -> list[Location]:
    """The locations where two vehicles stand in one second of begin..end-1.

    >>> here = (0, 0, 1, 5300, 1)
    >>> _crowded([Stay(1, here, 10, 70), Stay(2, here, 65, 95)], 60, 120)
    [(0, 0, 1, 5300, 1)]
    >>> _crowded([Stay(1, here, 10, 70), Stay(2, here, 70, 95)], 60, 120)
    []
    """
    by_location: dict[Location, list[Stay]] = {}
    for stay in stays:
        if stay.since < end and stay.until > begin:
            by_location.setdefault(stay.location, []).append(stay)
    return [location for location, there in by_location.items() if _together(there, begin, end)]


def _together(stays: list[Stay], begin: int, end: int) -> bool:
    return any(
        max(a.since, b.since, begin) < min(a.until, b.until, end)
        for i, a in enumerate(stays)
        for b in stays[i + 1 :]
        if a.vid != b.vid
    )


def _table(ended: Ended) -> pa.Table:
    seconds = pa.array([end * _SECOND for end, _ in ended], pa.int64()).cast(_UTC)
    numbers = {
        name: pa.array([location[at] for _, location in ended], pa.int32())
        for name, at in (("XWay", 0), ("Dir", 1), ("Seg", 4))
    }
    return pa.table({"Second": seconds, **numbers})
