"""TollHistory: what each vehicle paid each day, found by driving it through the SegmentHistory of that day.

Idea: a vehicle keeps its habits. The stretch it drives in the input is its stretch of every day. It leaves at
its own time: a morning commuter who comes back in the evening, an evening traveller, or any time. It skips
some days, mostly at weekends, and in each segment pays the toll of that day and minute. So the sums are as
plausible as the segment tolls. All randomness is a hash of (seed, vehicle, expressway, day): neither order,
chunk size nor number of cores changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numba import njit

from penstock.linear_road.rows.arrays import Int32s, Int64s
from penstock.linear_road.rows.csv_rows import DIR_FIELD, SEG_FIELD, TYPE_FIELD, VID_FIELD, XWAY_FIELD
from penstock.linear_road.rows.fields import POSITION_REPORT, SEGMENTS
from penstock.linear_road.traffic.segment_history import MINUTES, WEEKEND, dow

_WORKDAY_TRIP, _WEEKEND_TRIP = 0.85, 0.4
_MORNING, _EVENING = 0.5, 0.3
"""Shares of commuters, who drive out in the morning and back in the evening, and of evening travellers."""

_TO_WORK, _HOMEWARD, _DAY_BEGINS = 480, 1050, 360
"""Minutes of the day: 8:00, 17:30 and 6:00."""
_TO_WORK_SPREAD, _HOMEWARD_SPREAD, _DAY_LENGTH, _JITTER = 90, 120, 960, 10
"""Minutes by which departures spread around these."""

_DRIVEN = [XWAY_FIELD, VID_FIELD, DIR_FIELD, SEG_FIELD, SEG_FIELD]
"""What a stretch is made of; the segment twice, to become its lowest and its highest."""


@dataclass(frozen=True)
class Stretches:
    """The vehicles of one expressway (sorted by VID) and the stretch each of them drives in the input."""

    vid: Int32s
    direction: Int32s
    entry: Int32s
    leave: Int32s


def stretches(blocks: Iterable[Int32s]) -> dict[int, Stretches]:
    """The stretches in blocks of input rows, by expressway.

    A vehicle seen in both directions keeps its longer stretch.
    """
    driven = np.zeros((0, len(_DRIVEN)), np.int64)
    for values in blocks:
        reports = values[values[:, TYPE_FIELD] == POSITION_REPORT][:, _DRIVEN].astype(np.int64)
        # Merge block by block: memory then grows with the vehicles, not with their reports.
        driven = _merged(np.concatenate([driven, _merged(reports)]))
    return {int(xway): _stretches_of(driven[driven[:, 0] == xway]) for xway in np.unique(driven[:, 0])}


def _merged(rows: Int64s) -> Int64s:
    """One row for each (xway, vid, dir), with the lowest and highest segment."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    first = np.flatnonzero(np.r_[True, (rows[1:, :3] != rows[:-1, :3]).any(axis=1)])
    merged = rows[first]
    merged[:, 3] = np.minimum.reduceat(rows[:, 3], first)
    merged[:, 4] = np.maximum.reduceat(rows[:, 4], first)
    return merged


def _stretches_of(rows: Int64s) -> Stretches:
    # Sort by vehicle, then longest stretch first. The first row of each vehicle is the one to keep.
    rows = rows[np.lexsort((rows[:, 2], rows[:, 3] - rows[:, 4], rows[:, 1]))]
    rows = rows[np.r_[True, rows[1:, 1] != rows[:-1, 1]]]
    east = rows[:, 2] == 0
    entry = np.where(east, rows[:, 3], rows[:, 4])
    leave = np.where(east, rows[:, 4], rows[:, 3])
    return Stretches(*(column.astype(np.int32) for column in (rows[:, 1], rows[:, 2], entry, leave)))


def spent(seed: int, xway: int, where: Stretches, day: int, lav: Int32s, toll: Int32s) -> Int32s:
    """What each vehicle paid on a day.

    `lav` and `toll` by direction, minute and segment (all -1: no such direction).
    """
    out = np.zeros(len(where.vid), np.int32)
    weekend = dow(day) in WEEKEND
    of_vehicles = (where.vid, where.direction, where.entry, where.leave)
    _spent((seed, xway, day), weekend, of_vehicles, lav, toll, out)
    return out


@njit(cache=True, nogil=True)
def _chance(seed: int, vid: int, xway: int, day: int, draw: int) -> float:
    """A number in [0, 1) that depends on its arguments only (splitmix64)."""
    # A hash and no generator: a generator would tie each draw to the order of the draws before it.
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(vid)
    for part in (xway, day, draw):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = (x ^ (x >> np.uint64(31))) + np.uint64(part + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.float64((x ^ (x >> np.uint64(27))) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True)
def _bell(seed: int, vid: int, xway: int, day: int, draw: int) -> float:
    """Three draws make a bell curve: mean 0, standard deviation 1/2, never beyond 1.5."""
    total = 0.0
    for k in range(3):
        total += _chance(seed, vid, xway, day, draw + k)
    return total - 1.5


@njit(cache=True, nogil=True)
def trip_toll(lav: Int32s, toll: Int32s, minute: float, entry: int, leave: int) -> int:
    """The tolls of the segments from `entry` to before `leave`, each at the vehicle's arrival minute."""
    step = 1 if leave >= entry else -1
    total = 0
    segment = entry
    while segment != leave:
        at = int(minute) % MINUTES
        total += toll[at, segment]
        minute += 60.0 / max(lav[at, segment], 1)
        segment += step
    return total


@njit(cache=True, nogil=True)
def _spent(
    of_day: tuple[int, int, int],
    weekend: bool,
    of_vehicles: tuple[Int32s, Int32s, Int32s, Int32s],
    lav: Int32s,
    toll: Int32s,
    out: Int32s,
) -> None:
    """Compiled code takes plain tuples: (seed, xway, day), and the columns of `Stretches`."""
    seed, xway, day = of_day
    vid, direction, entry, leave = of_vehicles
    # Each decision has draws of its own (0, 1, 2-4, 5, 6-8, 9-11, 12-14), so none depends on another.
    travels = _WEEKEND_TRIP if weekend else _WORKDAY_TRIP
    for i in range(len(vid)):
        if _chance(seed, vid[i], xway, day, 0) >= travels:
            continue
        way = direction[i]
        # Habits do not depend on the day (day 0); small deviations do.
        kind = _chance(seed, vid[i], xway, 0, 1)
        jitter = _JITTER * _bell(seed, vid[i], xway, day, 2)
        if weekend or kind >= _MORNING + _EVENING:
            minute = _DAY_BEGINS + _DAY_LENGTH * _chance(seed, vid[i], xway, 0, 5)
        elif kind < _MORNING:
            minute = _TO_WORK + _TO_WORK_SPREAD * _bell(seed, vid[i], xway, 0, 6)
        else:
            minute = _HOMEWARD + _HOMEWARD_SPREAD * _bell(seed, vid[i], xway, 0, 9)
        out[i] = trip_toll(lav[way], toll[way], minute + jitter, entry[i], leave[i])
        # A Lav of -1 means that the expressway has no such direction, so nobody can come back on it.
        if not weekend and kind < _MORNING and lav[1 - way, 0, 0] >= 0:
            back = _HOMEWARD + _HOMEWARD_SPREAD * _bell(seed, vid[i], xway, 0, 12) + jitter
            out[i] += trip_toll(lav[1 - way], toll[1 - way], back, leave[i], entry[i])


def nowhere() -> tuple[Int32s, Int32s]:
    """(lav, toll) of a missing direction, as half an expressway has one."""
    return np.full((MINUTES, SEGMENTS), -1, np.int32), np.zeros((MINUTES, SEGMENTS), np.int32)
