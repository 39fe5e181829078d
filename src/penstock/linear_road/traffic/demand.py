"""Who wants to drive: the trips of one direction and the accidents of one expressway, before anything moves.

Idea: demand is drawn up front from a seed of its own, so the road (`movement`) only has to move vehicles.
Entrances are uniform over the ramps, exits normal around segment 50 with 20 miles standard deviation. The
direction follows from the two, as in the official data (Arasu et al., VLDB 2004, section 3.1.1 and the MITSIM
files). All places are in the direction of travel: on a westbound road, segment 0 here is segment 99 of the
expressway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.linear_road.rows.arrays import Floats, Int32s, Int64s
from penstock.linear_road.rows.fields import FEET_PER_SEGMENT, SEGMENTS

EXIT_MEAN, EXIT_SPREAD = 50.0, 20.0
ACCIDENT_EVERY = 1200
"""Seconds of the window in which each expressway gets one accident."""

# Vehicles entering one expressway per second, by time. The first 450 s follow the measured file. The rest is
# chosen so that three hours have about 150,000 vehicles.
_ENTRY_TIMES = (0.0, 120.0, 300.0, 450.0, 900.0, 1800.0, 10800.0)
_ENTRY_RATES = (10.3, 10.0, 9.3, 9.6, 11.0, 14.1, 15.2)

# Segments of travel where accidents happen. In the crowded middle, one accident would warn three times as
# many vehicles as in the official run (28,000 alerts in three hours).
_ACCIDENT_SEGMENTS = (*range(2, 10), *range(68, 92))


@dataclass(frozen=True)
class Trips:
    """The trips of one direction, in order of entry; places in feet along the direction of travel."""

    entry_time: Int32s
    entry_place: Floats
    exit_place: Floats
    entry_speed: Floats
    temper: Floats

    def __len__(self) -> int:
        return len(self.entry_time)


@dataclass(frozen=True)
class AccidentPlan:
    """An accident to come: earliest second, segment of travel, and time from detection to clearing."""

    dir: int
    start: int
    segment: int
    cleared_after: int


def entry_rate(t: Int64s) -> Floats:
    """Vehicles entering one expressway (both directions) per second at time `t`.

    >>> entry_rate(np.array([0, 10_000])).tolist()
    [10.3, 15.102222222222222]
    """
    return np.asarray(np.interp(t, _ENTRY_TIMES, _ENTRY_RATES))


def draw_trips(rng: np.random.Generator, seconds: int) -> Trips:
    """Draw the trips of one direction over `seconds`."""
    times = _entry_times(rng, seconds)
    entry, leave = _ramps(rng, len(times))
    on_ramp: Floats = np.clip(rng.normal(450, 60, len(times)), 230, 700)
    return Trips(
        entry_time=times,
        entry_place=entry * FEET_PER_SEGMENT + on_ramp,
        exit_place=leave * FEET_PER_SEGMENT + rng.uniform(4300, 4900, len(times)),
        entry_speed=np.clip(rng.normal(26.5, 3.9, len(times)), 14, 38),
        temper=np.clip(rng.normal(1.0, 0.15, len(times)), 0.6, 1.4),
    )


def _entry_times(rng: np.random.Generator, seconds: int) -> Int32s:
    """Entry seconds at the wanted rate, spread evenly: a Poisson stream would blur the measured points."""
    # Half of the rate: the demand is that of both directions. The random shift keeps the directions from
    # entering in step.
    expected = np.cumsum(entry_rate(np.arange(seconds)) / 2)
    entered = np.floor(expected + rng.uniform(0, 1)).astype(np.int64)
    return np.repeat(np.arange(seconds, dtype=np.int32), np.diff(entered, prepend=0))


def _ramps(rng: np.random.Generator, count: int) -> tuple[Int64s, Int64s]:
    """Entrance and exit segments.

    A pair against the direction of travel is mirrored; the other road draws such pairs.
    """
    entry = rng.integers(0, SEGMENTS, count)
    leave = _exits(rng, count)
    against = leave < entry
    return np.where(against, SEGMENTS - 1 - entry, entry), np.where(against, SEGMENTS - 1 - leave, leave)


def _exits(rng: np.random.Generator, count: int) -> Int64s:
    leave = np.floor(rng.normal(EXIT_MEAN, EXIT_SPREAD, count)).astype(np.int64)
    outside = (leave < 0) | (leave >= SEGMENTS)
    # Draw again and do not clip: clipping would heap up exits at both ends of the road.
    if outside.any():
        leave[outside] = _exits(rng, int(outside.sum()))
    return leave


def plan_accidents(rng: np.random.Generator, seconds: int, directions: int) -> tuple[AccidentPlan, ...]:
    """One accident for every 20 minutes of an expressway; a last window under 10 minutes has none."""
    starts = range(0, seconds - ACCIDENT_EVERY // 2 + 1, ACCIDENT_EVERY)
    return tuple(_plan_accident(rng, start, directions) for start in starts)


def _plan_accident(rng: np.random.Generator, window: int, directions: int) -> AccidentPlan:
    # Early in its window, so that even the last one is found and cleared within three hours.
    return AccidentPlan(
        dir=int(rng.integers(0, directions)),
        start=window + int(rng.integers(90, 270)),
        segment=int(rng.choice(_ACCIDENT_SEGMENTS)),
        cleared_after=int(rng.integers(600, 1171)),
    )
