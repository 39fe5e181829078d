"""The network on Spark: golden answers; killed with SIGKILL at any moment, it gives the same answers."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from linear_road.golden_input import GOLDEN, Case, lines, needs_data
from linear_road.road_run import answers, delivered, odd_rows
from penstock.linear_road.network import road_network, road_runtime

JOB = """
import sys
from pathlib import Path
from penstock.linear_road.network import road_network, road_runtime
place = Path(sys.argv[1])
net = road_network(None, place / "in", place / "answers")
with road_runtime(net, place / "checkpoint", once=True, close=True, train_length=25) as run:
    run.wait()
"""


@needs_data
def test_golden_answers(tmp_path, spark):
    delivered(GOLDEN / "rows.dat", tmp_path, groups=2, delivery="packed")
    net = road_network(GOLDEN, tmp_path / "in", tmp_path / "answers")
    with road_runtime(
        net, tmp_path / "checkpoint", spark=spark, once=True, close=True, train_length=4000
    ) as run:
        run.wait()
    assert answers(tmp_path) == sorted(lines(GOLDEN / "expected.csv"))


def family(pid: int) -> list[psutil.Process]:
    try:
        me = psutil.Process(pid)
        return [me, *me.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def committed(place: Path) -> int:
    return len(list((place / "checkpoint" / "queries").glob("*/commits/*.json")))


@pytest.mark.slow
def test_kill_9_at_any_moment(tmp_path):
    expected = Case(tmp_path).expected(odd_rows(11, seconds=300))
    delivered(tmp_path / "rows.dat", tmp_path)
    dice, log = random.Random(5), (tmp_path / "log").open("wb")
    for kill in (True, True, False):
        job = subprocess.Popen([sys.executable, "-c", JOB, str(tmp_path)], stdout=log, stderr=log)
        if kill:
            before, until = committed(tmp_path), time.monotonic() + 120
            while committed(tmp_path) < before + 2 and job.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(dice.random() * 0.6)
            assert job.poll() is None, "it ended before it could be killed"
            for process in family(job.pid):
                with suppress(psutil.NoSuchProcess):  # a Python worker may end by itself just now
                    process.kill()
        assert job.wait(timeout=240) == (-signal.SIGKILL if kill else 0), (tmp_path / "log").read_text()[
            -2000:
        ]
    assert answers(tmp_path) == sorted(expected)
