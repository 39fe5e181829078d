"""How vehicles move: one direction of an expressway, compiled with numba.

Idea: a vehicle only matters when it reports, so it is moved once every 30 s, at its own second (its phase).
Between two reports its speed depends on how crowded its lane is here and just ahead (quarter-mile cells), and
on how fast it can accelerate. It changes to a freer lane, and leaves by the exit ramp once it has reached it.
An accident is two vehicles held at one place of one lane. The lane is closed there and the others pass
slowly, so the cells behind fill up and slow down as well. Arasu et al., VLDB 2004, section 3.1.1.

One mph is 44 feet in 30 s. The maximum of 100 mph is 4,400 feet, so no vehicle crosses a segment (5,280 feet)
without a report. State lies in arrays of records: numba passes a record as a bare pointer, whereas a tuple of
arrays would count references at each access (measured: 20 times slower).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numba
import numpy as np
import numpy.typing as npt

from penstock.linear_road.rows.arrays import Floats, Int32s, Int64s, Records
from penstock.linear_road.rows.fields import (
    BALANCE,
    DAILY,
    ENTRANCE_LANE,
    EXIT_LANE,
    FEET_PER_SEGMENT,
    REPORT_EVERY,
    TRAVEL,
)

CELL = 1320.0
CELLS = 400
FEET_PER_MPH = 44.0
TOP_SPEED, RAMP_SPEED = 100.0, 38.0
FREE_SPEED, CRAWL_SPEED = 58.0, 11.0
CROWDED = 98.0
"""Vehicles per mile and lane at which the speed has lost half of what it can lose."""

GAIN, LOSS = 27.0, 35.0
"""Most mph a vehicle gains or loses between two reports."""

NO_LIMIT, PASSING_SPEED, CLOSED_SPEED = 200.0, 12.0, 4.0
QUEUE_CELLS, QUEUE_GAIN = 8, 4.0
"""Cells behind an accident that drive slowly, and how many mph more each cell away from it."""

PLANNED, ONE_STOPPED, BLOCKED, CLEARED = 0, 1, 2, 3
REQUEST_SHARE, BALANCE_SHARE, DAILY_SHARE = 0.01, 0.5, 0.1
"""Reports that carry a request, and which of these ask for the balance and the daily expenditure."""

FIRST_LANE, LAST_LANE = 1, 3
"""The travel lanes, between entrance and exit ramp."""

CLEARLY_FASTER = 3.0
"""Least mph that make changing lanes worth it."""

DETECTED_AFTER = 3 * REPORT_EVERY
"""Seconds from the first to the fourth report from one position, which detects an accident."""

SHORTEST_CLEARING = 600

VEHICLE = np.dtype(
    [
        ("exit_place", "f8"),  # places in feet along the direction of travel
        ("temper", "f8"),  # the speed this driver takes where others drive 1
        ("feet", "f8"),
        ("speed", "f8"),
        ("entry_time", "i4"),
        ("exit_time", "i4"),
        ("lane", "i4"),
        ("held_by", "i4"),  # the accident that holds the vehicle, or -1
    ]
)
CELL_STATE = np.dtype([("crowd", "i8"), ("limit", "f8")])
"""Vehicles in a cell of a lane, and the highest speed there because of an accident."""

ACCIDENT = np.dtype(
    [
        ("start", "i8"),
        ("segment", "i8"),
        ("cleared_after", "i8"),
        ("phase", "i8"),
        ("feet", "f8"),
        ("lane", "i8"),
        ("first", "i8"),
        ("second", "i8"),
        ("stopped", "i8"),
        ("clear_from", "i8"),
        ("cleared", "i8"),
    ]
)
REPORT = np.dtype(
    [
        ("time", "i4"),
        ("trip", "i4"),
        ("pos", "i4"),
        ("speed", "i1"),
        ("lane", "i1"),
        ("request", "i1"),
        ("unused", "i1"),
    ]
)
"""A report; `pos` is along the direction of travel, `request` is 0 or the type of the request it carries."""

Random = npt.NDArray[np.uint64]
"""The state of the random numbers: one number, in an array so that compiled code can advance it."""


class Vehicle(Protocol):
    """A record of `VEHICLE`, as compiled code sees it."""

    entry_time: int
    exit_time: int
    exit_place: float
    temper: float
    feet: float
    speed: float
    lane: int
    held_by: int


class Accident(Protocol):
    """A record of `ACCIDENT`, as compiled code sees it."""

    start: int
    segment: int
    cleared_after: int
    phase: int
    feet: float
    lane: int
    first: int
    second: int
    stopped: int
    clear_from: int
    cleared: int


class Report(Protocol):
    """A record of `REPORT`, as compiled code sees it."""

    time: int
    trip: int
    pos: int
    speed: int
    lane: int
    request: int


class Road(NamedTuple):
    """All state of one direction.

    `bucket[phase]` lists the trips that report at this second of the half minute, `bucket_size[phase]` says
    how many they are, and `speed_of` is `speed_table()`.
    """

    vehicles: Records
    cells: Records
    accidents: Records
    bucket: Int32s
    bucket_size: Int64s
    speed_of: Floats
    random: Random


# Divide as numpy does: a check for zero at each division would cost time and is never needed here.
_compiled = numba.njit(error_model="numpy")


def speed_table() -> Floats:
    """Speed by vehicles in a half mile of one lane (two cells)."""
    per_mile = 2.0 * np.arange(4096)
    return CRAWL_SPEED + (FREE_SPEED - CRAWL_SPEED) / (1.0 + per_mile / CROWDED)


@_compiled
def _uniform(random: Random) -> float:
    """The next number of splitmix64 in [0, 1): the same on every machine and for any number of processes."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    # The upper 53 bits: as many as a double holds exactly.
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@_compiled
def _request(random: Random) -> int:
    """The request that a report carries: 1 % do; half balance, a tenth daily, the rest travel time."""
    draw = _uniform(random)
    if draw >= REQUEST_SHARE:
        return 0
    if draw < REQUEST_SHARE * BALANCE_SHARE:
        return BALANCE
    return DAILY if draw < REQUEST_SHARE * (BALANCE_SHARE + DAILY_SHARE) else TRAVEL


@_compiled
def _cell(feet: float) -> int:
    return min(int(feet / CELL), CELLS - 1)


@_compiled
def _lane_speed(cells: Records, speed_of: Floats, lane: int, cell: int) -> float:
    # Drivers see the next cell too, so they slow down before they reach a jam.
    here, ahead = cells[lane, cell], cells[lane, min(cell + 1, CELLS - 1)]
    return float(min(speed_of[here.crowd + ahead.crowd], here.limit, ahead.limit))


@_compiled
def _choose_lane(cells: Records, speed_of: Floats, random: Random, lane: int, cell: int) -> int:
    """The neighbouring lane if it is clearly faster; some drivers change only if their own lane is closed."""
    # The own lane has an advantage, or drivers would change to and fro.
    best, best_speed = lane, _lane_speed(cells, speed_of, lane, cell) + CLEARLY_FASTER
    closed = best_speed <= CLOSED_SPEED + CLEARLY_FASTER
    if _uniform(random) < 0.5 and not closed:
        return lane
    for other in (lane - 1, lane + 1):
        if FIRST_LANE <= other <= LAST_LANE and _lane_speed(cells, speed_of, other, cell) > best_speed:
            best, best_speed = other, _lane_speed(cells, speed_of, other, cell)
    return best


@_compiled
def _put(cells: Records, car: Vehicle, lane: int, feet: float) -> None:
    """Move a vehicle to another lane and position, and update the count of each cell."""
    if FIRST_LANE <= car.lane <= LAST_LANE:
        cells[car.lane, _cell(car.feet)].crowd -= 1
    if FIRST_LANE <= lane <= LAST_LANE:
        cells[lane, _cell(feet)].crowd += 1
    car.lane = lane
    car.feet = feet


@_compiled
def _next_speed(car: Vehicle, wanted: float, random: Random) -> float:
    # In a closed lane everybody creeps, whatever the temper.
    if wanted > CLOSED_SPEED:
        wanted = wanted * car.temper + 6.0 * (_uniform(random) - 0.5)
    return float(min(max(wanted, car.speed - LOSS, 3.0), car.speed + GAIN, TOP_SPEED))


@_compiled
def _drive(cells: Records, speed_of: Floats, random: Random, car: Vehicle) -> None:
    """Move a vehicle by 30 s: lane, speed, place, and the exit ramp once it is reached."""
    cell = _cell(car.feet)
    if car.lane == ENTRANCE_LANE:
        lane = 1 + int(3.0 * _uniform(random))
    else:
        lane = _choose_lane(cells, speed_of, random, car.lane, cell)
    speed = _next_speed(car, _lane_speed(cells, speed_of, lane, cell), random)
    # Drive 30 s at the mean of the old and new speed.
    feet = car.feet + 0.5 * (car.speed + speed) * FEET_PER_MPH
    if feet >= car.exit_place:
        # The ramp lies in its segment, so the last report must come from there, on lane 4 and at ramp speed.
        speed = min(speed, RAMP_SPEED - 10.0 * _uniform(random))
        end_of_segment = (int(car.exit_place / FEET_PER_SEGMENT) + 1) * FEET_PER_SEGMENT - 1.0
        feet = min(car.exit_place + 0.2 * (feet - car.exit_place), end_of_segment)
        lane = EXIT_LANE
    _put(cells, car, lane, feet)
    car.speed = speed


@_compiled
def _hold(cells: Records, car: Vehicle, accident: Accident, which: int) -> None:
    """Stop a vehicle at the accident's place and lane."""
    _put(cells, car, accident.lane, accident.feet)
    car.speed = 0.0
    car.held_by = which


@_compiled
def _limit_behind(cells: Records, accident: Accident, closed: bool) -> None:
    """Close (or open) the lane at the accident and half a mile before it.

    For two miles all lanes slow down.
    """
    at = _cell(accident.feet)
    for lane in range(FIRST_LANE, LAST_LANE + 1):
        for cell in range(max(at - QUEUE_CELLS, 0), at + 1):
            limit = PASSING_SPEED + QUEUE_GAIN * (at - cell)
            if lane == accident.lane and at - cell <= 2:
                limit = CLOSED_SPEED
            # Queues of two accidents may overlap: the lower limit counts.
            cells[lane, cell].limit = min(limit, cells[lane, cell].limit) if closed else NO_LIMIT


@_compiled
def _open_lane(cells: Records, accidents: Records, which: int) -> None:
    """Open the lane again, except where another accident still limits it."""
    _limit_behind(cells, accidents[which], False)
    for other in range(len(accidents)):
        if accidents[other].phase in (ONE_STOPPED, BLOCKED):
            _limit_behind(cells, accidents[other], True)


@_compiled
def _may_stop_first(car: Vehicle, accident: Accident, t: int) -> bool:
    """Whether a vehicle is near the planned segment and will drive well past it.

    The longer none comes, the farther we look.
    """
    if accident.phase != PLANNED or t < accident.start or not FIRST_LANE <= car.lane <= LAST_LANE:
        return False
    reach = 0.5 + (t - accident.start) / 20.0
    near = abs(car.feet / FEET_PER_SEGMENT - accident.segment - 0.5) < reach
    return bool(near and car.exit_place > car.feet + 2 * FEET_PER_SEGMENT)


@_compiled
def _may_stop_second(car: Vehicle, accident: Accident, before: float) -> bool:
    """Whether a vehicle has just passed the stopped one: it runs into it instead."""
    passed = before < accident.feet <= car.feet
    return bool(accident.phase == ONE_STOPPED and passed and FIRST_LANE <= car.lane <= LAST_LANE)


@_compiled
def _stop_first(cells: Records, car: Vehicle, accident: Accident, which: int, trip: int) -> None:
    # A whole foot: positions are reported in feet, and both vehicles must report the same one.
    accident.feet = np.floor(car.feet)
    accident.lane = car.lane
    accident.first = trip
    accident.phase = ONE_STOPPED
    _hold(cells, car, accident, which)
    _limit_behind(cells, accident, True)


@_compiled
def _first_report(entry_time: int, t: int) -> int:
    """The first second from t on at which a vehicle reports."""
    return t + (entry_time - t) % REPORT_EVERY


@_compiled
def _stop_second(
    cells: Records, vehicles: Records, accident: Accident, which: int, trip: int, t: int, end: int
) -> None:
    accident.second = trip
    accident.stopped = t
    accident.phase = BLOCKED
    _hold(cells, vehicles[trip], accident, which)
    detected = t + DETECTED_AFTER
    # After clearing, the vehicles need one more report each to show it.
    latest = end - (REPORT_EVERY + 1) - detected
    # Clear it within the run if ten minutes are left for it.
    if latest >= SHORTEST_CLEARING:
        accident.cleared_after = min(accident.cleared_after, latest)
    accident.clear_from = detected + accident.cleared_after
    accident.cleared = min(
        _first_report(vehicles[accident.first].entry_time, accident.clear_from),
        _first_report(vehicles[trip].entry_time, accident.clear_from),
    )


@_compiled
def _let_go(cells: Records, car: Vehicle, accidents: Records, t: int) -> bool:
    """Free a held vehicle when its accident is cleared; True if it drives on."""
    accident = accidents[car.held_by]
    if accident.phase < BLOCKED or t < accident.clear_from:
        return False
    # Whichever of the two reports first opens the lane. The other one drives on at its own report.
    if accident.phase == BLOCKED:
        accident.phase = CLEARED
        _open_lane(cells, accidents, car.held_by)
    car.held_by = -1
    return True


@_compiled
def _move(
    vehicles: Records,
    cells: Records,
    accidents: Records,
    speed_of: Floats,
    random: Random,
    trip: int,
    t: int,
    end: int,
) -> None:
    """Move one vehicle by half a minute, with any accident it meets."""
    car = vehicles[trip]
    # A held vehicle does not move, but still reports: that is how an accident is detected.
    if car.held_by >= 0 and not _let_go(cells, car, accidents, t):
        return
    before = car.feet
    _drive(cells, speed_of, random, car)
    for which in range(len(accidents)):
        accident = accidents[which]
        # Two vehicles make an accident (Linear Road's rule), so a third one drives past it.
        if accident.phase > ONE_STOPPED:
            continue
        if _may_stop_first(car, accident, t):
            _stop_first(cells, car, accident, which, trip)
        elif _may_stop_second(car, accident, before):
            _stop_second(cells, vehicles, accident, which, trip, t, end)


@_compiled
def _report(report: Report, car: Vehicle, random: Random, trip: int, t: int) -> None:
    report.time = t
    report.trip = trip
    report.pos = int(car.feet)
    report.speed = int(car.speed)
    report.lane = car.lane
    report.request = _request(random)


# Only the outermost function is cached on disk: the others are compiled into it.
@numba.njit(cache=True, error_model="numpy")
def advance(road: Road, reports: Records, entered: int, begin: int, until: int, end: int) -> tuple[int, int]:
    """Run the seconds begin..until-1 of a run of `end` seconds and write their reports.

    Returns how many there are, and how many trips have entered.
    """
    # Take the arrays out of the tuple once: inside the loop each access would count references.
    vehicles, cells, accidents, bucket, bucket_size, speed_of, random = road
    row = 0
    for t in range(begin, until):
        # Vehicles report every 30 s from their entry on, so each second handles the vehicles of one phase.
        phase = t % REPORT_EVERY
        kept = 0
        for slot in range(bucket_size[phase]):
            trip = bucket[phase, slot]
            _move(vehicles, cells, accidents, speed_of, random, trip, t, end)
            _report(reports[row], vehicles[trip], random, trip, t)
            row += 1
            if vehicles[trip].lane == EXIT_LANE:
                vehicles[trip].exit_time = t
            else:
                # Close the gaps of departed vehicles in place.
                bucket[phase, kept] = trip
                kept += 1
        # A new vehicle reports at once, from the entrance ramp. It moves for the first time 30 s later.
        while entered < len(vehicles) and vehicles[entered].entry_time == t:
            _report(reports[row], vehicles[entered], random, entered, t)
            row += 1
            bucket[phase, kept] = entered
            kept += 1
            entered += 1
        bucket_size[phase] = kept
    return row, entered
