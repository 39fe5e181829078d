"""`penstock lr validate` as a command: options, exit codes, table, JSON, working."""

from __future__ import annotations

import errno
import json

import duckdb
import pytest
import typer
from typer.testing import CliRunner

from linear_road.golden_input import GOLDEN, Case, balance, lines, needs_data, report
from penstock.cli.lr.validate import validate

app = typer.Typer()
app.command("validate")(validate)
ROWS = [report(0, 1, 100), report(30, 1, 5300), balance(31, 1, 7)]
RIGHT = ["0,1,0,0,-1,0", "0,1,30,30,-1,0", "2,31,31,31,7,0"]


def run(*options: object):
    return CliRunner().invoke(app, [str(option) for option in options])


@pytest.fixture
def source(tmp_path):
    assert Case(tmp_path).expected(ROWS) == RIGHT
    return tmp_path / "rows.dat"


def answers(tmp_path, rows: list[str]):
    file = tmp_path / "answers.csv"
    file.write_text("\n".join(rows) + "\n")
    return file


def test_right_answers_pass(source, tmp_path):
    result = run("--input", source, "--answers", answers(tmp_path, RIGHT))
    assert result.exit_code == 0
    assert result.output.count("PASS") == 5
    assert "All answers hold." in result.output


def test_wrong_answers_fail_with_the_working(source, tmp_path):
    result = run("--input", source, "--answers", answers(tmp_path, ["0,1,0,0,-1,8", *RIGHT[1:]]))
    assert result.exit_code == 1
    assert result.output.count("FAIL") == 1
    assert "toll notice: 1 wrong toll" in result.output
    assert "expected lav -1, toll 0; got lav -1, toll 8" in result.output
    assert (
        "No report at -30 on this expressway and direction: the first of a trip: a notice." in result.output
    )
    assert "Lav -1: none of the minutes -4..0 has data." in result.output


def test_json_holds_it_all(source, tmp_path):
    out = tmp_path / "verdict.json"
    run("--input", source, "--answers", answers(tmp_path, [*RIGHT[:2], "2,31,40,31,7,0"]), "--json", out)
    verdict = json.loads(out.read_text())
    assert verdict["passed"] is False
    assert verdict["reports"] == 2
    late = verdict["types"]["2"]
    assert (late["expected"], late["right"], late["late"], late["limit"]) == (1, 1, 1, 5)
    assert late["response"] == {"p50": 9.0, "p95": 9.0, "p99": 9.0, "max": 9.0}
    assert late["faults"][0]["working"] == ["emitted 9.000 s after its time; allowed are 0 to 5 s"]


def test_no_response_times(source, tmp_path):
    file = answers(tmp_path, [*RIGHT[:2], "2,31,400,31,7,0"])
    assert run("--input", source, "--answers", file).exit_code == 1
    assert run("--input", source, "--answers", file, "--no-response-times").exit_code == 0


def test_answers_in_many_files(source, tmp_path):
    directory = tmp_path / "answers"
    (directory / "type-2").mkdir(parents=True)
    (directory / "0.csv").write_text("\n".join(RIGHT[:2]) + "\n")
    (directory / "type-2" / "part-0").write_text(RIGHT[2] + "\n")
    (directory / "_log").mkdir()
    (directory / "_log" / "0.csv").write_text("not an answer\n")
    (directory / "run.json").write_text('{"speed": 4}')
    result = run("--input", source, "--answers", directory)
    assert result.exit_code == 0
    assert "speed 4" in result.output


def test_a_run_at_maximum_speed_has_no_limits(source, tmp_path):
    (tmp_path / "run.json").write_text('{"speed": "max"}')
    result = run("--input", source, "--answers", answers(tmp_path, [*RIGHT[:2], "2,31,400,31,7,0"]))
    assert result.exit_code == 0
    assert "not checked (maximum speed" in result.output


@needs_data
def test_why_names_vehicles_minutes_and_accidents(tmp_path):
    alert = next(line.split(",") for line in lines(GOLDEN / "expected.csv") if line.startswith("1,"))
    result = run("--input", GOLDEN / "rows.dat", "--why", f"{alert[3]},{alert[1]}")
    assert result.exit_code == 0
    assert f"in segment {alert[4]}, the nearest of" in result.output
    assert "stopped together in" in result.output
    assert "the mean of the minutes" in result.output


@needs_data
@pytest.mark.parametrize(
    ("kind", "text"), [("2", "Balance request"), ("3", "TollHistory of"), ("4", "Travel request")]
)
def test_why_explains_requests(kind, text):
    row = [line.split(",") for line in lines(GOLDEN / "rows.dat") if line.startswith(f"{kind},")][-1]
    result = run("--input", GOLDEN / "rows.dat", "--history", GOLDEN, "--why", f"{row[2]},{row[1]}")
    assert text in result.output


def test_why_of_nothing_says_so(source):
    assert "Vehicle 9 has no accepted report at 30." in run("--input", source, "--why", "9,30").output
    assert "(within a minute of it: 0, 30)" in run("--input", source, "--why", "1,29").output


BAD = {
    "nothing to do": ([], "nothing to do\n  hint:     give --answers, --expected or --why"),
    "no answers there": (["--answers", "nowhere.csv"], "answers nowhere.csv do not exist"),
    "no history there": (["--why", "1,1", "--history", "nowhere"], "history nowhere is not a directory"),
    "no place to write": (
        ["--expected", "no/where.csv"],
        "no/where.csv cannot be written: there is no directory no",
    ),
    "why": (["--why", "7"], "--why '7' is not VID,TIME\n  expected: two whole numbers such as 107,330"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_end_with_2_and_one_message(source, name):
    options, sentence = BAD[name]
    result = run("--input", source, *options)
    assert result.exit_code == 2
    assert result.stderr.startswith(sentence)
    assert all(line.startswith("  ") for line in result.stderr.splitlines()[1:])


def test_bad_files_end_with_2(source, tmp_path):
    assert run("--input", tmp_path / "none.dat", "--why", "1,1").exit_code == 2
    (tmp_path / "empty").mkdir()
    result = run("--input", source, "--answers", tmp_path / "empty")
    assert (result.exit_code, "hold no file named" in result.stderr) == (2, True)
    (tmp_path / "TollHistory.csv").write_text("1,2,x\n")
    result = run("--input", source, "--why", "1,1", "--history", tmp_path)
    assert (result.exit_code, "TollHistory.csv cannot be read with the columns" in result.stderr) == (2, True)
    (tmp_path / "run.json").write_text("[]")
    result = run("--input", source, "--answers", answers(tmp_path, RIGHT))
    assert (result.exit_code, "is no JSON object" in result.stderr) == (2, True)


def test_a_failed_run_leaves_no_half_file(source, tmp_path):
    out = tmp_path / "right.csv"
    (tmp_path / "SegmentHistory.csv").write_text("broken\n")
    assert run("--input", source, "--expected", out, "--history", tmp_path).exit_code == 2
    assert not out.exists()


def test_a_full_disk_leaves_no_half_file(source, tmp_path, monkeypatch):
    def fill(answers, out):
        out.write(answers.read(5))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("penstock.linear_road.validate.oracle.shutil.copyfileobj", fill)
    target = tmp_path / "out"
    target.mkdir()
    result = run("--input", source, "--expected", target / "right.csv")
    assert (result.exit_code, "No space left on device" in result.stderr) == (1, True)
    assert list(target.iterdir()) == []


def test_a_work_directory_out_of_disk_is_one_sentence(source, tmp_path, monkeypatch):
    def full(*_args):
        raise duckdb.TransactionException("Failed to commit: No space left on device")

    monkeypatch.setattr("penstock.linear_road.validate.journal.Journal.commit", full)
    result = run("--input", source, "--why", "1,1", "--work", tmp_path / "work")
    assert (result.exit_code, "ran out of memory or disk: Failed to commit" in result.stderr) == (2, True)
    assert list((tmp_path / "work").iterdir()) == []


def test_the_directory_of_a_run_is_its_answers_alone(source, tmp_path):
    out = tmp_path / "out"
    (out / "checkpoint").mkdir(parents=True)
    (out / "checkpoint" / "metadata").write_text("no answer\n")
    (out / "dead_letters.csv").write_text("reason,source,line,raw\n")
    (out / "run.json").write_text('{"speed": 1}')
    (out / "answers.csv").write_text("\n".join(RIGHT) + "\n")
    assert run("--input", source, "--answers", out).exit_code == 0
