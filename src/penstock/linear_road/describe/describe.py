"""`penstock lr describe`: what is in an input, ours or foreign.

Idea: read the rows once in order, half a minute at a time. Every vehicle reports every 30 s, so a report's
previous one lies in the half minute before, at the same second of it. A look-up in one sorted table finds
trips, crossings and stopped vehicles. Minutes are then folded into statistics and tolls (`minutes`).
This module helps to get to know data. Whether answers are right is for the validator, which shares nothing
with it.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from penstock.linear_road.describe.minutes import Accident, HalfMinute, MinuteFigures, Minutes
from penstock.linear_road.rows.arrays import Bools, Int32s, Int64s
from penstock.linear_road.rows.csv_rows import TIME_FIELD, TYPE_FIELD
from penstock.linear_road.rows.fields import (
    ENTRANCE_LANE,
    EXIT_LANE,
    POSITION_REPORT,
    REPORT_EVERY,
    SEGMENTS,
    TYPES,
)
from penstock.linear_road.rows.inputs import Input, open_input
from penstock.linear_road.rows.partial_work import code_of, is_long, key_of, work_directory
from penstock.linear_road.rows.read_blocks import RefusedRow, Rows, refused_rows, seconds_of, size_of
from penstock.linear_road.rows.refusals import REASONS
from penstock.store.durable import whole_file

Progress = Callable[[str, int, int], None]
SHOWN = 10
"""How many of the rows that break the format are shown."""
_SECONDS, _TOP_SPEED = 10_800, 100


@dataclass(frozen=True)
class Description:
    """All figures of an input."""

    name: str
    counts: dict[int, int]
    rate: Int64s
    """Reports by second, up to the last one."""
    vehicles: int
    trips: int
    second_trips: int
    second_trips_elsewhere: int
    trips_not_from_ramp: int
    lanes: Int64s
    speeds: Int64s
    """Reports by speed 0..100, lanes 1..3."""
    entrances: Int64s
    exits: Int64s
    """Trips by segment of their first report, and of their report on the exit ramp."""
    minutes: MinuteFigures
    accidents: tuple[Accident, ...]
    dirt: dict[str, int]
    first_dirt: tuple[RefusedRow, ...]


def describe(
    path: Path, progress: Progress = lambda _step, _done, _of: None, work: Path | None = None
) -> Description:
    """Read an input (a generated directory or one flat file) and count what is in it.

    For a large input, intermediate counts are kept in a work directory (in `work`, which also keeps small
    ones). After a kill the same call resumes from there.
    """
    source = open_input(path)
    with _work(source, work) as directory:
        state = _resume(source, directory)
        _read(source, state, directory, progress)
    return state.finish(Path(path).name)


KEEP_SECONDS = 5.0
"""How much counting a kill may cost."""
_STATE = "counted.pickle"


def _work(source: Input, where: Path | None) -> AbstractContextManager[Path | None]:
    if where is None and not is_long(source):
        return nullcontext()
    return work_directory("describe", key_of(source.files, code_of(Path(__file__).parents[1])), where)


def _resume(source: Input, directory: Path | None) -> _State:
    """What an earlier run has counted, or nothing yet."""
    if directory is not None and (directory / _STATE).is_file():
        # Only we can write to the directory, so its pickle can be trusted.
        state: _State = pickle.loads((directory / _STATE).read_bytes())  # noqa: S301 - see above
        return state
    return _State(_Dirt(source))


def _read(source: Input, state: _State, directory: Path | None, progress: Progress) -> None:
    total, kept = size_of(source), time.monotonic()
    for rows in seconds_of(source, origin=state.origin, last=state.last):
        state.add(rows)
        progress("describe", rows.following, total)
        if directory is not None and time.monotonic() - kept >= KEEP_SECONDS:
            with whole_file(directory / _STATE) as file:
                file.write_bytes(pickle.dumps(state))
            kept = time.monotonic()


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


class _State:
    """All counts up to some row of the input."""

    def __init__(self, dirt: _Dirt) -> None:
        self.dirt = dirt
        self.counted, self.minutes = _Counts(), Minutes()
        self.held: list[Int64s] = []
        """Reports of the half minute that is not over yet."""
        self.origin, self.last = 0, -1

    def add(self, rows: Rows) -> None:
        """Count a block of whole seconds; requests are only counted."""
        assert rows.seconds is not None
        self.dirt.add(rows)
        values = rows.accepted()
        self.counted.count(values[:, TYPE_FIELD])
        reports = values[values[:, TYPE_FIELD] == POSITION_REPORT].astype(np.int64)
        # A block holds whole seconds, but may end or begin within a half minute.
        cuts = np.flatnonzero(np.diff(reports[:, TIME_FIELD] // REPORT_EVERY)) + 1
        for start, end in pairwise([0, *cuts.tolist(), len(reports)]):
            if start < end:
                self._hold(reports[start:end])
        self.origin, self.last = rows.following, int(rows.seconds[-1])

    def finish(self, name: str) -> Description:
        """Close the last half minute and return the figures."""
        self._close()
        return self.counted.finish(name, self.minutes, self.dirt)

    def _hold(self, part: Int64s) -> None:
        if self.held and _half(part) != _half(self.held[0]):
            self._close()
        self.held.append(part)

    def _close(self) -> None:
        if self.held:
            half = HalfMinute.sort(_half(self.held[0]), np.concatenate(self.held))
            self.counted.add(half, self.minutes.add(half))
            self.held = []


def _half(reports: Int64s) -> int:
    return int(reports[0, TIME_FIELD]) // REPORT_EVERY


class _Counts:
    """Figures that do not depend on minutes: counts, rates, trips."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.rate = np.zeros(_SECONDS + REPORT_EVERY, np.int64)
        self.lanes = np.zeros(EXIT_LANE + 1, np.int64)
        self.speeds = np.zeros(_TOP_SPEED + 1, np.int64)
        self.entrances = np.zeros(SEGMENTS, np.int64)
        self.exits = np.zeros(SEGMENTS, np.int64)
        self.trips_not_from_ramp = 0
        self.trips: list[Int64s] = []

    def count(self, types: Int32s) -> None:
        for kind, count in zip(*np.unique(types, return_counts=True), strict=True):
            self.counts[int(kind)] += int(count)

    def add(self, half: HalfMinute, first: Bools) -> None:
        start = half.number * REPORT_EVERY
        self.rate[start : start + REPORT_EVERY] += np.bincount(half.time - start, minlength=REPORT_EVERY)
        self.lanes += np.bincount(half.lane, minlength=EXIT_LANE + 1)
        travelling = (half.lane > ENTRANCE_LANE) & (half.lane < EXIT_LANE)
        self.speeds += np.bincount(half.speed[travelling], minlength=_TOP_SPEED + 1)
        self.entrances += np.bincount(half.seg[first], minlength=SEGMENTS)
        self.exits += np.bincount(half.seg[half.lane == EXIT_LANE], minlength=SEGMENTS)
        self.trips_not_from_ramp += int(np.count_nonzero(half.lane[first] != ENTRANCE_LANE))
        self.trips.append(np.stack([half.vid[first], half.xway[first]]))

    def finish(self, name: str, minutes: Minutes, dirt: _Dirt) -> Description:
        trips = np.concatenate([np.empty((2, 0), np.int64), *self.trips], axis=1)
        vehicles, each = np.unique(trips[0], return_counts=True)
        # A vehicle seen on two expressways makes two different pairs.
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
