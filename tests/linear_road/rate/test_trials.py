"""A trial as a process: a fake `lr run` that crashes, is refused, falls behind, or outlives nobody."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linear_road.rate.test_rating import plan, record
from linear_road.road_run import answers, dry
from penstock.cli.lr.rate import line, table_of
from penstock.linear_road.drive.driver import DrivePlan, drive
from penstock.linear_road.errors import RateError
from penstock.linear_road.rate import rating
from penstock.linear_road.rate.prepared_input import RateSet, prepare_set
from penstock.linear_road.rate.search import NextTrial
from penstock.linear_road.report import rating_page
from penstock.process import child_process as child

SMALL = {"begin": 2, "base": 0.5, "traffic_minutes": 4, "minutes": 1, "days": 1}

FAKE = """
import json, sys
from pathlib import Path
plan = json.loads(sys.argv[1])
out, expressways = Path(plan["out"]), plan["expressways"]
out.mkdir()
"""
CRASHES = "print('starting'); print('java.lang.OutOfMemoryError: heap'); sys.exit(1)\n"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> RateSet:
    return prepare_set(plan(tmp_path_factory.mktemp("set"), **SMALL), lambda _name, _done, _total: None, 1)


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Let this script stand in for a run; it knows `out` and `expressways`."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE + body)
    monkeypatch.setattr(rating, "_RUN", (sys.executable, str(script)))


def attempt(tmp_path: Path, prepared: RateSet, expressways: float = 1.5) -> rating.TrialRun:
    return rating.TrialRun(plan(tmp_path, **SMALL), prepared, NextTrial("try", expressways), 3)


def test_a_crash_is_a_failed_trial_with_its_last_words(
    tmp_path: Path, prepared: RateSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, CRASHES)
    tried = attempt(tmp_path, prepared)
    trial = tried.run()
    assert (trial["L"], trial["pass"], trial["void"], trial["wrong"]) == (1.5, False, None, None)
    assert trial["crashed"] == "exit code 1: java.lang.OutOfMemoryError: heap"
    assert tried.log.name == "003-try-1.5.log"
    assert "FAIL (crashed: exit code 1" in line(trial)
    result = {"mode": "peak", "rating": 0, "trials": [trial]}
    assert table_of(result).row_count == 1
    assert "OutOfMemoryError" in rating_page({**result, "what_was_shortened": []})
    json.dumps(trial)


def test_options_that_a_run_refuses_end_the_rating(
    tmp_path: Path, prepared: RateSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, "print('--history x is no directory'); sys.exit(2)\n")
    with pytest.raises(RateError, match=r"L = 1.5 was refused .*--history x is no directory"):
        attempt(tmp_path, prepared).run()


def test_a_run_that_was_stopped_before_it_drove_is_void(
    tmp_path: Path, prepared: RateSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, "sys.exit(130)\n")
    trial = attempt(tmp_path, prepared).run()
    assert (trial["void"], trial["crashed"]) == ("the trial was stopped", None)


def test_after_a_crash_the_search_goes_on_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = json.dumps(record(finished=False, driver={"stopped_at": 9}))
    body = f"if expressways > 1: {CRASHES}(out / 'run.json').write_text('''{kept}''')\n"
    fake(tmp_path, monkeypatch, body)
    result = rating.rate(plan(tmp_path, **SMALL))
    tried = [(t["L"], "crashed" in t, t["void"]) for t in result["trials"]]
    # What was stopped is void, and made again until that is enough.
    assert tried == [
        (2, True, None),
        *[(1, False, "the trial was stopped")] * 3,
        *[(0.5, False, "the trial was stopped")] * 3,
    ]
    assert result["rating"] == 0
    assert len(json.loads((tmp_path / "out" / "trials.json").read_text())["trials"]) == 7


def test_a_crash_at_the_smallest_load_tells_of_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, CRASHES)
    with pytest.raises(RateError, match=r"L = 1 failed, so no L can be tried: exit code 1: java"):
        rating.rate(plan(tmp_path, **{**SMALL, "begin": 1}))
    assert not (tmp_path / "out" / "trials.json").exists(), "the same command tries it again"


def test_what_a_killed_rating_left_never_meets_the_next_trial(tmp_path: Path) -> None:
    wanted = tmp_path / "trials" / "003-try-1.5"
    assert rating.fresh_folder(wanted) == wanted
    for number in (1, 2):
        (wanted if number == 1 else wanted.with_name("003-try-1.5+1")).mkdir()
        assert rating.fresh_folder(wanted).name == f"003-try-1.5+{number}"
    (tmp_path / "trials" / "003-try-1").mkdir()
    assert sorted(p.name for p in wanted.parent.iterdir()) == ["003-try-1"]


def test_room_is_asked_for_when_what_a_killed_rating_left_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = plan(tmp_path, **SMALL)
    left = wanted.out / "trials" / "000-try-2"
    left.mkdir(parents=True)

    def refuse(*_: object) -> None:
        raise RateError("no room" if not left.exists() else "asked too early")

    monkeypatch.setattr(rating, "refuse_without_room", refuse)
    with pytest.raises(RateError, match="no room"):
        rating.rate(wanted)
    fake(tmp_path, monkeypatch, CRASHES)  # it must not be asked: the trial was driven already
    left.with_name("000-try-2+1").mkdir()
    (left.with_name("000-try-2+1") / "run.json").write_text(json.dumps(record()))
    (left.with_name("000-try-2+1") / "answers.csv").touch()
    with pytest.raises(RateError, match="no room"):
        rating.rate(wanted)
    (trial,) = json.loads((wanted.out / "trials.json").read_text(encoding="utf-8"))["trials"]
    assert trial["validation"], "it was judged, and the next one needs room"


def test_a_driver_that_fell_behind_voids_what_was_judged(
    tmp_path: Path, prepared: RateSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = json.dumps(record(driver={"late_seconds": 2, "first_late": 61}))
    fake(tmp_path, monkeypatch, f"(out / 'run.json').write_text('{kept}'); (out / 'answers.csv').touch()\n")
    tried = attempt(tmp_path, prepared)
    trial = tried.run()
    assert (trial["pass"], trial["void"]) == (False, "the driver fell behind in 2 seconds, first at 61")
    assert trial["wrong"] == trial["validation"]["types"]["0"]["missing"] + sum(
        trial["validation"]["types"][kind]["missing"] for kind in "1234"
    ), "what is missing is wrong"
    assert trial["wrong"] > 0
    tried.clear()
    assert not (tried.folder / "answers.csv").exists(), "answers are not kept unless asked for"


def test_a_run_that_ended_before_the_rating_was_killed_is_only_judged(
    tmp_path: Path, prepared: RateSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = json.dumps(record())
    fake(tmp_path, monkeypatch, f"(out / 'run.json').write_text('{kept}'); (out / 'answers.csv').touch()\n")
    first = attempt(tmp_path, prepared).run()
    fake(tmp_path, monkeypatch, CRASHES)  # it must not be asked
    again = attempt(tmp_path, prepared)
    assert again.run()["validation"] == first["validation"]
    again.clear()
    assert attempt(tmp_path, prepared).run()["crashed"], "without its answers it has to run again"


def test_a_copy_that_is_cut_off_is_judged_by_its_half(tmp_path: Path) -> None:
    chosen = plan(tmp_path, **{**SMALL, "base": 1})
    prepared = prepare_set(chosen, lambda _name, _done, _total: None, 1)
    tried = rating.TrialRun(chosen, prepared, NextTrial("try", 1.5), 0)
    assert prepared.copies(1.5) == (1, 0.5)
    window = tried.window
    drive(
        DrivePlan(
            prepared.slices.path,
            to=str(tmp_path / "in"),
            speed=float("inf"),
            begin=window.begin,
            end=window.end,
            expressways=1.5,
            groups=2,
        )
    )
    dry(tmp_path, prepared.history).run_all()
    right = answers(tmp_path)
    file = tried.folder / "answers.csv"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(right) + "\n")
    verdict = tried.verdict()
    assert (verdict.wrong, verdict.copies) == (0, 2)
    assert sum(found.got for found in verdict.types.values()) == len(right) > 100

    assert prepared.slices.span is not None
    of_copy = [
        i
        for i, line in enumerate(right)
        if line[0] == "0" and int(line.split(",")[1]) >= prepared.slices.span.vids
    ]
    assert 0 < len(of_copy) < len(right) / 2, "the second copy is smaller"
    file.write_text("\n".join(line for i, line in enumerate(right) if i != of_copy[0]) + "\n")
    verdict = tried.verdict()
    assert (verdict.wrong, verdict.types[0].missing) == (1, 1)
    assert verdict.faults[0].startswith("copy 1, toll notice")


# -- children end with their parent

CHILD = """
import os, sys, time
from pathlib import Path
from penstock.process.child_process import end_group_at_once, when_parent_is_gone
when_parent_is_gone(end_group_at_once)
Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(300)
"""
PARENT = """
import sys
from pathlib import Path
from penstock.process.stop_signal import sigterm_as_ctrl_c
from penstock.process.child_process import run_child
with sigterm_as_ctrl_c():
    run_child([sys.executable, *sys.argv[1:]], Path(sys.argv[2] + ".log"))
"""


def wait_for(what: Callable[[], Any], seconds: float = 60) -> Any:
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)
    return found


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_trial_never_outlives_its_rating(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    words = [sys.executable, "-c", PARENT, str(tmp_path / "child.py"), str(tmp_path / "pid")]
    parent = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    pid = int(wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    parent.send_signal(number)
    parent.wait(60)
    wait_for(lambda: not runs(pid))


def test_a_child_that_does_not_heed_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('deaf', flush=True); time.sleep(300)"
    )
    log = tmp_path / "log"
    begun: list[subprocess.Popen[bytes]] = []

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if not begun:
            begun.append(process)
            wait_for(lambda: child.last_said(log) == "deaf")
            raise KeyboardInterrupt
        return waits(process, timeout)

    waits = subprocess.Popen.wait
    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        child.run_child([sys.executable, "-c", deaf], log, patience=0.2)
    assert begun[0].returncode == -signal.SIGKILL
    assert not runs(begun[0].pid)
