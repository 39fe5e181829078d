"""kill -9 and restart, and a dying cluster worker: the pairs stay right while roles switch."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diffusion import job
from penstock.testing.crash import crash_at
from runtime.kills.cluster import Cluster
from runtime.kills.endings import GAVE_UP, cut_short, log_since, size
from runtime.kills.expectation import kill_family
from soak import SOAK

HERE = Path(__file__).parent
HOW = (
    "stage-after-state",
    "outside",
    "train-after-commit",
    "train-before-commit",
    "stage-before-state",
    "outside",
)


def start(folder: Path, *more: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    with (folder / "log.txt").open("ab") as out:
        command = [sys.executable, str(HERE / "job.py"), str(folder), *more]
        variables = {**(environment or os.environ), "PYTHONPATH": path}
        return subprocess.Popen(command, env=variables, stdout=out, stderr=out, start_new_session=True)


def trains(folder: Path) -> int:
    queries = folder / "checkpoint" / "queries"
    return job.log(folder).last() + 1 if queries.exists() and any(queries.iterdir()) else 0


def wait_for(folder: Path, process: subprocess.Popen[bytes], count: int) -> None:
    end = time.monotonic() + 240
    while process.poll() is None and trains(folder) < count and time.monotonic() < end:
        time.sleep(0.05)


def ending(folder: Path) -> str:
    return (folder / "log.txt").read_text()[-3000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_and_restarted_until_done(tmp_path, record_property):
    job.write_input(tmp_path, 800)
    dice, started, died = random.Random(2), [], 0
    try:
        for how in HOW * 3 if SOAK else HOW[:2]:
            before = size(tmp_path)
            process = start(
                tmp_path, environment=crash_at(how, dice.randint(3, 5)) if how != "outside" else None
            )
            started.append(process)
            if how == "outside":
                wait_for(tmp_path, process, trains(tmp_path) + 3)
                time.sleep(dice.random())
                kill_family(process.pid)
            code = process.wait(timeout=300)
            kill_family(process.pid)
            died += cut_short(how, code, log_since(tmp_path, before))
        for _ in range(3):
            before, last = size(tmp_path), start(tmp_path)
            started.append(last)
            if last.wait(timeout=500) == 0 or GAVE_UP not in log_since(tmp_path, before):
                break
        assert last.returncode == 0, ending(tmp_path)
    finally:
        for process in started:
            kill_family(process.pid)
    assert died >= (3 if SOAK else 1), "hardly any run was cut short"
    record_property("kills_of_a_driver_with_a_diffused_join", died)
    print(job.check(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not SOAK, reason="in `make soak` only; tests/runtime/kills/test_cluster.py loses a worker every time"
)
def test_a_worker_of_the_cluster_dies(tmp_path, record_property):
    job.write_input(tmp_path, 800)
    with Cluster(tmp_path) as cluster:
        driver = start(tmp_path, cluster.url)
        try:
            wait_for(tmp_path, driver, 5)
            assert driver.poll() is None, ending(tmp_path)
            cluster.kill_worker()
            assert driver.wait(timeout=500) == 0, ending(tmp_path)
        finally:
            kill_family(driver.pid)
        assert all(cluster.worked(number) for number in (1, 2)), "a worker had nothing to do"
    record_property("kills_of_a_worker_with_a_diffused_join", 1)
    print(job.check(tmp_path))
