"""kill -9 at any moment: what was committed is there, once, and the next producer goes on from it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.store.points.leases import take_lease
from penstock.store.points.point import PointReader, PointWriter

from .points import SCHEMA

TESTS = Path(__file__).resolve().parent.parent


def run_and_kill(root: Path, trains: int, seconds: float) -> int:
    """The last entry that the child said it had committed."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("kill_worker.py")), str(root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    first = [child.stdout.readline() for _ in range(trains)]  # some work is done, however busy the machine
    time.sleep(seconds)
    child.kill()
    said = [*first, *child.stdout.read().splitlines()]
    child.wait()
    return max(int(line) for line in said if line.strip().isdigit())


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_over_kills(tmp_path):
    chance = random.Random(7)
    PointWriter(tmp_path, "p", SCHEMA, key="seg")
    reader = PointReader(tmp_path, "p")
    lease = take_lease(reader, "down", seconds=None, every=0)
    seen: list[int] = []
    for _ in range(6):
        said = run_and_kill(tmp_path, chance.randint(1, 25), chance.random() * 0.05)
        fresh = PointReader(tmp_path, "p")
        assert fresh.latest().number >= said
        reader.reload()
        last = reader.latest().number
        seen += sorted(reader.read(lease.position + 1, last)["_seq"].to_pylist())
        lease.renew(last)
        assert seen == list(range((last + 1) * 10))
    assert reader.generation > 0
    assert reader.removed > 0
    leftover = {p.name for p in reader.manifest.data.iterdir() if p.suffix == ".tmp"}
    assert len(leftover) <= 6
