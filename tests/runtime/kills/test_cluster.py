"""A standalone cluster whose workers are killed in mid-run, one after the other. The rows stay the same."""

from __future__ import annotations

import time

import pytest

from runtime.kills.cluster import Cluster
from runtime.kills.expectation import check, kill_family, recorded, start, write_input
from soak import SOAK, count

KILLS = count(1, soak=20)


def wait_for_trains(folder, driver, number: int) -> None:
    end = time.monotonic() + 300
    while len(recorded(folder)) < number and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_workers_die_in_mid_run(tmp_path, record_property):
    write_input(tmp_path, count(1200, soak=6000))
    with Cluster(tmp_path) as cluster:
        driver = start(tmp_path, cluster.url)
        try:
            for _ in range(KILLS):
                wait_for_trains(tmp_path, driver, len(recorded(tmp_path)) + 3)
                assert driver.poll() is None, (tmp_path / "log.txt").read_text()[-3000:]
                cluster.kill_worker()
                if SOAK:
                    cluster.add_worker()  # else Spark would be left with one worker to kill
            assert driver.wait(timeout=900) == 0, (tmp_path / "log.txt").read_text()[-3000:]
        finally:
            kill_family(driver.pid)
        assert all(cluster.worked(number) for number in (1, 2)), "a worker had nothing to do"
    record_property("kills_of_a_worker", KILLS)
    print(check(tmp_path))
