"""Slices stored by direction: any L in halves, expressways never torn apart, requests with their vehicle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from linear_road.golden_input import balance, daily, report
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import Slices, half_plan
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.copies import span_of
from penstock.linear_road.rows.inputs import open_input


def town(xways: int = 2, seconds: int = 4) -> list[str]:
    """A report of each direction of each expressway in each second.

    The vehicle on its west side asks for its balance.
    """
    rows = []
    for time in range(seconds):
        for xway in range(xways):
            rows.append(report(time, 10 * xway, 6000, xway=xway))
            rows.append(report(time, 10 * xway + 1, 6000, xway=xway, direction=1))
            rows.append(balance(time, 10 * xway + 1, time * xways + xway))
    return rows


def stored(tmp_path: Path, rows: list[str]) -> Slices:
    file = tmp_path / "rows.dat"
    file.write_text("\n".join(rows) + "\n")
    source = open_input(file)
    span = span_of(source)
    return prepare(
        PreparePlan(source, round(2 * span.expressways), span=span, halves=True), tmp_path / "slices"
    )


def driven(slices: Slices, expressways: float, groups: int) -> list[list[list[int]]]:
    feed = feed_of(DrivePlan(slices.path, expressways=expressways, groups=groups), slices)
    found: list[list[list[int]]] = [[] for _ in range(groups)]
    for second in range(feed.begin, feed.end):
        for group, piece in enumerate(feed.at(second)):
            lines = piece.data.tobytes().decode().splitlines()
            assert len(lines) == piece.rows
            found[group] += [[int(x) for x in line.split(",")] for line in lines]
    assert sum(map(len, found)) == feed.rows()
    return found


@pytest.mark.parametrize("expressways", [0.5, 1, 1.5, 2, 2.5, 4, 7.5])
def test_any_number_of_halves_comes_out_of_one_set(tmp_path: Path, expressways: float) -> None:
    (rows,) = driven(stored(tmp_path, town()), expressways, 1)
    halves = {(row[4], row[6]) for row in rows if row[0] == 0}
    assert halves == {divmod(u, 2) for u in range(round(2 * expressways))}
    assert len({row[2] for row in rows if row[0] == 0}) == 2 * expressways
    # Each request is there with its vehicle, and its number is its own.
    asked = Counter(row[9] for row in rows if row[0] == 2)
    assert len(asked) == 4 * int(expressways)
    assert set(asked.values()) <= {1}


@pytest.mark.parametrize(("expressways", "groups"), [(2, 2), (2.5, 2), (7.5, 3), (4, 1)])
def test_an_expressway_stays_in_one_group(tmp_path: Path, expressways: float, groups: int) -> None:
    found = driven(stored(tmp_path, town()), expressways, groups)
    roads = [{row[4] for row in rows if row[0] == 0} for rows in found]
    assert all(roads)
    assert sum(map(len, roads)) == len(set().union(*roads))


def test_what_is_no_half_is_refused(tmp_path: Path) -> None:
    slices = stored(tmp_path, town())
    with pytest.raises(InputError, match=r"--xways 1.3 is no number of half expressways"):
        feed_of(DrivePlan(slices.path, expressways=1.3), slices)
    with pytest.raises(InputError, match=r"--groups 3 is out of range\n  expected: 1..2"):
        half_plan(4, 2, 3)


def test_a_request_with_another_vehicle_before_it_goes_by_its_expressway(tmp_path: Path) -> None:
    rows = [report(0, 1, 6000), report(0, 2, 6000, xway=1, direction=1), daily(0, 1, 5, 3, xway=1)]
    rows += [report(1, 3, 6000, direction=1), report(1, 4, 6000, xway=1)]
    slices = stored(tmp_path, rows)
    assert [slices.rows(0, 2, half) for half in range(4)] == [1, 1, 2, 1]
