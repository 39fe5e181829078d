"""Answers put together, and dead letters led back to their lines, whatever groups and copies were driven."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from linear_road.golden_input import GOLDEN, needs_data, report
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import open_slices
from penstock.linear_road.rows import read_blocks as reading
from penstock.linear_road.rows.copies import span_of
from penstock.linear_road.rows.inputs import Input, open_input
from penstock.linear_road.rows.read_blocks import lines_of
from penstock.linear_road.rows.refusals import REASONS
from penstock.linear_road.run.collect_answers import (
    LETTER_COLUMNS,
    Letter,
    Origins,
    count_answers,
    gather_answers,
    write_letters,
)
from penstock.linear_road.run.response_times import ResponseTimes


def letters_of(source: Input, place: Path, groups: int) -> list[Letter]:
    """What a pipeline would refuse: the rows that break the format, by delivered file and line."""
    refused = {row["raw"]: row["why"] for row in csv.DictReader((GOLDEN / "refused.csv").open())}
    plan = PreparePlan(source, groups, span=span_of(source), lenient=True)
    slices = prepare(plan, place)
    feed = feed_of(DrivePlan(place, lenient=True), slices)
    found = []
    for second in range(feed.begin, feed.end):
        for group, piece in enumerate(feed.at(second)):
            lines = piece.data.tobytes().decode().splitlines()
            # Of rows that are there twice only the second one is refused.
            for number, line in reversed(list(enumerate(lines, start=1))):
                if line in refused and (line not in lines[number:] or refused[line] != "report repeated"):
                    found.append((refused[line], f"/feed/t{second:06d}-g{group:03d}.csv", number, line))
    return found


@needs_data
@pytest.mark.parametrize("groups", [1, 2])
def test_letters_are_led_back_to_the_lines_of_the_input(tmp_path: Path, groups: int) -> None:
    source = open_input(GOLDEN / "rows.dat")
    letters = letters_of(source, tmp_path / "slices", groups)
    feed = feed_of(DrivePlan(tmp_path / "slices", lenient=True), open_slices(tmp_path / "slices"))
    traced = list(Origins(feed, source).trace(letters))
    expected = [
        (row["why"], "rows.dat", int(row["line"]), row["raw"])
        for row in csv.DictReader((GOLDEN / "refused.csv").open())
    ]
    assert traced == expected
    assert {letter[0] for letter in traced} <= set(REASONS)


@needs_data
def test_a_letter_that_the_driver_does_not_know_keeps_its_place(tmp_path: Path) -> None:
    source = open_input(GOLDEN / "rows.dat")
    slices = prepare(PreparePlan(source, lenient=True), tmp_path / "slices")
    origins = Origins(feed_of(DrivePlan(slices.path, lenient=True), slices), source)
    odd = [("speed out of range", "/feed/t000000-g000.csv", 1, "x"), ("late", "elsewhere", 7, "y")]
    assert list(origins.trace(odd)) == odd


def test_places_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("one\ntwo\n")
    (tmp_path / "b.csv").write_text("three\n\nfive")
    source = Input(tmp_path, (tmp_path / "a.csv", tmp_path / "b.csv"), "csv")
    assert lines_of(source, np.array([14, 4, 8, 0])) == [
        ("b.csv", 2),
        ("a.csv", 2),
        ("b.csv", 1),
        ("a.csv", 1),
    ]


def test_a_killed_preparation_keeps_the_places_of_refused_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [report(t, 1, 6000) for t in range(50)]
    rows[40:40] = ["even more rubbish"]
    rows[2:2] = ["rubbish", "more rubbish"]
    (tmp_path / "rows.dat").write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(reading, "CHUNK_BYTES", 400)
    plan, out = PreparePlan(open_input(tmp_path / "rows.dat"), lenient=True), tmp_path / "slices"
    blocks: list[int] = []

    def dies(done: int, _total: int) -> None:
        blocks.append(done)
        if len(blocks) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(plan, out, dies)
    assert not (out / "manifest.json").exists()
    # What a killed process wrote after its last note is cut off again.
    with (out / ".g000.slices.part").open("ab") as torn:
        torn.write(b"half a ro")
    slices = prepare(plan, out, lambda done, _total: blocks.append(done))
    assert blocks == sorted(set(blocks[:-1])) + blocks[-1:], "no block is cut twice"
    whole = prepare(plan, tmp_path / "whole")
    assert slices.refused.tolist() == whole.refused.tolist()
    assert slices.refused[:, :3].tolist() == [[1, 0, 1], [1, 0, 2], [39, 0, 1]]
    assert (out / "g000.slices").read_bytes() == (tmp_path / "whole" / "g000.slices").read_bytes()


def test_letters_have_a_header_and_survive_commas_and_quotes(tmp_path: Path) -> None:
    letters = [("not 15 integers", "rows.dat", 3, 'a,"b"'), ("unknown type", "rows.dat", 9, "7,1")]
    assert write_letters(letters, tmp_path / "letters.csv") == 2
    with (tmp_path / "letters.csv").open(newline="") as file:
        found = list(csv.reader(file))
    assert found == [list(LETTER_COLUMNS), *[[str(part) for part in letter] for letter in letters]]


def test_answers_become_one_file_and_are_timed(tmp_path: Path) -> None:
    parts = []
    for number, text in enumerate(["0,7,60,61.5,-1,0\n", "1,60,60.100,7,42\n0,8,120,125.001,35,1250\n", ""]):
        parts.append(tmp_path / f"part-{number}.csv")
        parts[-1].write_text(text)
    responses = ResponseTimes(scored_from=100)
    size = gather_answers(parts, tmp_path / "answers.csv", responses)
    assert (tmp_path / "answers.csv").read_text() == "".join(part.read_text() for part in parts)
    assert size == (tmp_path / "answers.csv").stat().st_size
    figures = responses.figures()
    assert figures["0"] == {
        "name": "toll notice",
        "answers": 2,
        "scored": 1,
        "p50": 5.001,
        "p95": 5.001,
        "p99": 5.001,
        "max": 5.001,
        "late": 1,
    }
    assert figures["1"]["answers"] == 1
    assert figures["1"]["scored"] == 0
    assert responses.by_second(0.5, 59, 62) == [None, pytest.approx(0.1, abs=0.05), None]


def test_answers_may_stay_in_parts(tmp_path: Path) -> None:
    parts = [tmp_path / f"part-{number}.csv" for number in range(2)]
    for part in parts:
        part.write_text("0,7,60,61.5,-1,0\n")
    responses = ResponseTimes()
    assert count_answers(parts, responses) == sum(part.stat().st_size for part in parts)
    assert responses.figures()["0"]["answers"] == 2
    assert sorted(tmp_path.iterdir()) == parts
