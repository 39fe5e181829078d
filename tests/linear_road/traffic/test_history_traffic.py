"""Does it look like traffic: rush hours, weekends, downtown.

And do the sums of the vehicles follow from it.
"""

import numpy as np
import pytest

from penstock.linear_road.traffic.segment_history import day_of_traffic, demand, dow, tolls
from penstock.linear_road.traffic.toll_history import Stretches, nowhere, spent, stretches, trip_toll

DAYS = range(1, 15)
WORKING = [day for day in DAYS if dow(day) < 6]
FREE = [day for day in DAYS if dow(day) >= 6]


@pytest.fixture(scope="module")
def weeks():
    """{day: (lav, cnt) by direction, minute and segment}"""
    out = {}
    for day in DAYS:
        both = [day_of_traffic(1, 0, direction, day) for direction in (0, 1)]
        out[day] = tuple(np.stack([found[i] for found in both]) for i in (0, 1))
    return out


def mean(weeks, days, figure, minutes, segments=slice(40, 60), direction=slice(None)):
    return float(np.mean([weeks[day][figure][direction, minutes, segments] for day in days]))


LAV, CNT = 0, 1
MORNING, NOON, EVENING, NIGHT = slice(450, 510), slice(690, 750), slice(1020, 1080), slice(120, 240)


def test_working_days_have_two_rush_hours(weeks):
    morning, noon, evening, night = (
        mean(weeks, WORKING, CNT, when) for when in (MORNING, NOON, EVENING, NIGHT)
    )
    assert morning > 1.5 * noon > 5 * night
    assert evening > 1.5 * noon
    assert mean(weeks, WORKING, LAV, MORNING) < 40 < mean(weeks, WORKING, LAV, NIGHT)


def test_weekends_have_none(weeks):
    assert mean(weeks, FREE, CNT, MORNING) < mean(weeks, FREE, CNT, slice(810, 870)) / 2
    assert mean(weeks, FREE, CNT, slice(None)) < 0.75 * mean(weeks, WORKING, CNT, slice(None))


def test_downtown_is_busier_than_the_ends(weeks):
    for segments in (slice(0, 10), slice(90, 100)):
        assert mean(weeks, WORKING, CNT, slice(None)) > 2 * mean(weeks, WORKING, CNT, slice(None), segments)


def test_the_morning_leads_downtown_and_the_evening_away(weeks):
    before, after = slice(25, 40), slice(61, 76)
    east, west = 0, 1
    for direction, inbound, outbound in ((east, before, after), (west, after, before)):
        assert mean(weeks, WORKING, CNT, MORNING, inbound, direction) > mean(
            weeks, WORKING, CNT, MORNING, outbound, direction
        )
        assert mean(weeks, WORKING, CNT, EVENING, inbound, direction) < mean(
            weeks, WORKING, CNT, EVENING, outbound, direction
        )


def test_crowded_is_slow(weeks):
    lav = np.concatenate([weeks[day][LAV].ravel() for day in DAYS])
    cnt = np.concatenate([weeks[day][CNT].ravel() for day in DAYS])
    by_crowd = [lav[(cnt >= low) & (cnt < low + 20)].mean() for low in range(0, 140, 20)]
    assert by_crowd == sorted(by_crowd, reverse=True)
    assert lav.min() >= 3
    assert lav.max() <= 80
    assert cnt.min() >= 0


def test_days_differ_and_repeat_by_seed():
    assert not np.array_equal(day_of_traffic(1, 0, 0, 1)[1], day_of_traffic(1, 0, 0, 8)[1])
    assert not np.array_equal(day_of_traffic(1, 0, 0, 1)[1], day_of_traffic(1, 1, 0, 1)[1])
    assert np.array_equal(day_of_traffic(3, 0, 0, 1)[1], day_of_traffic(3, 0, 0, 1)[1])


def test_demand_is_the_same_every_week_of_days():
    assert demand(0, 1).shape == (1440, 100)
    assert demand(0, 5).sum() > demand(0, 1).sum() > demand(0, 6).sum() > demand(0, 7).sum()


def test_a_trip_pays_each_segment_at_the_minute_it_gets_there():
    lav = np.full((1440, 100), 30, np.int32)  # two minutes a segment
    toll = np.arange(1440, dtype=np.int32)[:, None] * np.ones((1, 100), np.int32)
    assert trip_toll(lav, toll, 100.0, 10, 13) == 100 + 102 + 104
    assert trip_toll(lav, toll, 100.0, 13, 10) == 100 + 102 + 104
    assert trip_toll(lav, toll, 1439.0, 10, 12) == 1439 + 1, (
        "a trip over midnight goes on at minute 1 of the day"
    )
    assert trip_toll(lav, toll, 100.0, 10, 10) == 0


@pytest.fixture(scope="module")
def fleet():
    chance = np.random.default_rng(5)
    count = 4000
    entry = chance.integers(0, 60, count)
    return Stretches(
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
        entry.astype(np.int32),
        (entry + chance.integers(1, 40, count)).astype(np.int32),
    )


def paid(weeks, fleet, day, seed=1):
    lav, cnt = weeks[day]
    return spent(seed, 0, fleet, day, lav, tolls(lav, cnt))


def test_vehicles_pay_on_working_days_and_hardly_at_weekends(weeks, fleet):
    working = np.array([paid(weeks, fleet, day) for day in WORKING])
    free = np.array([paid(weeks, fleet, day) for day in FREE])
    assert working.min() == 0
    assert 0.2 < (working > 0).mean() < 0.9
    assert free.mean() < 0.05 * working.mean()


def test_longer_stretches_cost_more_and_habits_last(weeks, fleet):
    total = np.array([paid(weeks, fleet, day) for day in WORKING]).sum(axis=0)
    length = fleet.leave - fleet.entry
    assert total[length > 30].mean() > 2 * total[length < 10].mean()
    first, second = (
        np.array([paid(weeks, fleet, day) for day in days]).sum(axis=0) for days in (WORKING[:5], WORKING[5:])
    )
    assert np.corrcoef(first, second)[0, 1] > 0.8


def test_no_sum_exceeds_what_the_stretch_can_cost(weeks, fleet):
    for day in (1, 6):
        lav, cnt = weeks[day]
        dearest = tolls(lav, cnt).max(axis=1)
        most = np.array(
            [
                dearest[0, a:b].sum() + dearest[1, a + 1 : b + 1].sum()
                for a, b in zip(fleet.entry, fleet.leave, strict=True)
            ]
        )
        assert (paid(weeks, fleet, day) <= most).all()


def test_the_sum_of_a_vehicle_depends_on_nothing_else(weeks, fleet):
    alone = Stretches(fleet.vid[7:8], fleet.direction[7:8], fleet.entry[7:8], fleet.leave[7:8])
    assert [int(paid(weeks, alone, day)[0]) for day in WORKING] == [
        int(paid(weeks, fleet, day)[7]) for day in WORKING
    ]
    assert any((paid(weeks, fleet, day) != paid(weeks, fleet, day, seed=2)).any() for day in WORKING[:1])


def test_half_an_expressway_has_no_way_back(weeks, fleet):
    lav, cnt = (figure.copy() for figure in weeks[1])
    toll = tolls(lav, cnt)
    both = spent(1, 0, fleet, 1, lav, toll)
    lav[1], toll[1] = nowhere()
    half = spent(1, 0, fleet, 1, lav, toll)
    assert (half <= both).all()
    assert half.sum() < both.sum()


def test_a_vehicle_seen_both_ways_keeps_its_longer_stretch():
    def row(vid, direction, seg):
        return [0, 0, vid, 0, 2, 0, direction, seg, 0, -1, -1, -1, -1, -1, -1]

    blocks = [np.array([row(1, 0, 4), row(1, 1, 50)]), np.array([row(1, 1, 41), row(1, 0, 6), row(9, 0, 3)])]
    found = stretches(blocks)[2]
    assert found.vid.tolist() == [1, 9]
    assert found.direction.tolist() == [1, 0]
    assert found.entry.tolist() == [50, 3]
    assert found.leave.tolist() == [41, 3]
