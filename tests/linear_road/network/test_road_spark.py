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
from penstock.model.formats.feed import LISTING

JOB = """
import sys
from pathlib import Path
from penstock.linear_road.network import road_network, road_runtime
folder, once = Path(sys.argv[1]), sys.argv[2] == "once"
net = road_network(None, folder / "in", folder / "answers")
with road_runtime(net, folder / "checkpoint", once=once, close=once, train_length=25) as run:
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


def committed(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "queries").glob("*/commits/*.json")))


@pytest.mark.slow
def test_kill_9_at_any_moment(tmp_path):
    expected = Case(tmp_path).expected(odd_rows(11, seconds=300))
    listing = delivered(tmp_path / "rows.dat", tmp_path) / LISTING
    seconds = listing.read_bytes().splitlines(keepends=True)
    listing.write_bytes(b"")
    dice, log = random.Random(5), (tmp_path / "log").open("wb")
    for part in range(3):
        # Each run has trains of its own to run, and one that is to be killed waits for more: it cannot end.
        with listing.open("ab") as listed:
            listed.writelines(seconds[part * len(seconds) // 3 : (part + 1) * len(seconds) // 3])
        kill, before = part < 2, committed(tmp_path)
        words = [JOB, str(tmp_path), "on" if kill else "once"]
        job = subprocess.Popen([sys.executable, "-c", *words], stdout=log, stderr=log)
        if kill:
            while committed(tmp_path) < before + 2:
                assert job.poll() is None, (tmp_path / "log").read_text()[-2000:]
                time.sleep(0.02)
            time.sleep(dice.random() * 0.6)
            for process in family(job.pid):
                with suppress(psutil.NoSuchProcess):  # a Python worker may end by itself just now
                    process.kill()
        ended = job.wait(timeout=240)
        assert ended == (-signal.SIGKILL if kill else 0), (tmp_path / "log").read_text()[-2000:]
    assert answers(tmp_path) == sorted(expected)
