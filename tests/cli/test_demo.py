"""`penstock demo`: from an empty folder to five verdicts and a report.

It never touches a folder of somebody else.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import penstock_app


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    words = ["demo", "--out", str(tmp_path)]
    shown = CliRunner().invoke(penstock_app(words), words)
    assert shown.exit_code == 2
    assert "holds something else than an earlier demo" in shown.stderr
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_the_short_demo_runs_in_an_empty_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock.cli.main", "demo", "--short"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("PASS") == 5
    assert "Try next:" in done.stdout
    assert "penstock console " in done.stdout.replace("penstock.cli.main console", "penstock console")
    assert (tmp_path / "penstock-demo" / "run" / "_checkpoint" / "catalog.db").exists()
    assert "WARN" not in done.stderr
    page = (tmp_path / "penstock-demo" / "report.html").read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    answers = (tmp_path / "penstock-demo" / "run" / "answers.csv").read_text().splitlines()
    assert {line[0] for line in answers} == set("01234")
