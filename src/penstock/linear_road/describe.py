"""`penstock lr describe`: what is in an input, ours or foreign.

Idea: read the rows once in their order, half a minute at a time. Every vehicle reports every 30 s, so a report's previous one lies in the
half minute before, at the same second of it: a look-up in one sorted table finds trips, crossings and stopped
vehicles. Minutes are then folded into statistics and tolls (`describe_minutes`). This is a counter for getting to
know data; whether answers are right is for the validator, which shares nothing with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from penstock.linear_road.describe_minutes import Accident, HalfMinute, MinuteFigures, Minutes
from penstock.linear_road.inputs import Input, open_input
from penstock.linear_road.reading import RefusedRow, Rows, refused_rows, seconds_of, size_of
from penstock.linear_road.refusals import REASONS
from penstock.linear_road.rows import REPORT_EVERY, TYPES

Progress = Callable[[str, int, int], None]
SHOWN = 10
"""How many of the rows that break the format are shown."""
_SECONDS = 10_800


@dataclass(frozen=True)
class Description:
    """All figures of an input."""

    name: str
    counts: dict[int, int]
    rate: np.ndarray
    """Reports by second, up to the last one."""
    vehicles: int
    trips: int
    second_trips: int
    second_trips_elsewhere: int
    trips_not_from_ramp: int
    lanes: np.ndarray
    speeds: np.ndarray
    """Reports by speed 0..100, lanes 1..3."""
    entrances: np.ndarray
    exits: np.ndarray
    """Trips by segment of their first report, and of their report on the exit ramp."""
    minutes: MinuteFigures
    accidents: tuple[Accident, ...]
    dirt: dict[str, int]
    first_dirt: tuple[RefusedRow, ...]


def describe(path: Path, progress: Progress = lambda _step, _done, _of: None) -> Description:
    """Read an input (a generated directory or one flat file) and count what is in it."""
    source = open_input(path)
    dirt, tally, minutes = _Dirt(source), _Tally(), Minutes()
    for half in _half_minutes(_with_progress(source, progress), dirt, tally):
        tally.add(half, minutes.add(half))
    return tally.finish(Path(path).name, minutes, dirt)


def _with_progress(source: Input, progress: Progress) -> Iterator[Rows]:
    total = size_of(source)
    for rows in seconds_of(source):
        yield rows
        progress("describe", rows.following, total)


class _Dirt:
    """What was refused so far: counts by reason and the first ten rows."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.counts: Counter[str] = Counter()
        self.first: list[RefusedRow] = []

    def add(self, rows: Rows) -> None:
        assert rows.reasons is not None
        for code, count in zip(*np.unique(rows.reasons[rows.reasons > 0], return_counts=True), strict=True):
            self.counts[REASONS[int(code)]] += int(count)
        self.first += refused_rows(self.source, rows, SHOWN - len(self.first))


def _half_minutes(blocks: Iterator[Rows], dirt: _Dirt, tally: _Tally) -> Iterator[HalfMinute]:
    """The accepted reports, half a minute at a time; requests are only counted."""
    held: list[np.ndarray] = []
    for rows in blocks:
        dirt.add(rows)
        values = rows.accepted()
        tally.count(values[:, 0])
        reports = values[values[:, 0] == 0].astype(np.int64)
        cuts = np.flatnonzero(np.diff(reports[:, 1] // REPORT_EVERY)) + 1
        for start, end in pairwise([0, *cuts.tolist(), len(reports)]):
            part = reports[start:end]
            if held and start < end and _half(part) != _half(held[0]):
                yield HalfMinute.sort(_half(held[0]), np.concatenate(held))
                held = []
            if start < end:
                held.append(part)
    if held:
        yield HalfMinute.sort(_half(held[0]), np.concatenate(held))


def _half(reports: np.ndarray) -> int:
    return int(reports[0, 1]) // REPORT_EVERY


class _Tally:
    """Figures that need no minute: counts, rates, trips."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.rate = np.zeros(_SECONDS + REPORT_EVERY, np.int64)
        self.lanes = np.zeros(5, np.int64)
        self.speeds = np.zeros(101, np.int64)
        self.entrances = np.zeros(100, np.int64)
        self.exits = np.zeros(100, np.int64)
        self.trips_not_from_ramp = 0
        self.trips: list[np.ndarray] = []

    def count(self, types: np.ndarray) -> None:
        for kind, count in zip(*np.unique(types, return_counts=True), strict=True):
            self.counts[int(kind)] += int(count)

    def add(self, half: HalfMinute, first: np.ndarray) -> None:
        start = half.number * REPORT_EVERY
        self.rate[start : start + REPORT_EVERY] += np.bincount(half.time - start, minlength=REPORT_EVERY)
        self.lanes += np.bincount(half.lane, minlength=5)
        travelling = (half.lane >= 1) & (half.lane <= 3)
        self.speeds += np.bincount(half.speed[travelling], minlength=101)
        self.entrances += np.bincount(half.seg[first], minlength=100)
        self.exits += np.bincount(half.seg[half.lane == 4], minlength=100)
        self.trips_not_from_ramp += int(np.count_nonzero(half.lane[first] != 0))
        self.trips.append(np.stack([half.vid[first], half.xway[first]]))

    def finish(self, name: str, minutes: Minutes, dirt: _Dirt) -> Description:
        trips = np.concatenate([np.empty((2, 0), np.int64), *self.trips], axis=1)
        vehicles, each = np.unique(trips[0], return_counts=True)
        elsewhere = len(np.unique(trips, axis=1).T) - len(vehicles)
        figures = minutes.finish()
        return Description(
            name=name,
            counts={kind: self.counts[kind] for kind in TYPES},
            rate=self.rate[: int(np.max(np.flatnonzero(self.rate), initial=-1)) + 1],
            vehicles=len(vehicles),
            trips=trips.shape[1],
            second_trips=int(np.sum(each - 1)),
            second_trips_elsewhere=elsewhere,
            trips_not_from_ramp=self.trips_not_from_ramp,
            lanes=self.lanes,
            speeds=self.speeds,
            entrances=self.entrances,
            exits=self.exits,
            minutes=figures,
            accidents=minutes.accidents(),
            dirt=dict(dirt.counts),
            first_dirt=tuple(dirt.first),
        )
