"""The traffic of one direction of one expressway: demand, road and the resulting reports.

Idea: a direction is the unit of work. Its seed comes from (seed, expressway, direction), and it needs nothing
from the others. So it gives the same reports on any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from penstock.linear_road.errors import GenerateError
from penstock.linear_road.rows.arrays import Int32s, Records
from penstock.linear_road.rows.fields import FEET_PER_SEGMENT, REPORT_EVERY, SEGMENTS
from penstock.linear_road.traffic import movement
from penstock.linear_road.traffic.demand import AccidentPlan, Trips, draw_trips, plan_accidents

LAST_FOOT = SEGMENTS * FEET_PER_SEGMENT - 1
_SLOTS = 8192
"""Room for the vehicles of one direction that share a phase."""

_Feet = TypeVar("_Feet", int, Int32s)


@dataclass(frozen=True)
class Direction:
    """One direction of one expressway, and whether the other one is driven as well."""

    xway: int
    dir: int
    both: bool = True


@dataclass(frozen=True)
class Accident:
    """An accident as accidents.csv lists it.

    `stopped` is the first report of the second vehicle from there, `detected` its fourth, `cleared` the
    first report of either from elsewhere. Vehicles are trips of the direction.
    """

    xway: int
    dir: int
    lane: int
    pos: int
    trip1: int
    trip2: int
    stopped: int
    detected: int
    cleared: int


@dataclass(frozen=True)
class Requests:
    """The fields of the requests, one entry for each report that carries one, in their order."""

    sinit: Int32s
    send: Int32s
    dow: Int32s
    tod: Int32s
    day: Int32s


@dataclass(frozen=True)
class Traffic:
    """The reports of one direction in order of time, its trips and accidents.

    Reports are records of `movement.REPORT`.
    """

    direction: Direction
    reports: Records
    requests: Requests
    entry_time: Int32s
    exit_time: Int32s
    accidents: tuple[Accident, ...]


def directions(xways: float) -> tuple[Direction, ...]:
    """The directions of L expressways; half an expressway is direction 0.

    >>> directions(1.5)[-1]
    Direction(xway=1, dir=0, both=False)
    >>> len(directions(2))
    4
    """
    count = round(2 * xways)
    # Directions 2k and 2k + 1 are one expressway: both are driven if the odd one is.
    return tuple(Direction(i // 2, i % 2, both=(i | 1) < count) for i in range(count))


def simulate(
    direction: Direction, *, seconds: int, seed: int, progress: Callable[[], None] = lambda: None
) -> Traffic:
    """Drive one direction for `seconds`; `progress` is called after each minute."""
    # Use two random streams: accidents belong to the expressway, so both directions must draw the same plan.
    plans = plan_accidents(np.random.default_rng([seed, direction.xway]), seconds, 2 if direction.both else 1)
    rng = np.random.default_rng([seed, direction.xway, direction.dir + 1])
    # The order of draws is part of the model: trips, the seed of the road, then the requests.
    vehicles = _waiting(draw_trips(rng, seconds))
    accidents = _planned([plan for plan in plans if plan.dir == direction.dir])
    minutes = _minutes(vehicles, accidents, seconds, int(rng.integers(0, 2**63)), progress)
    reports = np.concatenate(list(minutes))
    reports["pos"] = _position(direction, reports["pos"])
    return Traffic(
        direction=direction,
        reports=reports,
        requests=_draw_requests(rng, int(np.count_nonzero(reports["request"]))),
        entry_time=vehicles["entry_time"].copy(),
        exit_time=vehicles["exit_time"].copy(),
        accidents=_happened(direction, accidents, seconds),
    )


def _draw_requests(rng: np.random.Generator, count: int) -> Requests:
    """What each request asks; a travel time request goes to another segment."""
    sinit = rng.integers(0, SEGMENTS, count, dtype=np.int32)
    return Requests(
        sinit=sinit,
        send=(sinit + rng.integers(1, SEGMENTS, count, dtype=np.int32)) % SEGMENTS,
        dow=rng.integers(1, 8, count, dtype=np.int32),
        tod=rng.integers(1, 1441, count, dtype=np.int32),
        day=rng.integers(1, 70, count, dtype=np.int32),
    )


def _minutes(
    vehicles: Records, accidents: Records, seconds: int, seed: int, progress: Callable[[], None]
) -> Iterator[Records]:
    """The reports, minute by minute."""
    cells = np.zeros((4, movement.CELLS), movement.CELL_STATE)
    cells["limit"] = movement.NO_LIMIT
    bucket_size = np.zeros(REPORT_EVERY, np.int64)
    road = movement.Road(
        vehicles=vehicles,
        cells=cells,
        accidents=accidents,
        bucket=np.zeros((REPORT_EVERY, _SLOTS), np.int32),
        bucket_size=bucket_size,
        speed_of=movement.speed_table(),
        random=np.array([seed], np.uint64),
    )
    entered = 0
    for start in range(0, seconds, 60):
        until = min(start + 60, seconds)
        entering = int(np.searchsorted(vehicles["entry_time"], until)) - entered
        # Compiled code checks no bounds, so the room is checked here. All that enter may share one phase.
        if int(bucket_size.max()) + entering > _SLOTS:
            raise GenerateError(
                f"more than {_SLOTS} vehicles share a phase at second {start}: the road has jammed"
            )
        # A vehicle reports at most twice a minute, so this is enough room.
        reports = np.zeros(2 * (int(bucket_size.sum()) + entering), movement.REPORT)
        count, entered = movement.advance(road, reports, entered, start, until, seconds)
        yield reports[:count]
        progress()


def _waiting(trips: Trips) -> Records:
    """The vehicles before they enter: on the entrance ramp (lane 0)."""
    vehicles = np.zeros(len(trips), movement.VEHICLE)
    for name in ("entry_time", "exit_place", "temper"):
        vehicles[name] = getattr(trips, name)
    vehicles["feet"], vehicles["speed"] = trips.entry_place, trips.entry_speed
    vehicles["exit_time"] = vehicles["held_by"] = -1
    return vehicles


def _planned(plans: list[AccidentPlan]) -> Records:
    accidents = np.zeros(len(plans), movement.ACCIDENT)
    for name in ("start", "segment", "cleared_after"):
        accidents[name] = [getattr(plan, name) for plan in plans]
    return accidents


def _position(direction: Direction, feet: _Feet) -> _Feet:
    """Feet from the western end: westbound vehicles drive towards 0."""
    return feet if direction.dir == 0 else LAST_FOOT - feet


def _happened(direction: Direction, accidents: Records, seconds: int) -> tuple[Accident, ...]:
    """Those that can be detected before the run ends."""
    both = [_accident(direction, row) for row in accidents if row["phase"] >= movement.BLOCKED]
    return tuple(accident for accident in both if accident.detected < seconds)


def _accident(direction: Direction, row: np.void) -> Accident:
    stopped = int(row["stopped"])
    return Accident(
        xway=direction.xway,
        dir=direction.dir,
        lane=int(row["lane"]),
        pos=int(_position(direction, int(row["feet"]))),
        trip1=int(row["first"]),
        trip2=int(row["second"]),
        stopped=stopped,
        detected=stopped + 3 * REPORT_EVERY,
        cleared=int(row["cleared"]),
    )
