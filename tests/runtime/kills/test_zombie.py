"""A process is suspended, another takes over, the first goes on: the rows of one run, and one sentence.

And starts that are killed at any moment: the next one works.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from penstock.testing.crash import suspend_at
from runtime.kills.endings import log_since, size
from runtime.kills.expectation import check, kill_family, start, write_input
from soak import SOAK, count

POINTS = (
    "train-after-commit",
    "ticket-after-write",
    "train-before-commit",
    "ticket-before-write",
    "train-published",
)
KILLS = count(2, soak=20)
TAKE_OVER = {**os.environ, "PENSTOCK_TEST_TAKE_OVER": "1"}


def suspended(process) -> bool:
    """Wait until the kernel has stopped the process; False if it has ended instead."""
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        if stat.rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("point", POINTS[: count(1, soak=len(POINTS))])
def test_a_suspended_owner_is_followed_and_fenced(tmp_path, point, record_property):
    write_input(tmp_path, 600)
    started = [start(tmp_path, environment=suspend_at(point, 3))]
    try:
        assert suspended(started[0]), (tmp_path / "log.txt").read_text()[-3000:]
        before = size(tmp_path)
        started.append(start(tmp_path))
        assert started[1].wait(timeout=300) != 0
        said = log_since(tmp_path, before).decode()
        assert f"is in use by process {started[0].pid} on host" in said
        started.append(start(tmp_path, environment=TAKE_OVER))
        assert started[2].wait(timeout=900) == 0, (tmp_path / "log.txt").read_text()[-3000:]
        before = size(tmp_path)
        os.kill(started[0].pid, signal.SIGCONT)
        assert started[0].wait(timeout=300) != 0
        assert "has taken over this checkpoint" in log_since(tmp_path, before).decode()
    finally:
        for process in started:
            kill_family(process.pid)
    record_property("zombies_fenced", 1)
    print(check(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_starts_that_are_killed_leave_nothing_in_the_way(tmp_path, record_property):
    write_input(tmp_path, 400)
    dice, started = random.Random(4), []
    try:
        for _ in range(KILLS):
            started.append(start(tmp_path))
            owners = tmp_path / "checkpoint" / "owners"
            while started[-1].poll() is None and len(list(owners.glob("*.json"))) < len(started):
                time.sleep(0.02)
            time.sleep(dice.random() * 12)
            kill_family(started[-1].pid)
            started[-1].wait()
        # What Spark leaves when it is killed at its very first write, wherever it looks for it.
        for folder in (tmp_path / "checkpoint" / "queries").glob("*/ticks/*"):
            (folder / "offsets").mkdir(parents=True, exist_ok=True)
            (folder / "offsets" / ".0.c0ffee.tmp").touch()
        started.append(start(tmp_path))
        assert started[-1].wait(timeout=900) == 0, (tmp_path / "log.txt").read_text()[-3000:]
    finally:
        for process in started:
            kill_family(process.pid)
    record_property("kills_of_a_start", KILLS)
    print(check(tmp_path))
