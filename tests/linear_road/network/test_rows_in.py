"""The pipeline's decoder refuses the rows that the page refuses, for the same reasons, second by second as
the driver delivers them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from

from linear_road.golden_input import balance, report
from linear_road.rows.test_refusals_agree import by_the_page, dirty_inputs
from penstock.linear_road.drive.driver import DrivePlan, drive
from penstock.linear_road.errors import InputError
from penstock.linear_road.network.rows_in import decode
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.inputs import Delivery
from penstock.linear_road.rows.packed_rows import empty, join_shifted, pack


def by_the_pipeline(
    rows: list[str], directory: Path, delivery: Delivery
) -> tuple[list[tuple[str, str]], int]:
    """(reason, raw) of the refused rows of all delivered files, and how many were kept."""
    (directory / "rows.dat").write_bytes(("\n".join(rows) + "\n").encode())
    plan = DrivePlan(directory / "rows.dat", to=str(directory / "in"), speed=float("inf"), lenient=True)
    drive(replace(plan, delivery=delivery))
    found, kept = [], 0
    for line in (directory / "in" / "_delivered.jsonl").read_text().splitlines():
        listed = json.loads(line)
        for name, _, size, _ in listed["files"]:
            data = (directory / "in" / name).read_bytes()
            assert len(data) == size
            columns, lines, reasons, raw = decode(data, listed["at"])
            if delivery == "text":
                text = data.split(b"\n")
                raw = [text[i].decode("utf-8", "replace").rstrip("\r") for i in lines]
            found += zip(reasons, raw, strict=True)
            kept += len(columns["Second"])
    return found, kept


@settings(deadline=None, max_examples=40)
@given(dirty_inputs(), sampled_from(("text", "packed")))
def test_the_same_rows_for_the_same_reasons(rows, delivery):
    with TemporaryDirectory() as directory:
        expected = [(why, raw) for _, why, raw in by_the_page(rows)]
        if len(expected) == len(rows):
            with pytest.raises(InputError):
                by_the_pipeline(rows, Path(directory), delivery)
            return
        found, kept = by_the_pipeline(rows, Path(directory), delivery)
        assert sorted(found) == sorted(expected)
        assert kept == len(rows) - len(expected)


def test_many_reports_of_one_second_some_repeated():
    """More than the filter can tell apart: whoever is looked at again is found not to repeat, and those who
    do are found.
    """
    vids = np.random.default_rng(1).permutation(20_000)
    rows = [report(5, vid, 100 + vid) for vid in vids]
    again = [17, 9_000, 19_999]
    rows += [rows[i] for i in again] + [balance(5, 3, 1)]
    columns, lines, reasons, _ = decode("".join(row + "\n" for row in rows).encode(), 5)
    assert lines.tolist() == [20_000, 20_001, 20_002]
    assert reasons == ["report repeated"] * 3
    assert columns["VID"].tolist() == [*vids.tolist(), 3]
    assert columns["QID"].tolist() == [-1] * 20_000 + [1]


def test_lines_that_are_shorter_than_any_row():
    columns, lines, reasons, _ = decode(b"\n" * 5000 + report(5, 1, 100).encode(), 5)
    assert (len(columns["VID"]), len(lines), set(reasons)) == (1, 5000, {"not 15 integers"})


def test_nothing():
    columns, lines, reasons, _ = decode(b"", 5)
    assert (len(columns["VID"]), len(lines), reasons) == (0, 0, [])


def test_packed_rows_are_read_as_their_text_is():
    """Several shifted copies, with rows that cannot be packed: the same columns, refusals and raw rows."""
    rows = [report(5, vid, 100 + vid) for vid in range(300)] + [balance(5, 7, 3)]
    odd = [
        "nonsense",
        " " + rows[9],
        rows[12],
        report(6, 900, 100),
        rows[0] + ",1",
        report(5, 901, 100, spd=300),
    ]
    rows[20:20] = odd[:3]
    text = "".join(f"{row}\n" for row in [*rows, *odd[3:], report(5, 902, 7, xway=40_000)]).encode()
    shifts = [(k * 1000, k * 100, 2 * k) for k in range(5)]
    part = pack(np.frombuffer(text, np.uint8), 5)
    assert len(part.lines) == 5
    data, count = join_shifted([part] * 5, shifts)
    moved = b"".join(
        csv_rows.shift(np.frombuffer(text, np.uint8), part.rows, *shift).tobytes() for shift in shifts
    )
    plain, packed = decode(moved, 5), decode(data.tobytes(), 5)
    assert count == moved.count(b"\n")
    assert {name: np.asarray(c).tolist() for name, c in plain[0].items()} == {
        name: np.asarray(c).tolist() for name, c in packed[0].items()
    }
    assert (plain[1].tolist(), plain[2]) == (packed[1].tolist(), packed[2])
    lines = moved.decode().split("\n")
    assert packed[3] == [lines[i] for i in plain[1]]


def test_packed_rows_that_were_cut_off_or_hold_nothing():
    data, _ = join_shifted(
        [pack(np.frombuffer(report(5, 1, 100).encode() + b"\n", np.uint8), 5)], [(0, 0, 0)]
    )
    for cut in (8, 20, len(data) - 1):
        with pytest.raises(InputError, match="do not have the length that their head says"):
            decode(data[:cut].tobytes(), 5)
    columns, lines, reasons, raw = decode(empty(0, 0, 0, 0)[0].tobytes(), 5)
    assert (len(columns["VID"]), len(lines), reasons, raw) == (0, 0, [], [])
