"""The driver as a process: a clean stop pauses the clock, a killed run does not; nothing is left running."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from linear_road.golden_input import report
from penstock.linear_road.drive.clock import CLOCK_FILE, Clock
from penstock.linear_road.drive.drive_report import STATE_FILE
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.driver_process import DriverProcess
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import open_slices
from penstock.linear_road.errors import RunError
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.run_folder import open_run_folder
from penstock.linear_road.run.runner import Watcher, _NetworkRun


@pytest.fixture
def plan(tmp_path: Path) -> DrivePlan:
    rows = tmp_path / "rows.dat"
    rows.write_text("".join(report(t, 1, 6000) + "\n" for t in range(1000)))
    prepare(PreparePlan(open_input(rows)), tmp_path / "slices")
    return DrivePlan(tmp_path / "slices", to=str(tmp_path / "feed"), speed=20)


def wait_for(what: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


def started(plan: DrivePlan, tmp_path: Path) -> DriverProcess:
    driver = DriverProcess.start(plan, tmp_path / "driver.log")
    wait_for(lambda: driver.note().get("next", 0) > 2 or not driver.running)
    assert driver.running, (tmp_path / "driver.log").read_text()
    return driver


def test_a_clean_stop_pauses_the_clock(plan: DrivePlan, tmp_path: Path) -> None:
    driver = started(plan, tmp_path)
    assert driver.failure() is None
    driver.stop()
    clock = Clock.load(driver.to)
    assert clock.paused_at is not None
    assert driver.note()["report"]["stopped_at"] > 2
    # A rename sets the change time. The kernel's coarse clock may lag by a tick.
    came = {int(file.name[1:7]): file.stat().st_ctime for file in driver.to.glob("t*")}
    assert all(came[t] >= clock.due(t) - 0.011 for t in came), "no file is early"
    stopped_at = driver.note()["report"]["stopped_at"]
    assert driver.failure() == f"it was stopped at second {stopped_at}", "the input is not through"


def test_when_the_run_is_killed_the_driver_ends_and_the_clock_goes_on(
    plan: DrivePlan, tmp_path: Path
) -> None:
    driver = started(plan, tmp_path)
    assert driver.process.stdin is not None
    # What the other end of a pipe sees when its process is killed.
    driver.process.stdin.close()
    driver.process.wait(60)
    assert Clock.load(driver.to / CLOCK_FILE).paused_at is None
    assert driver.note()["report"] is None


def test_the_report_of_an_earlier_attempt_does_not_count(plan: DrivePlan, tmp_path: Path) -> None:
    driver = started(plan, tmp_path)
    driver.stop()
    again = DriverProcess.start(
        DrivePlan(tmp_path / "absent", to=plan.to, resume=True), tmp_path / "again.log"
    )
    assert again.note()["report"] is None
    again.process.wait(60)
    assert "absent" in (again.failure() or "")
    assert again.note()["next"] > 2, "where to go on is kept"
    again.stop()


def test_a_driver_that_lost_its_target_or_was_killed_has_failed(plan: DrivePlan, tmp_path: Path) -> None:
    driver = started(plan, tmp_path)
    note = driver.note()
    driver.process.kill()
    driver.process.wait(60)
    ended = {"lost": None, "stopped_at": None}
    for told, code, why in (
        ({**ended, "lost": "/feed was lost at second 7"}, 0, "/feed was lost at second 7"),
        ({**ended, "stopped_at": 7}, 0, "it was stopped at second 7"),
        (ended, -9, "exit code -9"),
        (ended, 0, None),
    ):
        driver.process.returncode = code
        (driver.to / STATE_FILE).write_text(json.dumps({**note, "report": told}))
        driver.log.write_text("")
        assert driver.failure() == why


def test_a_driver_that_stopped_short_does_not_end_a_run(plan: DrivePlan, tmp_path: Path) -> None:
    feed = feed_of(plan, open_slices(plan.source))
    place = open_run_folder(RunPlan(tmp_path / "rows.dat", tmp_path / "out"))
    following = _NetworkRun(
        RunPlan(tmp_path / "rows.dat", tmp_path / "out"), place, plan, feed, threading.Event(), Watcher()
    )
    driver = SimpleNamespace(running=False, failure=lambda: None, note=lambda: {"next": 7})
    with pytest.raises(RunError, match=r"ended before its time: it got to second 7, not to 1000"):
        following._follow(None, driver, None)  # type: ignore[arg-type]


def test_a_driver_that_cannot_start_says_why(plan: DrivePlan, tmp_path: Path) -> None:
    broken = DrivePlan(tmp_path / "absent", to=plan.to)
    driver = DriverProcess.start(broken, tmp_path / "driver.log")
    driver.process.wait(60)
    assert "absent" in (driver.failure() or "")
    driver.stop()
