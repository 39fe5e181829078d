"""The commands: output, exit codes, one sentence for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.lr.commands import app

run = CliRunner().invoke


def test_generate_and_describe(tmp_path: Path) -> None:
    out = tmp_path / "in"
    made = run(app, ["generate", "--xways", "0.5", "--minutes", "2", "--out", str(out), "--jobs", "1"])
    assert made.exit_code == 0, made.output
    assert "rows in 1 files" in made.stdout
    seen = run(app, ["describe", str(out), "--json", str(tmp_path / "d.json")])
    assert seen.exit_code == 0, seen.output
    assert "position reports" in seen.stdout
    assert (out / "plots" / "speed.png").is_file()
    manifest = json.loads((out / "manifest.json").read_text())
    assert json.loads((tmp_path / "d.json").read_text())["counts"] == manifest["counts"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--xways", "0.3"], "the number of expressways is 0.3\n  expected: a multiple of 0.5"),
        (["--xways", "1", "--minutes", "999"], "the run is 999 minutes long\n  expected: 1 to 180"),
        (["--xways", "1", "--format", "xml"], "the format is 'xml'\n  expected: csv or parquet"),
        (["--xways", "1", "--jobs", "0"], "the number of jobs is 0\n  expected: at least 1"),
        (["--xways", "1", "--seed", "-4"], "the seed is -4"),
    ],
)
def test_bad_options_are_one_message(tmp_path: Path, options: list[str], sentence: str) -> None:
    result = run(app, ["generate", *options, "--out", str(tmp_path / "in")])
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (tmp_path / "in").exists()


def test_describe_of_nothing(tmp_path: Path) -> None:
    result = run(app, ["describe", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "rows")

    monkeypatch.setattr("penstock.linear_road.traffic.merge.pa_csv.write_csv", full)
    result = run(app, ["generate", "--xways", "0.5", "--minutes", "1", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr


def test_numpy_out_of_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args, **_kwargs):
        raise OSError("249391 requested and 119792 written")

    monkeypatch.setattr("penstock.linear_road.traffic.finished_directions.np.save", full)
    result = run(app, ["generate", "--xways", "0.5", "--minutes", "1", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "it is cut short (249391 requested and 119792 written); is the disk full" in result.stderr
