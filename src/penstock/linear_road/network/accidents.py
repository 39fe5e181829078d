"""Accidents: two vehicles stopped at one place (docs/linear-road-semantics.md, "Accidents").

Idea: tracking tells which vehicles stand and which have moved on. Each stay is an interval of seconds. A
segment has an accident in a minute if two stays at one place share a second of it. There are few of them, so
this is plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.linear_road.network.tables import column
from penstock.linear_road.network.tracking import STOPPED

PRODUCES = "Second TIMESTAMP, XWay INT, Dir INT, Seg INT"
"""There was an accident in the road segment in the minute before `Second`."""

_SECOND, _MINUTE, _SILENCE = 1_000_000, 60, 30
_UTC = pa.timestamp("us", tz="UTC")
Place = tuple[int, int, int, int, int]  # expressway, direction, lane, position, segment


@dataclass
class Stay:
    """A vehicle stands from `since` until before `until`, as far as is known."""

    vid: int
    place: Place
    since: int
    until: int


class Accidents:
    """The standing vehicles of one partition."""

    def __init__(self) -> None:
        self._stays: list[Stay] = []
        self._minute = -1  # the open one, counted from 0
        self._moved = False

    def changes(self) -> dict[str, Any]:
        """All stays, if any came, went or grew."""
        if not self._moved:
            return {}
        self._moved = False
        rows = [(s.vid, *s.place, s.since, s.until) for s in self._stays]
        names = ("vid", "xway", "dir", "lane", "pos", "seg", "since", "until")
        stays = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(names)}
        return {"stays": pa.table(stays), "minute": pa.table({"minute": [self._minute]})}

    def restore(self, parts: Mapping[str, Any]) -> None:
        if "stays" not in parts:
            return
        rows = zip(*(c.to_pylist() for c in parts["stays"].columns), strict=True)
        self._stays = [Stay(vid, tuple(place), since, until) for vid, *place, since, until in rows]
        self._minute = int(column(parts["minute"], "minute")[0])

    def process(self, inputs: list[Any], until: int, final: bool) -> pa.Table:
        """Take reports of vehicles that stand or stood.

        For each minute that ends, return where its accidents were.
        """
        told: list[tuple[int, Place]] = []
        names = ("Second", "VID", "Stops", "XWay", "Dir", "Lane", "Pos", "Seg")
        for second, vid, stops, *place in zip(*(column(inputs[0], n).tolist() for n in names), strict=True):
            t = second // _SECOND
            self._pass(t // _MINUTE, told)
            self._report(t, vid, stops, tuple(place))
        if not final:
            self._pass((until - 1) // _SECOND // _MINUTE, told)
        return _table(told)

    def _report(self, t: int, vid: int, stops: int, place: Place) -> None:
        self._moved = True
        mine = [stay for stay in self._stays if stay.vid == vid and stay.until >= t]
        if stops == STOPPED and any(stay.place == place and stay.until == t for stay in mine):
            next(stay for stay in mine if stay.place == place and stay.until == t).until = t + _SILENCE
            return
        for stay in mine:
            stay.until = min(stay.until, t)
        if stops == STOPPED:
            self._stays.append(Stay(vid, place, t, t + _SILENCE))

    def _pass(self, minute: int, told: list[tuple[int, Place]]) -> None:
        """Let minutes pass until this one is open."""
        if self._minute < 0 or not self._stays:
            self._moved |= self._minute != minute
            self._minute = max(minute, self._minute)
        while self._minute < minute:
            begin, end = self._minute * _MINUTE, (self._minute + 1) * _MINUTE
            told += [(end, place) for place in _crowded(self._stays, begin, end)]
            self._stays = [stay for stay in self._stays if stay.until > end]
            self._minute += 1
            self._moved = True


def _crowded(stays: Iterable[Stay], begin: int, end: int) -> list[Place]:
    """The places where two vehicles stand in one second of begin..end-1.

    >>> here = (0, 0, 1, 5300, 1)
    >>> _crowded([Stay(1, here, 10, 70), Stay(2, here, 65, 95)], 60, 120)
    [(0, 0, 1, 5300, 1)]
    >>> _crowded([Stay(1, here, 10, 70), Stay(2, here, 70, 95)], 60, 120)
    []
    """
    by_place: dict[Place, list[Stay]] = {}
    for stay in stays:
        if stay.since < end and stay.until > begin:
            by_place.setdefault(stay.place, []).append(stay)
    return [place for place, found in by_place.items() if _together(found, begin, end)]


def _together(stays: list[Stay], begin: int, end: int) -> bool:
    return any(
        max(a.since, b.since, begin) < min(a.until, b.until, end)
        for i, a in enumerate(stays)
        for b in stays[i + 1 :]
        if a.vid != b.vid
    )


def _table(told: list[tuple[int, Place]]) -> pa.Table:
    seconds = pa.array([end * _SECOND for end, _ in told], pa.int64()).cast(_UTC)
    numbers = {
        name: pa.array([place[at] for _, place in told], pa.int32())
        for name, at in (("XWay", 0), ("Dir", 1), ("Seg", 4))
    }
    return pa.table({"Second": seconds, **numbers})
