"""Minute by minute: cars, speeds, accidents, tolls and alerts of an input, for `describe`.

Idea: count by the definitions of docs/linear-road-semantics.md, with sorted arrays. A vehicle is stopped at
its fourth equal report. Two vehicles stopped at one place at one time are an accident. The minutes before a
notice determine its toll.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from penstock.linear_road.rows.arrays import Bools, Floats, Int64s, Ints
from penstock.linear_road.rows.csv_rows import DIR_FIELD, TIME_FIELD, VID_FIELD, XWAY_FIELD
from penstock.linear_road.rows.fields import EXIT_LANE, FEET_PER_SEGMENT, REPORT_EVERY, SEGMENTS

_NOTHING = np.empty(0, np.int64)
_STANDS = 4
"""Equal reports in a row after which a vehicle is stopped."""
_LOOK_BACK, _DOWNSTREAM = 5, 5
"""Minutes that determine a toll, and segments ahead (its own included) whose accident warns a vehicle."""
_SLOW, _CROWDED = 40, 50
"""There is a toll below this average velocity, if there are more cars than this."""
_MOST_CARS = 2000

Location = tuple[int, int, int, int]
"""Expressway, direction, lane, position."""

_Number = TypeVar("_Number", np.int64, np.floating, np.bool_)


@dataclass(frozen=True)
class HalfMinute:
    """The reports of 30 seconds, sorted by vehicle (expressway, direction, VID) and second."""

    number: int
    key: Int64s
    time: Int64s
    vid: Int64s
    speed: Int64s
    xway: Int64s
    lane: Int64s
    way: Int64s
    seg: Int64s
    pos: Int64s

    @staticmethod
    def sort(number: int, values: Int64s) -> HalfMinute:
        """Sort rows [row, column] of type 0."""
        second = values[:, TIME_FIELD] - number * REPORT_EVERY
        # One number encodes a vehicle and a second of the half minute. The same number half a minute later is
        # the vehicle's next report.
        vehicle = ((values[:, XWAY_FIELD] * 2 + values[:, DIR_FIELD]) << 31) | values[:, VID_FIELD]
        wide = bool(np.any(values[:, XWAY_FIELD] >= 1 << 25))
        key = vehicle * 32 + second if not wide else _dense(vehicle, second)
        order = np.argsort(key, kind="stable")
        time, vid, speed, xway, lane, way, seg, pos = (values[order, i] for i in range(1, 9))
        return HalfMinute(
            number=number,
            key=key[order],
            time=time,
            vid=vid,
            speed=speed,
            xway=xway,
            lane=lane,
            way=way,
            seg=seg,
            pos=pos,
        )


def _dense(vehicle: Int64s, second: Int64s) -> Int64s:
    """Keys for expressway numbers too large to multiply.

    A hash is good enough for getting to know such data.
    """
    return np.asarray(((vehicle * np.int64(0x9E3779B97F4A7C1)) & np.int64((1 << 57) - 1)) * 32 + second)


@dataclass(frozen=True)
class Accident:
    """An accident found in the data; `cleared` is the first second without it."""

    xway: int
    dir: int
    lane: int
    pos: int
    vehicles: tuple[int, ...]
    detected: int
    cleared: int


@dataclass
class MinuteFigures:
    """Figures by minute (index 0 is minute 1)."""

    notices: list[int] = field(default_factory=list)
    tolled: list[int] = field(default_factory=list)
    toll_sum: list[int] = field(default_factory=list)
    alerts: list[int] = field(default_factory=list)
    mean_speed: list[float] = field(default_factory=list)
    speed_map: list[Floats] = field(default_factory=list)
    """Mean speed [direction, segment] over the expressways; nan where nobody drives."""
    toll_map: list[Floats] = field(default_factory=list)
    """Mean toll quoted [direction, segment]; nan where no notice was sent."""
    cars: Int64s = field(default_factory=lambda: np.zeros(_MOST_CARS, np.int64))
    """Segment minutes by the number of cars in them."""


@dataclass(frozen=True)
class _Minute:
    """What later minutes need to know of this one: arrays over road segments."""

    number: int
    cars: Int64s
    speed: Floats
    accident: Bools


class Minutes:
    """Folds half minutes, in order, into minutes."""

    def __init__(self) -> None:
        self.figures = MinuteFigures()
        self._roads: dict[int, int] = {}
        self._before: HalfMinute | None = None
        self._run_before = _NOTHING
        self._open: list[tuple[HalfMinute, Int64s, Bools]] = []
        self._past: list[_Minute] = []
        self._stopped: dict[Location, list[tuple[int, int]]] = defaultdict(list)

    def add(self, half: HalfMinute) -> Bools:
        """Take the next half minute; returns which of its reports are the first of a trip."""
        if self._open and self._open[0][0].number // 2 != half.number // 2:
            self._close()
        reported, at = self._previous(half)
        before_lane, before_seg, same = self._compare(half, reported, at)
        first = ~reported | ((before_lane == EXIT_LANE) & (half.lane != EXIT_LANE))
        trigger = (half.lane != EXIT_LANE) & (first | (before_seg != half.seg))
        run = np.ones(len(half.key), np.int64)
        run[same] = self._run_before[at[same]] + 1
        self._note_stopped(half, np.flatnonzero(run >= _STANDS))
        road = self._road(half)
        self._open.append((half, road, trigger))
        self._before, self._run_before = half, run
        return np.asarray(first)

    def finish(self) -> MinuteFigures:
        """Close the last minute."""
        if self._open:
            self._close()
        return self.figures

    def accidents(self) -> tuple[Accident, ...]:
        """All accidents, in order of detection."""
        accidents = [
            accident for location, stops in self._stopped.items() for accident in _accidents(location, stops)
        ]
        return tuple(sorted(accidents, key=lambda a: (a.detected, a.xway, a.dir)))

    def _previous(self, half: HalfMinute) -> tuple[Bools, Int64s]:
        """Which vehicles reported half a minute ago, and the row of that report."""
        before = self._before
        if before is None or before.number != half.number - 1 or not len(before.key):
            return np.zeros(len(half.key), np.bool_), np.zeros(len(half.key), np.int64)
        at = np.minimum(np.searchsorted(before.key, half.key), len(before.key) - 1)
        return before.key[at] == half.key, at

    def _compare(self, half: HalfMinute, reported: Bools, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
        """Lane and segment of the report before, and whether the vehicle has not moved since."""
        before = self._before
        if before is None or not reported.any():
            nothing = np.full(len(half.key), -1, np.int64)
            return nothing, nothing, np.zeros(len(half.key), np.bool_)
        # Where nobody reported before, `at` points at another vehicle. `reported` tells the two apart.
        lane, seg = before.lane[at], before.seg[at]
        travelling = (half.lane >= 1) & (half.lane <= 3)
        return lane, seg, reported & travelling & (lane == half.lane) & (before.pos[at] == half.pos)

    def _note_stopped(self, half: HalfMinute, rows: Int64s) -> None:
        for i in rows.tolist():
            location = (int(half.xway[i]), int(half.way[i]), int(half.lane[i]), int(half.pos[i]))
            self._stopped[location].append((int(half.time[i]), int(half.vid[i])))

    def _road(self, half: HalfMinute) -> Int64s:
        """A dense number for each (expressway, direction, segment): expressways in order of appearance."""
        xways, at = np.unique(half.xway, return_inverse=True)
        dense = np.array([self._roads.setdefault(int(x), len(self._roads)) for x in xways], np.int64)
        return np.asarray((dense[at] * 2 + half.way) * SEGMENTS + half.seg)

    def _close(self) -> None:
        """Fold the open minute into figures."""
        number = self._open[0][0].number // 2 + 1
        roads = 2 * SEGMENTS * len(self._roads)
        road = np.concatenate([road for _, road, _ in self._open])
        speed = np.concatenate([half.speed for half, _, _ in self._open])
        vid = np.concatenate([half.vid for half, _, _ in self._open])
        cars, mean = _cars(road, vid, speed, roads)
        noticed = np.concatenate([road[trigger] for _, road, trigger in self._open])
        self._skip_to(number)
        # Before this minute joins the past: its tolls follow from earlier minutes alone.
        self._notices(number, noticed, roads)
        self._past = [*self._past, _Minute(number, cars, mean, self._accident_roads(number, roads))][
            -_LOOK_BACK:
        ]
        self._speeds(road, speed, roads)
        self.figures.cars += np.bincount(np.minimum(cars[cars > 0], _MOST_CARS - 1), minlength=_MOST_CARS)
        self._open = []

    def _skip_to(self, number: int) -> None:
        """Add empty minutes: a minute without any report still counts."""
        nothing = np.full((2, SEGMENTS), np.nan)
        figures = self.figures
        while len(figures.notices) < number - 1:
            for column in (figures.notices, figures.tolled, figures.toll_sum, figures.alerts):
                column.append(0)
            figures.mean_speed.append(float("nan"))
            figures.speed_map.append(nothing)
            figures.toll_map.append(nothing)

    def _notices(self, number: int, noticed: Int64s, roads: int) -> None:
        toll, alert = self._tolls(number, roads)
        counts = np.bincount(noticed, minlength=roads)
        figures = self.figures
        figures.notices.append(len(noticed))
        figures.tolled.append(int(counts[toll > 0].sum()))
        figures.toll_sum.append(int((counts * toll).sum()))
        figures.alerts.append(int(counts[alert].sum()))
        figures.toll_map.append(_by_direction(counts * toll, counts))

    def _tolls(self, number: int, roads: int) -> tuple[Int64s, Bools]:
        """Toll and alert of each road segment in a minute, from the five minutes before it."""
        past = [minute for minute in self._past if minute.number >= number - _LOOK_BACK]
        last = [minute for minute in past if minute.number == number - 1]
        speeds = np.stack(
            [_widen(minute.speed, roads, np.nan) for minute in past] or [np.full(roads, np.nan)]
        )
        known = (~np.isnan(speeds)).sum(axis=0)
        # A mean of whole numbers may come out a hair below the number it is.
        lav = np.floor(np.nansum(speeds, axis=0) / np.maximum(known, 1) + 1e-9)
        lav[known == 0] = -1
        cars = _widen(last[0].cars, roads, 0) if last else np.zeros(roads, np.int64)
        alert = _upstream(_widen(last[0].accident, roads, fill=False)) if last else np.zeros(roads, np.bool_)
        toll = np.where((lav < _SLOW) & (cars > _CROWDED) & ~alert, 2 * (cars - _CROWDED) ** 2, 0)
        return toll, alert

    def _accident_roads(self, number: int, roads: int) -> Bools:
        """Which road segments have an accident at some second of a minute."""
        start, end = (number - 1) * 60, number * 60
        there = np.zeros(roads, np.bool_)
        for (xway, way, _, pos), stops in self._stopped.items():
            # A stop holds for 30 s, so earlier ones cannot reach into this minute.
            recent = [stop for stop in stops if start - REPORT_EVERY < stop[0] < end]
            if any(since < end and until > start for since, until, _ in _overlaps(recent)):
                there[(self._roads[xway] * 2 + way) * SEGMENTS + pos // FEET_PER_SEGMENT] = True
        return there

    def _speeds(self, road: Int64s, speed: Int64s, roads: int) -> None:
        self.figures.mean_speed.append(float(speed.mean()))
        total = np.bincount(road, speed, minlength=roads)
        self.figures.speed_map.append(_by_direction(total, np.bincount(road, minlength=roads)))


def _cars(road: Int64s, vid: Int64s, speed: Int64s, roads: int) -> tuple[Int64s, Floats]:
    """Distinct vehicles of each road segment, and the mean of their mean speeds (nan if there are none)."""
    # Sorted by segment and vehicle, the reports of a vehicle in a segment are neighbours.
    order = np.lexsort((vid, road))
    road, vid, speed = road[order], vid[order], speed[order]
    new = np.concatenate([[True], (np.diff(road) != 0) | (np.diff(vid) != 0)])
    starts = np.flatnonzero(new)
    means = np.add.reduceat(speed, starts) / np.diff(np.append(starts, len(road)))
    cars = np.bincount(road[starts], minlength=roads)
    total = np.bincount(road[starts], means, minlength=roads)
    return cars, np.where(cars > 0, total / np.maximum(cars, 1), np.nan)


def _widen(values: npt.NDArray[_Number], size: int, fill: float) -> npt.NDArray[_Number]:
    """Widen an array: earlier minutes may have seen fewer expressways."""
    return np.concatenate([values, np.full(size - len(values), fill, values.dtype)])


def _upstream(accident: Bools) -> Bools:
    """Road segments with an accident 0..4 segments downstream."""
    there = accident.reshape(-1, 2, SEGMENTS)
    warned = there.copy()
    # Downstream is towards higher segments in direction 0, towards lower ones in direction 1.
    for i in range(1, _DOWNSTREAM):
        warned[:, 0, :-i] |= there[:, 0, i:]
        warned[:, 1, i:] |= there[:, 1, :-i]
    return warned.reshape(-1)


def _by_direction(total: Ints | Floats, count: Ints) -> Floats:
    """Mean by direction and segment over the expressways."""
    sums, counts = (values.reshape(-1, 2, SEGMENTS).sum(axis=0) for values in (total, count))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _overlaps(stops: list[tuple[int, int]]) -> list[tuple[int, int, tuple[int, int]]]:
    """When two vehicles are stopped at once: since, until (excluded), who. A report holds for 30 s."""
    spans = []
    for i, (t1, vid1) in enumerate(stops):
        for t2, vid2 in stops[i + 1 :]:
            if vid1 != vid2 and abs(t1 - t2) < REPORT_EVERY:
                spans.append((max(t1, t2), min(t1, t2) + REPORT_EVERY, (vid1, vid2)))
    return sorted(spans)


def _accidents(location: Location, stops: list[tuple[int, int]]) -> list[Accident]:
    """The accidents at one location: overlaps that follow each other without a gap are one."""
    spans = _overlaps(stops)
    gaps = [i + 1 for i, (a, b) in enumerate(pairwise(spans)) if b[0] > a[1]]
    groups = [spans[i:j] for i, j in pairwise([0, *gaps, len(spans)]) if i < j]
    return [
        Accident(
            *location,
            vehicles=tuple(sorted({vid for _, _, who in group for vid in who})),
            detected=group[0][0],
            cleared=max(until for _, until, _ in group),
        )
        for group in groups
    ]
