"""Which vehicle makes which trip: second trips, in the same direction, back home, or on another expressway.

Idea: the road simulates trips, and vehicles are named afterwards. A few trips are made by a vehicle that
finished another one at least two minutes before. Only entry and exit times are needed. So the directions are
still simulated separately, and the names are the same on any number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.linear_road.errors import GenerateError
from penstock.linear_road.rows.arrays import Bools, Int32s, Int64s
from penstock.linear_road.traffic.direction import Direction

STRIDE = 200_000
"""Vehicle numbers kept for one expressway."""

REST = 120
"""Least seconds between the exit of one trip and the entry of the next."""

_RETURNING = 40
"""One trip in this many is a second one."""

_SOURCES = 3
"""Second trips come from the own direction, the one before it, and the one before that."""


@dataclass(frozen=True)
class TripTimes:
    """When the trips of a direction enter and leave (-1: still driving at the end), in order of entry."""

    entry: Int32s
    exit: Int32s


def name_vehicles(directions: Sequence[Direction], times: Sequence[TripTimes]) -> list[Int32s]:
    """The VID of each trip of each direction."""
    names = [
        _own_names(direction, len(trip.entry)) for direction, trip in zip(directions, times, strict=True)
    ]
    for here in range(len(directions)):
        for source in range(_SOURCES):
            _name_second_trips(names, times, here, source)
    return names


def _own_names(direction: Direction, trips: int) -> Int32s:
    """Odd numbers go east, even ones west, so that the numbers of an expressway are dense."""
    vids = direction.xway * STRIDE + 2 * np.arange(trips, dtype=np.int64) + direction.dir + 1
    if 2 * trips >= STRIDE or vids[-1:].max(initial=0) >= 2**31:
        raise GenerateError(f"expressway {direction.xway} has more vehicles than there are numbers for it")
    return vids.astype(np.int32)


def _is_second(trips: Int64s) -> Bools:
    return np.asarray(trips % _RETURNING == _RETURNING - 1)


def _name_second_trips(names: list[Int32s], times: Sequence[TripTimes], here: int, source: int) -> None:
    """Give the second trips of this direction and source to vehicles that have finished, by exit time.

    Each trip belongs to only one source, by its number, so no vehicle is used twice.
    """
    there = (here - source) % len(names)
    trips = np.arange(len(names[here]))
    takers = trips[_is_second(trips) & (trips // _RETURNING % _SOURCES == source)]
    done = np.arange(len(names[there]))
    # A second trip gives its vehicle to nobody, so no vehicle makes three.
    givers = done[(times[there].exit >= 0) & ~_is_second(done) & (done % _SOURCES == source)]
    givers = givers[np.argsort(times[there].exit[givers], kind="stable")]
    # Both lists are in order of time, so one walk pairs them: the next taker gets the next free vehicle.
    free = iter(zip(givers.tolist(), times[there].exit[givers].tolist(), strict=True))
    giver, left = next(free, (-1, 0))
    for taker in takers.tolist():
        if giver >= 0 and left + REST <= times[here].entry[taker]:
            names[here][taker] = names[there][giver]
            giver, left = next(free, (-1, 0))
