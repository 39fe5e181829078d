"""The oracle against the golden data, the original validator's answers, and small cases of
each definition.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from linear_road.golden_input import (
    GOLDEN,
    MITSIM,
    Case,
    balance,
    by_time,
    daily,
    lines,
    needs_data,
    report,
    travel,
)
from penstock.linear_road.validate import validate


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@needs_data
def test_golden_answers_and_refused_rows(tmp_path):
    out = tmp_path / "expected.csv"
    verdict = validate(GOLDEN / "rows.dat", history=GOLDEN, expected=out)
    assert sorted(lines(out)) == sorted(lines(GOLDEN / "expected.csv"))
    with (GOLDEN / "refused.csv").open(newline="") as file:
        wanted = [(int(row["line"]), row["why"], row["raw"]) for row in csv.DictReader(file)]
    assert [(row.line, row.why, row.raw) for row in verdict.refused] == wanted


@needs_data
def test_original_validator_up_to_323(tmp_path):
    out = tmp_path / "expected.csv"
    verdict = validate(MITSIM / "reports_t0-323.dat", expected=out)
    original = [line.split(",") for line in lines(MITSIM / "expected_t0-323.csv")]
    mine = [line.split(",") for line in lines(out)]
    notices = sorted(
        (vid, time, lav, toll) for kind, vid, time, _, lav, toll in (r for r in mine if r[0] == "0")
    )
    alerts = sorted((vid, time, seg) for _, time, _, vid, seg in (r for r in mine if r[0] == "1"))
    assert notices == sorted(tuple(row[1:5]) for row in original)
    assert alerts == sorted((row[1], row[2], row[5]) for row in original if row[5] != "-1")
    assert (verdict.expected[0], verdict.expected[1]) == (9284, 272)
    assert not verdict.refused


@needs_data
def test_original_validator_up_to_450():
    verdict = validate(MITSIM / "positions_t0-450.dat")
    assert verdict.expected[0] == 16355


def test_notice_for_the_first_report_and_each_crossing_but_not_in_lane_4(case):
    rows = [
        report(0, 1, 100, lane=0),
        report(30, 1, 5000),
        report(60, 1, 6000),
        report(90, 1, 11000, lane=4),
        report(120, 1, 11500, lane=1),
    ]
    assert case.expected(rows) == ["0,1,0,0,-1,0", "0,1,60,60,-1,0", "0,1,120,120,0,0"]


def test_a_missing_report_begins_a_new_trip(case):
    rows = [report(0, 1, 100), report(30, 1, 200), report(90, 1, 300)]
    assert [row.split(",")[2] for row in case.expected(rows)] == ["0", "90"]


def crowd(first: int, count: int, begin: int, pos: int) -> list[str]:
    """`count` slow vehicles that report once in the minute that begins at `begin`."""
    return [report(begin + n % 60, first + n, pos, spd=20) for n in range(count)]


def charged(case: Case, last: list[str]) -> tuple[str, str]:
    """Vehicle 1 enters segment 0 at a toll of 2 * 4^2 and does `last`; its balances at the end."""
    rows = by_time(*crowd(100, 54, 0, 100), report(60, 1, 200), *last, balance(150, 1, 7), balance(89, 1, 6))
    answers = case.expected(rows)
    assert "0,1,60,60,20,32" in answers
    early, late = (row for row in answers if row.startswith("2,"))
    return early, late


def test_the_quoted_toll_is_charged_at_the_crossing(case):
    assert charged(case, [report(90, 1, 5300)]) == ("2,89,89,89,6,0", "2,150,150,150,7,32")


def test_leaving_by_lane_4_of_the_same_segment_is_free(case):
    assert charged(case, [report(90, 1, 300, lane=4)]) == ("2,89,89,89,6,0", "2,150,150,150,7,0")


def test_crossing_into_the_next_exit_lane_is_charged_and_gives_no_notice(case):
    assert charged(case, [report(90, 1, 5300, lane=4)])[1] == "2,150,150,150,7,32"


def test_crossing_within_the_exit_lane_charges_what_was_quoted_before_it(case):
    last = [report(90, 1, 300, lane=4), report(120, 1, 5300, lane=4), report(150, 1, 10600, lane=4)]
    assert charged(case, last)[1] == "2,150,150,150,7,32"


def test_a_new_trip_in_the_next_segment_is_not_charged(case):
    assert charged(case, [report(91, 1, 5300)])[1] == "2,150,150,150,7,0"


def test_a_vehicle_in_two_rhythms_pays_in_each_what_it_was_quoted_there(case):
    """The previous report of 105 is that of 75, so it leaves segment 0, whatever was quoted at 90."""
    last = [report(75, 1, 250), report(90, 1, 5300), report(105, 1, 5400)]
    assert charged(case, last)[1] == "2,150,150,150,7,64"


def test_fifty_cars_are_free_and_lav_40_is_free(case):
    slow = by_time(*crowd(100, 50, 0, 100), report(60, 1, 200))
    assert "0,1,60,60,20,0" in case.expected(slow)
    fast = by_time(
        *(row.replace(",20,0,1,", ",40,0,1,") for row in crowd(100, 60, 0, 100)), report(60, 1, 200)
    )
    assert "0,1,60,60,40,0" in case.expected(fast)


def stop(vid: int, begin: int, count: int, pos: int, *, lane: int = 2, xway: int = 0) -> list[str]:
    return [report(begin + 30 * n, vid, pos, lane=lane, xway=xway) for n in range(count)]


def alerts_for(case: Case, *rows: str) -> list[str]:
    """The alerts to a vehicle that enters segment 6 anew in each of the minutes 2..6."""
    seen = [report(60 * minute + 59, 50 + minute, 6 * 5280) for minute in range(1, 6)]
    return [row for row in case.expected(by_time(*rows, *seen)) if row.startswith("1,") and ",5" in row]


def test_alert_from_the_minute_after_the_accident_until_the_one_after_its_end(case):
    # Both stopped from 90 on; vehicle 2 is last heard at 120, so the accident holds up to 149, in minutes 2
    # and 3.
    found = alerts_for(case, *stop(1, 0, 7, 10 * 5280), *stop(2, 0, 5, 10 * 5280))
    assert found == ["1,179,179,52,10", "1,239,239,53,10"]


def test_an_accident_that_ends_at_a_full_minute_does_not_count_in_it(case):
    # Vehicle 2 reports from elsewhere at 120: the accident holds in 90..119, in minute 2 alone.
    found = alerts_for(
        case, *stop(1, 0, 7, 10 * 5280), *stop(2, 0, 4, 10 * 5280), report(120, 2, 10 * 5280 + 1)
    )
    assert found == ["1,179,179,52,10"]


def test_a_report_from_another_expressway_ends_the_stop(case):
    rows = [*stop(1, 0, 7, 10 * 5280), *stop(2, 0, 4, 10 * 5280)]
    assert len(alerts_for(case, *rows)) == 1
    # At 100 it is elsewhere: 90..99 remain, still minute 2; at 85 its four latest reports are never from one
    # place.
    assert len(alerts_for(case, *rows, report(100, 2, 0, xway=1))) == 1
    assert alerts_for(case, *rows, report(85, 2, 0, xway=1)) == []


@pytest.mark.parametrize("lane", [0, 4])
def test_no_accident_on_ramps(case, lane):
    assert alerts_for(case, *stop(1, 0, 7, 52800, lane=lane), *stop(2, 0, 7, 52800, lane=lane)) == []


def test_no_accident_in_different_lanes_or_with_three_reports(case):
    assert alerts_for(case, *stop(1, 0, 7, 52800, lane=1), *stop(2, 0, 7, 52800, lane=2)) == []
    assert alerts_for(case, *stop(1, 0, 7, 52800), *stop(2, 0, 3, 52800)) == []


def test_alert_names_the_nearest_segment_and_reaches_four_downstream(case):
    far = [*stop(1, 0, 9, 10 * 5280), *stop(2, 0, 9, 10 * 5280)]
    near = [*stop(3, 0, 9, 8 * 5280), *stop(4, 0, 9, 8 * 5280)]
    assert alerts_for(case, *far, *near)[0] == "1,179,179,52,8"
    beyond = [*stop(1, 0, 9, 11 * 5280), *stop(2, 0, 9, 11 * 5280)]
    assert alerts_for(case, *beyond) == []


def test_a_vehicle_has_one_account_over_all_expressways(case):
    there = [row.replace(",20,0,1,", ",20,1,1,") for row in crowd(200, 54, 0, 100)]
    rows = by_time(
        *crowd(100, 54, 0, 100),
        *there,
        report(60, 1, 200),
        report(90, 1, 5300),
        report(61, 1, 200, xway=1),
        report(91, 1, 5300, xway=1),
        balance(200, 1, 7),
    )
    assert "2,200,200,200,7,64" in case.expected(rows)


def test_daily_sums_rows_and_answers_0_without_one(case, tmp_path):
    history = tmp_path / "history"
    history.mkdir()
    (history / "TollHistory.csv").write_text("1,5,0,30\n1,5,0,12\n1,6,0,99\n")
    rows = [daily(0, 1, 7, 5), daily(0, 1, 8, 4), daily(0, 2, 9, 5)]
    assert case.expected(rows, history) == ["3,0,0,7,42", "3,0,0,8,0", "3,0,0,9,0"]


def test_travel_without_history_is_a_minute_a_segment(case):
    rows = [travel(0, 1, 7, 10, 15, 1, 100), travel(0, 1, 8, 15, 10, 1, 100), travel(0, 1, 9, 3, 3, 0, 0)]
    assert case.expected(rows) == ["4,0,0,7,300,0", "4,0,0,8,300,0", "4,0,0,9,0,0"]


def test_travel_passes_midnight_into_the_next_day_of_the_week(case, tmp_path):
    history = tmp_path / "history"
    history.mkdir()
    # Day 7 is day of week 7; the second segment is entered at minute 1441, minute 1 of day of week 1 (days 1
    # and 8).
    (history / "SegmentHistory.csv").write_text("7,1440,0,0,5,60,0,0\n1,1,0,0,6,20,60,0\n8,1,0,0,6,40,61,0\n")
    # lav 30, cnt 60.5: 120 s and 2 * 10.5^2 = 220.5, rounded up.
    assert case.expected([travel(0, 1, 7, 5, 7, 7, 1440)], history) == ["4,0,0,7,180,221"]


def test_shifted_copies_share_one_history(case, tmp_path):
    history = tmp_path / "history"
    history.mkdir()
    (history / "TollHistory.csv").write_text("1,5,0,30\n1,5,1,40\n")
    (history / "SegmentHistory.csv").write_text("1,9,1,0,5,30,0,0\n")
    (history / "manifest.json").write_text('{"copies": {"count": 3, "vid": 100, "xway": 2}}')
    rows = [
        daily(0, 1, 1, 5),
        daily(0, 201, 2, 5, xway=5),
        daily(0, 101, 3, 5, xway=5),
        daily(0, 301, 4, 5, xway=7),
        travel(0, 1, 5, 5, 6, 1, 9, xway=5),
        travel(0, 1, 6, 5, 6, 1, 9, xway=4),
        travel(0, 1, 7, 5, 6, 1, 9, xway=7),
    ]
    # Expressway 5 is 1 of copy 2; vehicle 101 belongs to copy 1; expressway 7 would be of copy 3, which is
    # not there.
    assert case.expected(rows, history) == [
        "3,0,0,1,30",
        "3,0,0,2,40",
        "3,0,0,3,0",
        "3,0,0,4,0",
        "4,0,0,5,120,0",
        "4,0,0,6,60,0",
        "4,0,0,7,60,0",
    ]
