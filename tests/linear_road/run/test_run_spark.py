"""`lr run` on Spark: the golden answers exactly.

Stopped, killed and gone on with, nothing is lost, doubled or wrong.
"""

from __future__ import annotations

import csv
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from file_modes import open_to_others
from linear_road.golden_input import GOLDEN, MITSIM, lines, needs_data
from penstock.linear_road.run import runner as running
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.validate import validate

ROWS = GOLDEN / "rows.dat"


@needs_data
def test_golden_gives_its_expected_answers(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "warm_up", lambda _session, **_options: 0.0)
    record = running.run(RunPlan(GOLDEN, tmp_path / "out", speed=math.inf), session=spark)
    assert sorted(lines(tmp_path / "out" / "answers.csv")) == sorted(lines(GOLDEN / "expected.csv"))
    with (tmp_path / "out" / "dead_letters.csv").open(newline="") as file:
        letters = [(row["reason"], row["line"], row["raw"]) for row in csv.DictReader(file)]
    with (GOLDEN / "refused.csv").open(newline="") as file:
        assert letters == [(row["why"], row["line"], row["raw"]) for row in csv.DictReader(file)]
    assert record["finished"]
    assert record["clock"] == "none: maximum speed, Emit = Time"
    assert record["rates"]["tuples_in_per_s"] > record["rates"]["answers_per_s"] > 0
    assert record["answers"] == {"0": 2871, "1": 1103, "2": 699, "3": 164, "4": 283}
    again = running.run(RunPlan(GOLDEN, tmp_path / "out", GOLDEN, speed=math.inf))
    assert again == json.loads((tmp_path / "out" / "run.json").read_text()), "done is done"


def command(out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "penstock.cli.main", "lr", "run", "--out", str(out), *options]


def interrupted(out: Path, number: signal.Signals, after: int, *options: str) -> int:
    """Run until the driver has delivered second `after`, then send the signal; gives the exit code."""
    process = subprocess.Popen(command(out, *options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    note = out / "_checkpoint" / "feed" / "_drive.json"
    until = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < until:
        if note.is_file() and json.loads(note.read_text())["next"] > after:
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode in (-number, 130), said.decode()[-2000:]
    return process.returncode


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(800)
def test_killed_then_stopped_then_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--input", str(ROWS), "--history", str(GOLDEN), "--speed", "20")
    assert interrupted(out, signal.SIGKILL, 300, *options) == -signal.SIGKILL
    assert interrupted(out, signal.SIGINT, 800, *options) == 130
    assert open_to_others(tmp_path) == {}, "driver, workers and JVM"
    partly = lines(out / "answers.csv")
    done = subprocess.run(command(out, *options), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 3), done.stderr[-2000:]
    verdict = validate(ROWS, answers=out, history=GOLDEN, response_times=False)
    assert verdict.passed
    whole = lines(out / "answers.csv")
    assert 0 < len(partly) < len(whole)
    assert set(partly) <= set(whole), "what was answered stays answered, Emit and all"
    record = json.loads((out / "run.json").read_text())
    assert record["attempts"] == {"starts": 3, "clean_stops": 1, "kills": 1}
    assert all(row["emit"] >= row["time"] for row in emits(whole))


def emits(answers: list[str]) -> list[dict[str, float]]:
    fields = [line.split(",") for line in answers]
    at = [2 if row[0] == "0" else 1 for row in fields]
    return [{"time": float(row[i]), "emit": float(row[i + 1])} for row, i in zip(fields, at, strict=True)]


@needs_data
@pytest.mark.slow
def test_mitsim_as_it_stands(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "warm_up", lambda _session, **_options: 0.0)
    source = MITSIM / "reports_t0-323.dat"
    running.run(RunPlan(source, tmp_path / "out", speed=math.inf), session=spark)
    found, alerts = {}, {}
    for fields in csv.reader((tmp_path / "out" / "answers.csv").open()):
        if fields[0] == "0":
            found[fields[1], fields[2]] = (fields[4], fields[5])
        elif fields[0] == "1":
            alerts[fields[3], fields[1]] = fields[4]
    expected = list(csv.reader((MITSIM / "expected_t0-323.csv").open()))
    # The original validator: type, vid, time, lav, toll, accident segment or -1.
    theirs = {(row[1], row[2]): (row[3], row[4], row[5]) for row in expected}
    ours = {key: (*value, alerts.get(key, "-1")) for key, value in found.items()}
    assert ours == theirs
    assert len(ours) == 9284
    assert len(alerts) == 272
