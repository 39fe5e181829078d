"""The desk of the vehicle-keyed peer: segments, tolls, accidents and accounts in plain Python.

Vehicles are followed by Spark's state (`spark_vehicles`); what they meet in a segment concerns all of them,
and is kept here, where every micro-batch passes. Arasu et al., "Linear Road", VLDB 2004,
section 3.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Segment = tuple[int, int, int]
"""Expressway, direction, segment."""


@dataclass
class _Stop:
    vid: int
    since: int
    until: int


@dataclass
class Desk:
    """Takes events in order of time and gives answers: lists of fields by type, without Emit."""

    history: Any
    cars: dict[tuple[Segment, int], dict[int, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    stops: dict[tuple[int, int, int, int, int], list[_Stop]] = field(
        default_factory=lambda: defaultdict(list)
    )
    standing: dict[int, _Stop] = field(default_factory=dict)
    accounts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.quote = lru_cache(maxsize=None)(self._quote)
        self.accident = lru_cache(maxsize=None)(self._accident)
        self.average = lru_cache(maxsize=None)(self._average)

    def answer(self, events: Iterable[Any]) -> dict[int, list[tuple[int, ...]]]:
        """Answer events (rows of `spark_vehicles.EVENTS`) that are sorted by time, reports first."""
        answers: dict[int, list[tuple[int, ...]]] = {kind: [] for kind in range(5)}
        for event in events:
            if event.type == 0:
                self._report(event, answers)
            elif event.type == 2:
                answers[2].append((event.time, event.time, event.qid, self._balance(event.vid, event.time)))
            elif event.type == 3:
                spent = self.history.spent(event.vid, event.xway, event.day)
                answers[3].append((event.time, event.qid, spent))
            else:
                journey = self.history.travel(event.xway, event.sinit, event.send, event.dow, event.tod)
                answers[4].append((event.time, event.qid, *journey))
        return answers

    def _report(self, e: Any, answers: dict[int, list[tuple[int, ...]]]) -> None:
        minute, segment = e.time // 60 + 1, (e.xway, e.dir, e.seg)
        self._stand(e, segment)
        seen = self.cars[segment, minute].setdefault(e.vid, [0, 0])
        seen[0] += e.spd
        seen[1] += 1
        if not e.first and e.seg != e.from_seg and e.quoted > 0:
            self._charge(e.vid, e.time, self.quote((e.xway, e.dir, e.from_seg), e.quoted)[1])
        if e.entered and e.lane != 4:
            lav, toll, accident = self.quote(segment, minute)
            answers[0].append((e.vid, e.time, lav, toll))
            if accident is not None:
                answers[1].append((e.time, e.vid, accident))

    def _stand(self, e: Any, segment: Segment) -> None:
        if e.vid in self.standing:
            stop = self.standing.pop(e.vid)
            stop.until = min(stop.until, e.time)
        if e.stopped:
            stop = _Stop(e.vid, e.time, e.time + 30)
            self.stops[(*segment, e.lane, e.pos)].append(stop)
            self.standing[e.vid] = stop

    def _charge(self, vid: int, time: int, toll: int) -> None:
        account = self.accounts.setdefault(vid, [(-1, 0)])
        account.append((time, account[-1][1] + toll))

    def _balance(self, vid: int, time: int) -> int:
        account = self.accounts.get(vid, [(-1, 0)])
        return account[bisect_right(account, (time, math.inf)) - 1][1]

    def _average(self, segment: Segment, minute: int) -> tuple[int, float] | None:
        """Cars and Avgs of a minute that is over; None without data."""
        cars = self.cars.get((segment, minute))
        if not cars:
            return None
        return len(cars), sum(speed / count for speed, count in cars.values()) / len(cars)

    def _quote(self, segment: Segment, minute: int) -> tuple[int, int, int | None]:
        """Lav, toll and the nearest accident; all from minutes that are over."""
        past = [mean for m in range(minute - 5, minute) if (mean := self.average(segment, m)) is not None]
        lav = math.floor(sum(avgs for _, avgs in past) / len(past) + 1e-9) if past else -1
        before = self.average(segment, minute - 1)
        cars, accident = (before[0] if before else 0), self._nearest(segment, minute - 1)
        toll = 2 * (cars - 50) ** 2 if lav < 40 and cars > 50 and accident is None else 0
        return lav, toll, accident

    def _nearest(self, segment: Segment, minute: int) -> int | None:
        xway, way, seg = segment
        ahead = [min(seg + i, 99) if way == 0 else max(seg - i, 0) for i in range(5)]
        return next((at for at in ahead if self.accident((xway, way, at), minute)), None)

    def _accident(self, segment: Segment, minute: int) -> bool:
        begin, end = (minute - 1) * 60, minute * 60
        for where, stops in self.stops.items():
            if where[:3] != segment:
                continue
            near = [stop for stop in stops if stop.since < end and stop.until > begin]
            if any(_meet(a, b, begin, end) for i, a in enumerate(near) for b in near[i + 1 :]):
                return True
        return False


def _meet(a: _Stop, b: _Stop, begin: int, end: int) -> bool:
    return a.vid != b.vid and max(a.since, b.since, begin) < min(a.until, b.until, end)
