"""kill -9 during swaps from one form to another and back: exactly the rows of an undisturbed run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.engine.local import LocalEngine
from penstock.testing import assert_same_rows
from penstock.testing.crash import crash_at
from runtime.forms.swap_worker import FILES, network, rows
from runtime.kills.expectation import kill_family
from runtime.streams import parquet_rows, put
from soak import SOAK, count

KILLS = count(3, soak=20)
POINTS = ("form-kept", "train-before-commit", "form-kept", "train-after-commit", "ticket-after-write")


def start(folder, environment):
    variables = {**environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "swap_worker.py"), str(folder)],
            env=variables,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_kills_during_swaps_lose_nothing(tmp_path, record_property):
    for number in range(FILES):
        put(tmp_path / "cars", f"{number:02}", rows(number))
    dice, killed, process = random.Random(5), 0, None
    try:
        while killed < KILLS:
            process = start(tmp_path, crash_at(POINTS[killed % len(POINTS)], dice.randint(1, 2)))
            assert process.wait(timeout=600) == -9, (tmp_path / "log.txt").read_text()[-3000:]
            kill_family(process.pid)
            killed += 1
        process = start(tmp_path, dict(os.environ))
        assert process.wait(timeout=600) == 0, (tmp_path / "log.txt").read_text()[-3000:]
    finally:
        if process is not None:
            kill_family(process.pid)
    given = [dict(zip(("time", "k", "v"), row, strict=True)) for n in range(FILES) for row in rows(n)]
    expected = LocalEngine(network(tmp_path)).run([{"cars": given}]).outputs["out"]
    assert_same_rows(parquet_rows(tmp_path / "out"), expected)
    record_property("kills_during_swaps", killed)
