"""SegmentHistory: ten weeks of traffic on an expressway, minute by minute.

Idea: a demand curve gives the cars expected in a segment at a minute of a day of the week. It has two rush
hours on working days and one flat hump at weekends. Most traffic is near downtown, heavier towards it in the
morning and away from it in the evening. Randomness varies the day and the minute and adds a few slowdowns a
day. Speed falls as cars crowd the segment. The toll follows the benchmark's own rule on these two numbers, so
the table is consistent. Arasu et al., VLDB 2004, section 3.1.3 (history).
"""

from __future__ import annotations

import numpy as np

from penstock.linear_road.rows.arrays import Floats, Int32s
from penstock.linear_road.rows.fields import SEGMENTS

MINUTES = 1440
DOWNTOWN = 50
WEEKEND = (6, 7)
"""Days of the week without rush hours; day 1 of the history is a Monday."""

_FRIDAY = 5
_NIGHT = 5
"""Cars in a segment downtown at night."""

_FREE_SPEED = 66.0
_CROWDED = 74.0
"""Cars in a segment at which speed has fallen to half."""

_SEGMENT_STREAM, _DAY_STREAM = 1, 2


def dow(day: int) -> int:
    """The day of the week of a day of the history.

    >>> [dow(day) for day in (1, 7, 8, 69)]
    [1, 7, 1, 6]
    """
    return (day - 1) % 7 + 1


def tolls(lav: Int32s, cnt: Int32s) -> Int32s:
    """The toll rule: `2 * (cnt - 50)^2` if `lav < 40` and `cnt > 50`, else 0.

    >>> tolls(np.array([39, 40, 20]), np.array([60, 60, 50])).tolist()
    [200, 0, 0]
    """
    return np.where((lav < 40) & (cnt > 50), 2 * (cnt - 50) ** 2, 0).astype(np.int32)


def day_of_traffic(seed: int, xway: int, direction: int, day: int) -> tuple[Int32s, Int32s]:
    """(Lav, Cnt) of one day, each by minute (0 = the first) and segment: the demand with randomness."""
    # A stream for each day, so that days do not depend on the order in which they are made.
    chance = np.random.default_rng([seed, _DAY_STREAM, xway, direction, day])
    expected = demand(direction, dow(day)) * _character(seed, xway, direction) * chance.lognormal(0.0, 0.07)
    crowding, slowing = _slowdowns(chance)
    expected *= crowding
    noise = chance.standard_normal((2, MINUTES, SEGMENTS), dtype=np.float32)
    cnt = np.maximum(np.rint(expected + noise[0] * np.sqrt(expected)), 0).astype(np.int32)
    # Speed follows the expected cars: the scatter of the count is no jam.
    speed = _FREE_SPEED / (1.0 + (expected / _CROWDED) ** 4) * slowing + noise[1] * 1.5
    return np.clip(np.floor(speed), 3, 80).astype(np.int32), cnt


def demand(direction: int, weekday: int) -> Floats:
    """Cars expected, by minute and segment."""
    return (_over_day(weekday, _inbound(direction)) * _downtown()).astype(np.float32)


def _over_day(weekday: int, inbound: Floats) -> Floats:
    """Cars downtown, by minute and segment: two rush hours on working days, one flat hump at weekends."""
    minute = np.arange(MINUTES, dtype=np.float32)[:, None]
    if weekday in WEEKEND:
        height = 46 if weekday == WEEKEND[0] else 36
        return _NIGHT + height * _hump(minute, 14 * 60, 200) * np.ones_like(inbound)
    evening = 74 if weekday == _FRIDAY else 68
    # The morning is heavier towards downtown, the evening away from it.
    return (
        _NIGHT
        + 32 * _hump(minute, 13 * 60, 260)
        + 66 * _hump(minute, 8 * 60, 65) * (0.6 + 0.5 * inbound)
        + evening * _hump(minute, 17.5 * 60, 85) * (1.1 - 0.5 * inbound)
    )


def _hump(minute: Floats, middle: float, width: float) -> Floats:
    return np.exp(-(((minute - middle) / width) ** 2) / 2)


def _downtown() -> Floats:
    segment = np.arange(SEGMENTS, dtype=np.float32)[None, :]
    return 0.35 + 0.75 * np.exp(-(((segment - DOWNTOWN) / 18) ** 2) / 2)


def _inbound(direction: int) -> Floats:
    """Near 1 where this direction leads towards downtown, near 0 where it leads away."""
    segment = np.arange(SEGMENTS, dtype=np.float32)[None, :]
    ahead = DOWNTOWN - segment if direction == 0 else segment - DOWNTOWN
    return 1 / (1 + np.exp(-ahead / 8))


def _character(seed: int, xway: int, direction: int) -> Floats:
    """Make some segments always busier than their neighbours."""
    chance = np.random.default_rng([seed, _SEGMENT_STREAM, xway, direction])
    return chance.lognormal(0.0, 0.06, SEGMENTS).astype(np.float32)[None, :]


def _slowdowns(chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Roadworks, rain, rubbernecking: a few stretches a day that crowd and slow down for a while."""
    crowding = np.ones((MINUTES, SEGMENTS), np.float32)
    slowing = np.ones((MINUTES, SEGMENTS), np.float32)
    for _ in range(chance.poisson(3)):
        start, segment = int(chance.integers(300, 1320)), int(chance.integers(0, SEGMENTS - 5))
        where = np.s_[
            start : start + int(chance.integers(15, 60)), segment : segment + int(chance.integers(2, 6))
        ]
        crowding[where] *= 1.3
        slowing[where] *= 0.55
    return crowding, slowing
