"""`penstock lr drive` as a command: exit codes, sentences, the report."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.lr import drive as lr_drive
from penstock.linear_road.drive import targets
from penstock.linear_road.drive.clock import Clock
from penstock.linear_road.drive.driver import DrivePlan, drive

app = typer.Typer()
app.command("drive")(lr_drive.drive)
app.command("history")(lr_drive.history)


def run(*options):
    return CliRunner().invoke(app, ["drive", *map(str, options)])


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "rows.dat"
    row = "0,{t},{v},40,0,1,0,2,11000,-1,-1,-1,-1,-1,-1\n"
    file.write_text("".join(row.format(t=t, v=v) for t in range(4) for v in (3 * t, 3 * t + 1)))
    return file


def test_rows_on_standard_output_and_words_on_standard_error(source):
    command = [
        sys.executable,
        "-c",
        "from penstock.cli.lr.drive import drive; import typer; typer.run(drive)",
    ]
    done = subprocess.run(
        [*command, "--input", source, "--to", "-", "--speed", "100", "--most-late", "100"],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == source.read_bytes()
    assert b"lateness p50 / p99 / max" in done.stderr


def test_the_report_is_written_as_json(source, tmp_path):
    done = run(
        "--input",
        source,
        "--to",
        tmp_path / "to",
        "--speed",
        "100",
        "--most-late",
        "100",
        "--json",
        tmp_path / "r.json",
    )
    assert done.exit_code == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["rows"] == 8
    assert report["valid"] is True
    assert set(report["lateness_ms"]) == {"p50", "p99", "max"}


def test_prepare_alone_and_then_drive(source, tmp_path):
    done = run("--input", source, "--prepare", tmp_path / "p", "--copies", "3", "--groups", "3")
    assert done.exit_code == 0
    assert "24 rows of seconds 0..3 in 3 group(s)" in " ".join(done.stderr.split())
    done = run("--input", tmp_path / "p", "--to", tmp_path / "to", "--speed", "max")
    assert done.exit_code == 0
    assert len(list((tmp_path / "to").glob("t*"))) == 12
    assert "shifted copies" in done.stderr


def test_prepare_and_drive_in_one_go(source, tmp_path):
    assert (
        run(
            "--input", source, "--prepare", tmp_path / "p", "--to", tmp_path / "to", "--speed", "max"
        ).exit_code
        == 0
    )
    assert len(list((tmp_path / "to").glob("t*"))) == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--to", "kafka://x"], "Kafka targets come later"),
        (["--to", "-", "--speed", "fast"], "--speed fast is no number"),
        (["--to", "-", "--format", "xml"], "--format xml is not known\n  expected: text, packed or parquet"),
        (["--to", "-", "--from", "90"], "no rows to deliver"),
        (["--to", "-", "--xways", "0.75"], "--xways 0.75 is no multiple of the 0.5 expressways"),
        ([], "nothing to do\n  hint:     give --to TARGET, --prepare DIR, or both"),
    ],
)
def test_bad_options_exit_2_with_one_message(source, options, sentence):
    done = run("--input", source, *options)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert all(line.startswith("  ") for line in done.stderr.splitlines()[1:])


def test_a_missing_input_exits_2(tmp_path):
    done = run("--input", tmp_path / "none", "--to", "-")
    assert done.exit_code == 2
    assert "does not exist" in done.stderr


def test_bad_rows_exit_2_unless_lenient(source, tmp_path):
    source.write_text(source.read_text() + "so long\n")
    done = run("--input", source, "--to", tmp_path / "to", "--speed", "max")
    assert done.exit_code == 2
    assert "row 9 of rows.dat breaks the format: not 15 integers\n  found:    'so long'" in done.stderr
    assert run("--input", source, "--to", tmp_path / "to", "--speed", "max", "--lenient").exit_code == 0


def test_falling_behind_exits_3(source, tmp_path):
    done = run("--input", source, "--to", tmp_path / "to", "--speed", "100", "--most-late", "0.000001")
    assert done.exit_code == 3
    assert "NOT VALID: fell behind in 4 seconds, first at 0" in " ".join(done.stderr.split())


def test_the_tool_is_a_function_too(source, tmp_path):
    assert drive(DrivePlan(source, str(tmp_path / "to"), speed=100)).rows == 8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--most-late", "-1"], "--most-late -1 is not 0 or more\n  expected: seconds of the clock"),
        (["--most-late", "nan"], "--most-late nan is not 0 or more\n  expected: seconds of the clock"),
        (
            ["--json", "/nowhere/r.json"],
            "--json /nowhere/r.json cannot be written: there is no directory /nowhere",
        ),
        (["--json", "/"], "--json / cannot be written: it is a directory"),
    ],
)
def test_what_would_fail_after_the_drive_is_refused_before_it(source, tmp_path, options, sentence):
    done = run("--input", source, "--to", tmp_path / "to", "--speed", "max", *options)
    assert (done.exit_code, done.stderr) == (2, sentence + "\n")
    assert not (tmp_path / "to").exists()


def test_a_full_disk_names_what_was_written_not_the_input(source, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("penstock.linear_road.drive.prepare._Packer.add", full)
    done = run("--input", source, "--prepare", tmp_path / "slices")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"{tmp_path / 'slices'}: No space left on device")
    assert "make room" in done.stderr


def test_a_full_disk_that_takes_no_clock_either_still_leaves_a_report(source, tmp_path, monkeypatch):
    def full(descriptor, data):
        monkeypatch.setattr(Clock, "save", no_room)
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_room(_clock, _file):
        raise OSError(errno.ENOSPC, "No space left on device")

    to = tmp_path / "to"
    Path(to).mkdir()
    real = os.write
    monkeypatch.setattr(
        targets.os, "write", lambda d, data: real(d, data) if not list(to.glob("t*")) else full(d, data)
    )
    done = run("--input", source, "--to", to, "--speed", "100", "--most-late", "100")
    assert done.exit_code == lr_drive.NOT_VALID
    assert "NOT VALID" in done.stderr


def test_slices_are_not_prepared_again(source, tmp_path):
    assert run("--input", source, "--prepare", tmp_path / "slices").exit_code == 0
    done = run("--input", tmp_path / "slices", "--prepare", tmp_path / "more")
    assert (done.exit_code, "already holds slices" in done.stderr) == (2, True)
