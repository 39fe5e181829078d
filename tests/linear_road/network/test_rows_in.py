"""The pipeline's decoder refuses the rows that the page refuses, for the same reasons, second by second as
the driver delivers them.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings

from linear_road.golden_input import balance, report
from linear_road.rows.test_refusals_agree import by_the_page, dirty_inputs
from penstock.linear_road.drive.driver import DrivePlan, drive
from penstock.linear_road.errors import InputError
from penstock.linear_road.network.rows_in import decode


def by_the_pipeline(rows: list[str], directory: Path) -> tuple[list[tuple[str, str]], int]:
    """(reason, raw) of the refused rows of all delivered files, and how many were kept."""
    (directory / "rows.dat").write_bytes(("\n".join(rows) + "\n").encode())
    drive(DrivePlan(directory / "rows.dat", to=str(directory / "in"), speed=float("inf"), lenient=True))
    found, kept = [], 0
    for line in (directory / "in" / "_delivered.jsonl").read_text().splitlines():
        delivery = json.loads(line)
        for name, _, size, _ in delivery["files"]:
            data = (directory / "in" / name).read_bytes()
            assert len(data) == size
            columns, lines, reasons = decode(data, delivery["at"])
            text = data.split(b"\n")
            found += [
                (why, text[i].decode("utf-8", "replace").rstrip("\r"))
                for i, why in zip(lines, reasons, strict=True)
            ]
            kept += len(columns["Second"])
    return found, kept


@settings(deadline=None, max_examples=40)
@given(dirty_inputs())
def test_the_same_rows_for_the_same_reasons(rows):
    with TemporaryDirectory() as directory:
        expected = [(why, raw) for _, why, raw in by_the_page(rows)]
        if len(expected) == len(rows):
            with pytest.raises(InputError):
                by_the_pipeline(rows, Path(directory))
            return
        found, kept = by_the_pipeline(rows, Path(directory))
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
    columns, lines, reasons = decode("".join(row + "\n" for row in rows).encode(), 5)
    assert lines.tolist() == [20_000, 20_001, 20_002]
    assert reasons == ["report repeated"] * 3
    assert columns["VID"].tolist() == [*vids.tolist(), 3]
    assert columns["QID"].tolist() == [-1] * 20_000 + [1]


def test_lines_that_are_shorter_than_any_row():
    columns, lines, reasons = decode(b"\n" * 5000 + report(5, 1, 100).encode(), 5)
    assert (len(columns["VID"]), len(lines), set(reasons)) == (1, 5000, {"not 15 integers"})


def test_nothing():
    columns, lines, reasons = decode(b"", 5)
    assert (len(columns["VID"]), len(lines), reasons) == (0, 0, [])
