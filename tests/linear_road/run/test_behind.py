"""A run whose clock has kept running through a kill: it goes on without a warm-up."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest

from linear_road.golden_input import report
from penstock.linear_road.drive.clock import CLOCK_FILE, Clock
from penstock.linear_road.errors import RunError
from penstock.linear_road.run import runner as running
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.run_folder import RunFolder, open_run_folder

SECONDS = 40


@pytest.fixture
def killed(tmp_path: Path) -> tuple[RunPlan, RunFolder]:
    """A run that was killed right after its clock had started."""
    rows = tmp_path / "rows.dat"
    rows.write_text("".join(report(t, 1, 6000) + "\n" for t in range(SECONDS)))
    plan = RunPlan(rows, tmp_path / "out")
    folder = open_run_folder(plan)
    folder.feed.mkdir()
    Clock(time.time() - SECONDS, 0).save(folder.feed / CLOCK_FILE)
    return plan, folder


@pytest.mark.parametrize(
    ("clock", "runs"),
    [
        (Clock(1000.0, 0), True),
        (Clock(1000.0, 0).paused(), False),
        (Clock(1000.0, 0, math.inf), False),
        (None, False),
    ],
)
def test_only_a_kill_leaves_the_clock_running(tmp_path: Path, clock: Clock | None, runs: bool) -> None:
    if clock is not None:
        clock.save(tmp_path / CLOCK_FILE)
    assert running.clock_runs(tmp_path) == runs


def test_there_is_no_warm_up(killed: tuple[RunPlan, RunFolder], monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def stop(self) -> None: ...

    def fails(*_: Any, **__: Any) -> Any:
        raise RunError("the network starts")

    monkeypatch.setattr(running, "warm_up", lambda *_, **__: pytest.fail("warmed up"))
    monkeypatch.setattr(running, "road_runtime", fails)
    said: list[str] = []
    with pytest.raises(RunError, match="the network starts"):
        running.run(killed[0], session=Session(), watcher=running.Watcher(say=said.append))
    assert any("without a warm-up" in sentence for sentence in said)
