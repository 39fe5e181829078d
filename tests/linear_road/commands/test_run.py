"""`lr run` and `lr rate` at the command line: what is wrong is told in one sentence, before Spark starts.

Figures are shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from linear_road.golden_input import report
from penstock.cli.lr.commands import lr_app
from penstock.cli.lr.rate import line, table_of
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.report.live_view import live_table
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.run.live_answers import LiveAnswers
from penstock.linear_road.run.progress import RunProgress


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.dat"
    file.write_text("".join(report(t, 1, 6000) + "\n" for t in range(120)))
    return file


def call(*words: object) -> Any:
    given = [str(word) for word in words]
    return CliRunner().invoke(lr_app(given), given)


def test_what_is_wrong_is_told_in_one_sentence(tmp_path: Path, rows: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "answers.csv").touch()
    parquet = prepare(PreparePlan(open_input(rows), format="parquet"), tmp_path / "parquet").path
    for words, sentence in (
        (("run", "--input", tmp_path / "no", "--out", tmp_path / "o"), "does not exist"),
        (("run", "--input", rows, "--out", tmp_path / "old"), "its checkpoint is not at"),
        (
            ("run", "--input", rows, "--out", tmp_path / "o", "--speed", 2, "--max-speed"),
            "contradict each other",
        ),
        (("run", "--input", rows, "--out", tmp_path / "o", "--speed", 0), "--speed 0 is not above 0"),
        (("run", "--input", parquet, "--out", tmp_path / "o"), "prepare them with --format csv"),
        (("rate", "--mode", "fast", "--out", tmp_path / "o"), "--mode fast is not known"),
        (("rate", "--from", 9, "--to", 3, "--out", tmp_path / "o"), "--to 3 is below --from 9"),
    ):
        result = call(*words)
        assert result.exit_code == 2, result.output
        assert sentence in result.output
        assert "Traceback" not in result.output
    assert not (tmp_path / "o").exists(), "nothing is made for a call that cannot work"


def test_the_live_view_shows_what_is_known(tmp_path: Path, rows: Path) -> None:
    slices = prepare(PreparePlan(open_input(rows)), tmp_path / "slices")
    progress = RunProgress(feed_of(DrivePlan(slices.path), slices), tmp_path / "feed")
    progress.second, progress.rows_in, progress.charges, progress.charged = 61, 1234, 7, 5000
    progress.accidents = 98_765
    newest = LiveAnswers()
    newest.read("1,60,60.900,107,42\n")
    console = Console(width=120, record=True)
    console.print(live_table(progress, newest))
    shown = console.export_text()
    for part in (
        "1:01 of 2:00",
        "1,234 in",
        "max 0.90 s of 5 s allowed",
        "5,000 in 7 charges",
        "98,765",
    ):
        assert part in shown


def test_a_trial_that_was_not_validated_is_not_shown_as_right() -> None:
    figures = {str(kind): {"p50": 1, "p95": 2, "p99": 3, "max": 61.5, "late": 9} for kind in range(5)}
    trial = {
        "L": 400,
        "pass": False,
        "late": 45,
        "wrong": None,
        "latency": figures,
        "void": None,
        "gave_up_at": 10700,
        "confirming": False,
        "seconds": [10500, 10800],
        "scored_from": 10620,
        "cost": {},
    }
    assert "not checked wrong" in line(trial)
    assert "given up at second 10700" in line(trial)
    console = Console(width=300, record=True)
    console.print(table_of({"mode": "peak", "rating": 200, "trials": [trial]}))
    shown = console.export_text()
    assert "L = 200" in shown
    assert "1.00/2.00/3.00/61.50" in shown
    assert "FAIL (given up" in shown
