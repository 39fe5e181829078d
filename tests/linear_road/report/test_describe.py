"""`lr describe` on official data, on dirt, and on our own."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from linear_road.golden_input import SHARED, needs_data
from penstock.linear_road.describe.describe import describe
from penstock.linear_road.describe.show import draw, figures, plot_directory, tables
from penstock.linear_road.errors import InputError
from penstock.linear_road.traffic.generate import generate

REPORT = "0,{t},{vid},50,0,1,0,0,{pos},-1,-1,-1,-1,-1,-1\n"


@needs_data
def test_mitsim_gives_the_original_validators_counts() -> None:
    d = describe(SHARED / "mitsim" / "reports_t0-323.dat")
    assert d.counts == {0: 20136, 2: 119, 3: 18, 4: 95}
    assert sum(d.minutes.notices) == 9284
    assert sum(d.minutes.alerts) == 272
    assert not d.dirt
    assert sum(describe(SHARED / "mitsim" / "positions_t0-450.dat").minutes.notices) == 16355


@needs_data
def test_golden_gives_the_expected_counts_and_refuses_the_same_rows() -> None:
    golden = SHARED / "golden"
    d = describe(golden / "rows.dat")
    answers = [line.split(",") for line in (golden / "expected.csv").read_text().splitlines()]
    assert sum(d.minutes.notices) == sum(answer[0] == "0" for answer in answers) == 2871
    assert sum(d.minutes.tolled) == sum(answer[0] == "0" and answer[5] != "0" for answer in answers) == 668
    assert sum(d.minutes.toll_sum) == sum(int(answer[5]) for answer in answers if answer[0] == "0")
    assert sum(d.minutes.alerts) == sum(answer[0] == "1" for answer in answers) == 1103
    with (golden / "refused.csv").open() as file:
        refused = [(int(row["line"]), row["why"], row["raw"]) for row in csv.DictReader(file)]
    assert [(row.line, row.why, row.raw) for row in d.first_dirt] == refused


def test_our_own_accidents_are_found_by_the_rule(tmp_path: Path) -> None:
    generate(tmp_path, xways=1, minutes=24, seed=3)
    with (tmp_path / "accidents.csv").open() as file:
        told = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    found = describe(tmp_path).accidents
    assert [(a.xway, a.dir, a.lane, a.pos, a.detected) for a in found] == [
        (a["xway"], a["dir"], a["lane"], a["pos"], a["detected"]) for a in told
    ]
    assert [a.vehicles for a in found] == [tuple(sorted((a["vid1"], a["vid2"]))) for a in told]
    assert [a.cleared for a in found if a.cleared < 1400] == [
        a["cleared"] for a in told if a["cleared"] < 1400
    ]


def test_dirt_is_counted_and_the_first_ten_shown(tmp_path: Path) -> None:
    file = tmp_path / "dirty.csv"
    good = REPORT.format(t=1, vid=1, pos=10)
    file.write_text(good + "x\n" * 7 + "\n" + good + "0,1\n" + "1.5," * 14 + "1\n" + good + "1,2,3")
    d = describe(file)
    assert d.counts[0] == 1
    assert d.dirt == {"not 15 integers": 11, "report repeated": 2}
    assert len(d.first_dirt) == 10
    shown = next(table for table in tables(d) if str(table.title).startswith("Rows that break"))
    assert "13" in str(shown.title)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("0,1,1,101,0,1,0,0,10,-1,-1,-1,-1,-1,-1", "speed out of range"),
        ("0,1,1,50,0,5,0,0,10,-1,-1,-1,-1,-1,-1", "lane out of range"),
        ("0,1,1,50,0,1,2,0,10,-1,-1,-1,-1,-1,-1", "direction out of range"),
        ("0,1,1,50,0,1,0,1,10,-1,-1,-1,-1,-1,-1", "Seg is not Pos div 5280"),
        ("0,1,1,50,-1,1,0,0,10,-1,-1,-1,-1,-1,-1", "expressway out of range"),
        ("0,10800,1,50,0,1,0,0,10,-1,-1,-1,-1,-1,-1", "time out of range"),
        ("0,1,99999999999,50,0,1,0,0,10,-1,-1,-1,-1,-1,-1", "vehicle out of range"),
        ("2,1,1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1", "query out of range"),
        ("3,1,1,-1,0,-1,-1,-1,-1,1,-1,-1,-1,-1,70", "day out of range"),
        ("4,1,1,-1,0,-1,-1,-1,-1,1,5,100,1,1,-1", "end segment out of range"),
        ("4,1,1,-1,0,-1,-1,-1,-1,1,5,6,8,1,-1", "day of week out of range"),
        ("1,1,1,50,0,1,0,0,10,-1,-1,-1,-1,-1,-1", "unknown type"),
        ("0,1,1,50,0,1,0,0,10,-1,-1,-1,-1,-1,-1,-1", "not 15 integers"),
        ("0,1,1,50,0,1,0,0,10,-1,-1,-1,-1,-1,", "not 15 integers"),
        ("0,1,1,50,0,1,0,0,10,-1,-1,-1,-1,-1,-1,", "not 15 integers"),
    ],
)
def test_each_rule(tmp_path: Path, row: str, why: str) -> None:
    file = tmp_path / "rows.dat"
    file.write_text(row + "\n")
    assert describe(file).dirt == {why: 1}


@pytest.mark.parametrize(
    "row",
    [
        "4,1,1,-1,0,-1,-1,-1,-1,1,0,0,0,0,-1",
        "2,1,1,-1,-1,-1,-1,-1,-1,1,-1,-1,-1,-1,-1",
        " 2 ,1,1,7,7,7,7,7,7,1,7,7,7,7,7\r",
    ],
)
def test_unused_fields_are_not_looked_at(tmp_path: Path, row: str) -> None:
    file = tmp_path / "rows.dat"
    file.write_text(row + "\n")
    assert describe(file).dirt == {}


def test_a_leap_counts_only_if_the_next_row_is_back(tmp_path: Path) -> None:
    file = tmp_path / "rows.dat"
    file.write_text("".join(REPORT.format(t=t, vid=1, pos=10) for t in (0, 500, 530, 900, 531)))
    d = describe(file)
    assert d.dirt == {"time leaps ahead": 1}
    assert [row.line for row in d.first_dirt] == [4]


def test_an_empty_file_and_a_header_are_no_crash(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    assert figures(describe(tmp_path / "empty.csv"))["rate_mean"] == 0
    assert draw(describe(tmp_path / "empty.csv"), tmp_path / "plots") == []
    (tmp_path / "header.csv").write_text("Type,Time\n" + REPORT.format(t=0, vid=1, pos=10))
    assert describe(tmp_path / "header.csv").dirt == {"not 15 integers": 1}


def test_large_expressway_numbers(tmp_path: Path) -> None:
    file = tmp_path / "rows.dat"
    rows = [
        f"0,{t},{v},50,{x},1,0,0,10,-1,-1,-1,-1,-1,-1"
        for t in (0, 30)
        for v in (1, 2)
        for x in (0, 2**31 - 1)
    ]
    file.write_text("\n".join(rows) + "\n")
    d = describe(file)
    assert (d.trips, d.vehicles, d.dirt) == (4, 2, {})


def test_plots(tmp_path: Path) -> None:
    generate(tmp_path / "in", xways=0.5, minutes=2)
    pictures = draw(describe(tmp_path / "in"), plot_directory(tmp_path / "in"))
    assert {p.name for p in pictures} == {"rate.png", "speed.png", "tolls.png", "histograms.png"}
    assert all(
        p.read_bytes().startswith(b"\x89PNG") and p.parent == tmp_path / "in" / "plots" for p in pictures
    )


def test_plots_of_a_foreign_file_never_go_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "a.dat").write_text("")
    assert plot_directory(tmp_path / "theirs" / "a.dat") == tmp_path / "a-plots"
    (tmp_path / "theirs").chmod(0o555)
    assert plot_directory(tmp_path / "theirs") == tmp_path / "theirs-plots"


def test_truncated_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        describe(tmp_path / "a.parquet")


def test_tolls_by_hand(tmp_path: Path) -> None:
    """60 slow cars in segment 0 in minute 1: whoever comes in minute 2 is quoted 2 * (60 - 50)^2."""
    slow = [f"0,0,{v},20,0,1,0,0,{100 + v},-1,-1,-1,-1,-1,-1" for v in range(60)]
    late = "0,60,999,20,0,0,0,0,100,-1,-1,-1,-1,-1,-1"
    (tmp_path / "rows.csv").write_text("\n".join([*slow, late]) + "\n")
    minutes = describe(tmp_path / "rows.csv").minutes
    assert minutes.notices == [60, 1]
    assert minutes.toll_sum == [0, 200]
    assert np.nanmax(minutes.toll_map[1]) == 200
