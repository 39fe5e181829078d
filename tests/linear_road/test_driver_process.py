"""The driver as a process: a clean stop pauses the clock, a killed run does not, and nothing is left running."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_input import report

from penstock.linear_road.clock import CLOCK_FILE, Clock
from penstock.linear_road.drive import Drive
from penstock.linear_road.driver_process import DriverProcess, driver_note
from penstock.linear_road.inputs import open_input
from penstock.linear_road.prepare import Plan, prepare


@pytest.fixture
def plan(tmp_path: Path) -> Drive:
    rows = tmp_path / "rows.dat"
    rows.write_text("".join(report(t, 1, 6000) + "\n" for t in range(1000)))
    prepare(Plan(open_input(rows)), tmp_path / "slices")
    return Drive(tmp_path / "slices", to=str(tmp_path / "feed"), speed=20)


def wait_for(what: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


def started(plan: Drive, tmp_path: Path) -> DriverProcess:
    driver = DriverProcess.start(plan, tmp_path / "driver.log")
    wait_for(lambda: driver.note().get("next", 0) > 2 or not driver.running)
    assert driver.running, (tmp_path / "driver.log").read_text()
    return driver


def test_a_clean_stop_pauses_the_clock(plan: Drive, tmp_path: Path) -> None:
    driver = started(plan, tmp_path)
    assert driver.failure() is None
    driver.stop()
    assert Clock.load(driver.to).paused_at is not None
    assert driver.note()["report"]["stopped_at"] > 2
    assert driver.failure() is None, "it has reported"


def test_when_the_run_is_killed_the_driver_ends_and_the_clock_goes_on(plan: Drive, tmp_path: Path) -> None:
    driver = started(plan, tmp_path)
    assert driver.process.stdin is not None
    # What the other end of a pipe sees when its process is killed.
    driver.process.stdin.close()
    driver.process.wait(10)
    assert Clock.load(driver.to / CLOCK_FILE).paused_at is None
    assert driver_note(driver.to)["report"] is None


def test_a_driver_that_cannot_start_says_why(plan: Drive, tmp_path: Path) -> None:
    broken = Drive(tmp_path / "absent", to=plan.to)
    driver = DriverProcess.start(broken, tmp_path / "driver.log")
    driver.process.wait(60)
    assert "absent" in (driver.failure() or "")
    driver.stop()
