"""Driver, JVM or Python worker killed at random moments, over six networks: 0 lost, 0 doubled, 0 stuck."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fuzz.kills.jobs import JOBS, Job
from runtime.kills.endings import GAVE_UP, JVM_LOST, log_since, size
from runtime.kills.expectation import family, kill_family
from soak import SOAK, count

KILLS = dict.fromkeys(JOBS, count(1, soak=40)) | {"shedding": count(3, soak=40)}
STUCK = 240  # seconds without a commit
TESTS = Path(__file__).parents[2]


def command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


class Killing:
    """One input, run by one process after another until everything is through."""

    def __init__(self, job: Job, name: str, folder: Path, dice: random.Random) -> None:
        self.job, self.name, self.folder, self.dice = job, name, folder, dice
        self.killed: list[str] = []
        self.started: list[int] = []

    def start(self) -> None:
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        self.log_at = size(self.folder)
        with (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("jobs.py")), self.name, str(self.folder)],
                env={**os.environ, "PYTHONPATH": path},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(self.process.pid)

    def text(self) -> str:
        return log_since(self.folder, self.log_at).decode(errors="replace")[-3000:]

    def newest(self) -> set[Path]:
        """The newest commits; old ones are forgotten as trains run."""
        commits = (self.folder / "checkpoint" / "queries").glob("*/commits/*.json")
        return set(sorted(commits)[-50:])

    def wait_for_commits(self, number: int) -> bool:
        """Whether the process has committed so many more trains; False: it has ended first."""
        before, until = self.newest(), time.monotonic() + STUCK
        while len(self.newest() - before) < number:
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < until, f"stuck after {self.killed}:\n{self.text()}"
            time.sleep(0.02)
        return True

    def strike(self) -> None:
        """Kill something. A lost worker is the run's own affair; anything else ends the process."""
        how = self.dice.choice(["driver", "jvm", "worker", "worker", "all"])
        family_pids = family(self.process.pid)
        if how == "driver":
            self.process.kill()  # JVM and workers are orphans now, and may go on for a while
        elif how == "all":
            kill_family(self.process.pid)
        else:
            wanted = b"java" if how == "jvm" else b"pyspark.daemon"
            pids = [pid for pid in family_pids if wanted in command_line(pid)]
            if not pids:
                return
            with suppress(ProcessLookupError):
                os.kill(self.dice.choice(pids), signal.SIGKILL)
        self.killed.append(how)
        if how != "worker":
            self.wait_for_end(how)
            self.start()

    def wait_for_end(self, how: str) -> None:
        code = self.process.wait(timeout=STUCK)
        by_itself = how == "jvm" and code and any(text in self.text().encode() for text in JVM_LOST)
        assert code in (0, -signal.SIGKILL) or by_itself, f"{how}: exit code {code}\n{self.text()}"
        if self.dice.random() < 0.5:
            kill_family(self.process.pid)  # in the other half, orphans live on beside the next process

    def run(self, kills: int) -> int:
        """Kill up to so many times, let it finish, and compare. The number of kills."""
        self.job.prepare()
        self.start()
        try:
            while len(self.killed) < kills and self.wait_for_commits(2):
                time.sleep(self.dice.random())  # any moment of a train, or between two
                self.strike()
            self.finish()
        finally:
            for pid in self.started:
                kill_family(pid)
        self.job.check()
        return len(self.killed)

    def finish(self) -> None:
        for _ in range(3):
            if self.process.wait(timeout=600) == 0:
                return
            # Spark gives a Python process ten seconds to come up, which a busy machine may not keep to.
            assert GAVE_UP in log_since(self.folder, self.log_at), self.text()
            self.start()
        raise AssertionError(self.text())


@pytest.mark.slow
@pytest.mark.timeout(7200 if SOAK else 600)
@pytest.mark.parametrize("name", JOBS)
def test_nothing_is_lost_doubled_or_stuck(name, tmp_path, record_property):
    dice, killed, number = random.Random(f"kills {name}"), 0, 0
    while killed < KILLS[name]:
        folder = tmp_path / str(number)
        folder.mkdir()
        killed += Killing(JOBS[name](folder), name, folder, dice).run(KILLS[name] - killed)
        number += 1
        assert number < 3 + KILLS[name], "runs end before they can be killed"
    record_property(f"random_kills_{name}", killed)
