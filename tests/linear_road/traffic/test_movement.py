"""The road itself: demand, speed, names, and the edge of a run."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.linear_road.errors import GenerateError
from penstock.linear_road.traffic.demand import draw_trips, plan_accidents
from penstock.linear_road.traffic.direction import Direction, directions, simulate
from penstock.linear_road.traffic.merge import cut
from penstock.linear_road.traffic.movement import speed_table
from penstock.linear_road.traffic.vehicles import REST, STRIDE, TripTimes, name_vehicles


def test_speed_falls_with_crowding_but_flow_never_does() -> None:
    speed = speed_table()
    assert np.all(np.diff(speed) < 0)
    assert np.all(np.diff(speed * np.arange(len(speed))) > 0), "a crowded cell must still empty itself"


def test_trips_go_forward_and_are_as_many_as_the_rate_says() -> None:
    trips = draw_trips(np.random.default_rng(1), 10_800)
    assert np.all(trips.exit_place > trips.entry_place)
    assert 2 * len(trips) == pytest.approx(152_000, rel=0.01)


@pytest.mark.parametrize(("minutes", "accidents"), [(5, 0), (10, 1), (20, 1), (29, 1), (30, 2), (180, 9)])
def test_one_accident_for_every_20_minutes(minutes: int, accidents: int) -> None:
    plans = plan_accidents(np.random.default_rng(1), 60 * minutes, 2)
    assert len(plans) == accidents
    assert all(600 <= plan.cleared_after <= 1170 for plan in plans)


@pytest.mark.parametrize("seed", range(4))
def test_accidents_told_are_detected_before_the_end(seed: int) -> None:
    for direction in directions(1):
        traffic = simulate(direction, seconds=600, seed=seed)
        assert all(a.detected < 600 for a in traffic.accidents)


def test_traffic_behind_an_accident_slows() -> None:
    """The mile behind it, while it blocks the road, against the same mile at other times."""
    found = [simulate(direction, seconds=3600, seed=5) for direction in directions(1)]
    assert sum(len(traffic.accidents) for traffic in found) == 3
    for traffic in found:
        reports = traffic.reports[(traffic.reports["lane"] % 4 != 0) & (traffic.reports["speed"] > 0)]
        for a in traffic.accidents:
            behind = (a.pos - reports["pos"]) * (1 if traffic.direction.dir == 0 else -1)
            mile = reports[(behind > 0) & (behind < 5280)]
            during = (mile["time"] > a.stopped) & (mile["time"] < a.cleared)
            assert mile["speed"][during].mean() < 0.75 * mile["speed"][~during].mean()


def test_half_an_expressway_has_all_its_accidents_in_direction_0() -> None:
    assert len(simulate(Direction(0, 0, both=False), seconds=2400, seed=1).accidents) == 2


def test_no_vehicle_is_on_two_trips_at_once() -> None:
    rng = np.random.default_rng(3)
    roads = directions(1.5)
    entry = [np.sort(rng.integers(0, 5000, 3000)) for _ in roads]
    leave = [np.where(rng.random(3000) < 0.8, times + rng.integers(30, 2000, 3000), -1) for times in entry]
    names = name_vehicles(roads, [TripTimes(a, b) for a, b in zip(entry, leave, strict=True)])
    made: dict[int, list[tuple[int, int]]] = {}
    for vids, enters, leaves in zip(names, entry, leave, strict=True):
        for vid, at, until in zip(vids.tolist(), enters.tolist(), leaves.tolist(), strict=True):
            made.setdefault(vid, []).append((at, until))
    assert max(map(len, made.values())) == 2
    for trips in made.values():
        first, *second = sorted(trips)
        assert all(first[1] >= 0 and first[1] + REST <= at for at, _ in second)


def test_too_many_vehicles_for_their_numbers() -> None:
    times = TripTimes(np.zeros(STRIDE), np.zeros(STRIDE))
    with pytest.raises(GenerateError, match="more vehicles than there are numbers"):
        name_vehicles(directions(0.5), [times])


@pytest.mark.parametrize("most", [1, 7, 100, 5000])
def test_cuts_cover_every_second_once(most: int) -> None:
    rows = np.random.default_rng(1).integers(0, 9, 600)
    slices = cut(rows, most)
    assert [s.start for s in slices[1:]] == [s.end for s in slices[:-1]]
    assert (slices[0].start, slices[-1].end) == (0, 600)
    assert all(rows[s.start : s.end].sum() <= most or s.end == s.start + 1 for s in slices)
