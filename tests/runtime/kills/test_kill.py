"""kill -9 at any moment, restart, until done: exactly the rows of an undisturbed run, while rates and lengths
change.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.engine.spark.recovery.version_folder import delete_versions, known_folders
from penstock.testing.crash import crash_at
from runtime.kills.endings import GAVE_UP, JVM_LOST, WORKER_LOST, cut_short, log_since, size
from runtime.kills.expectation import check, family, kill_family, recorded, start, write_input
from runtime.kills.kill_worker import RECOVERY
from soak import SOAK, count

KILLS = int(os.environ.get("PENSTOCK_KILLS", count(3, soak=20)))
POINTS = (
    "stage-before-state",
    "stage-after-state",
    "train-before-commit",
    "train-after-commit",
    "train-published",
)
# In the thread that writes snapshots of the state, with a recovery target.
SNAPSHOT_POINTS = (
    "snapshot-before-files",
    "snapshot-before-record",
    "snapshot-after-record",
    "snapshot-before-forget",
)
SNAPSHOT_KILLS = count(len(SNAPSHOT_POINTS), soak=20)


def plan() -> list[str]:
    """What happens in each round: a crash point of the code, or a kill from outside."""
    outside = ["all", "driver", "jvm"]
    every = [POINTS[1], "driver", POINTS[3], "all", POINTS[2], "jvm", POINTS[0], "driver", POINTS[4], "all"]
    dice = random.Random(3)
    return (every + [dice.choice([*POINTS, *outside]) for _ in range(KILLS)])[:KILLS]


def trains(folder) -> int:
    return len(recorded(folder))


def strike(process, how: str, folder, dice: random.Random) -> None:
    """Wait until trains run, then a random moment, then kill.

    A run that has ended by itself is left alone.
    """
    before, end = trains(folder), time.monotonic() + 240
    while process.poll() is None and trains(folder) < before + 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(dice.random() * 1.5)
    if how == "driver":
        process.kill()  # the JVM and the Python workers are orphans now and may go on for a while
    elif how == "jvm":
        for pid in family(process.pid):
            if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                os.kill(pid, signal.SIGKILL)
                break
    else:
        kill_family(process.pid)


def one_round(folder, how: str, dice: random.Random, started: list) -> bool:
    """A run that is cut short.

    False if it ended before, or Spark gave up. One that fails otherwise fails the test.
    """
    before = size(folder)
    inside = how in (*POINTS, *SNAPSHOT_POINTS)
    process = start(folder, environment=crash_at(how, dice.randint(2, 3)) if inside else None)
    started.append(process)
    if not inside:
        strike(process, how, folder, dice)
    # a killed JVM or worker makes the driver end by itself; it is given the time to say why
    code = process.wait(timeout=600)
    if dice.random() < 0.5:
        kill_family(process.pid)  # in half of the rounds what is left of it lives on beside the next one
    return cut_short(how, code, log_since(folder, before))


def test_only_a_kill_counts_as_one(tmp_path, monkeypatch):
    """A restart that fails by itself must not pass for a run that was cut short."""

    def ending(code: int, text: bytes):
        def start(folder, **_):
            with (folder / "log.txt").open("ab") as log:
                log.write(text)
            return SimpleNamespace(wait=lambda timeout: code, poll=lambda: code, kill=lambda: None, pid=2**30)

        return start

    dice = random.Random(0)
    cases = [
        ("stage-after-state", -9, b"", True),
        ("stage-after-state", 1, WORKER_LOST[0], True),
        ("stage-after-state", 1, GAVE_UP, False),
        ("stage-after-state", 0, b"", False),
        ("stage-after-state", 1, b"StateError: version 3 is missing", None),
        ("stage-after-state", 1, JVM_LOST[0], None),
        ("train-after-commit", 1, WORKER_LOST[0], None),
    ]
    for how, code, text, expected in cases:
        monkeypatch.setattr("runtime.kills.test_kill.start", ending(code, text))
        if expected is None:
            with pytest.raises(AssertionError, match="exit code 1"):
                one_round(tmp_path, how, dice, [])
        else:
            assert one_round(tmp_path, how, dice, []) is expected, (how, code, text)


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_killed_and_restarted_until_done(tmp_path, record_property):
    write_input(tmp_path, count(1000, soak=5000))
    died = killed_until_done(tmp_path, plan())
    assert died == KILLS, f"only {died} of {KILLS} runs were cut short"
    record_property("kills_of_a_driver", died)
    print(check(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_killed_during_a_snapshot(tmp_path, record_property, monkeypatch):
    """After every other kill the machine goes down too: then the snapshots are all there is."""
    monkeypatch.setenv(RECOVERY, "200 ms")
    write_input(tmp_path, count(2000, soak=8000))
    points = [SNAPSHOT_POINTS[kill % len(SNAPSHOT_POINTS)] for kill in range(SNAPSHOT_KILLS)]
    try:
        died = killed_until_done(tmp_path, points, reboots=True)
        assert died == SNAPSHOT_KILLS, f"only {died} of {SNAPSHOT_KILLS} runs were cut short"
        assert len(list((tmp_path / "checkpoint").glob("queries/*/snapshots/records/*.json"))) >= 2
        assert not list((tmp_path / "checkpoint").glob("queries/*/state/*/*"))
        assert not any(known_folders(directory) for directory in queries(tmp_path)), "a clean stop frees it"
        record_property("kills_during_a_snapshot", died)
        print(check(tmp_path))
    finally:
        reboot(tmp_path)


def queries(folder) -> list[Path]:
    return list((folder / "checkpoint" / "queries").glob("*"))


def reboot(folder) -> None:
    """The machine goes down: state in memory is gone."""
    for directory in queries(folder):
        delete_versions(directory)


def killed_until_done(folder, kills: list[str], *, reboots: bool = False) -> int:
    """One run after the other, each killed in its way, and a last one; returns how many were killed."""
    dice, started, died = random.Random(1), [], 0
    try:
        for number, how in enumerate(kills):
            # a run that Spark gave up before it was struck does not count: it is started again
            for _ in range(3):
                if one_round(folder, how, dice, started):
                    died += 1
                    break
            if reboots and number % 2:
                kill_family(started[-1].pid)
                reboot(folder)
        for _ in range(4):
            before, last = size(folder), start(folder)
            started.append(last)
            if last.wait(timeout=900) == 0 or GAVE_UP not in log_since(folder, before):
                break
        assert last.returncode == 0, (folder / "log.txt").read_text()[-3000:]
    finally:
        for process in started:
            kill_family(process.pid)
    return died
