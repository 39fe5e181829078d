"""Ctrl-C is heard before anything is driven: while the input is measured and cut, and between the steps that
follow.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest

from linear_road.golden_input import report
from penstock.linear_road.errors import RunStopped
from penstock.linear_road.rows import read_blocks as reading
from penstock.linear_road.run import runner as running
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.run_folder import open_run_folder


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPlan:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 2000)
    rows = tmp_path / "rows.dat"
    rows.write_text("".join(report(t, 1, 6000) + "\n" for t in range(600)))
    return RunPlan(rows, tmp_path / "out", speed=math.inf)


def test_stopped_while_the_input_is_measured(plan: RunPlan) -> None:
    stop, cuts = threading.Event(), list[int]()
    stop.set()
    with pytest.raises(RunStopped, match="the same command goes on"):
        running.run(
            plan, stop=stop, watcher=running.Watcher(preparing=lambda done, _total: cuts.append(done))
        )
    assert cuts == []


def test_stopped_while_slices_are_cut_and_gone_on_with(
    plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, cuts = threading.Event(), list[int]()

    def preparing(done: int, _total: int) -> None:
        cuts.append(done)
        if len(cuts) == 3:
            stop.set()

    with pytest.raises(RunStopped):
        running.run(plan, stop=stop, watcher=running.Watcher(preparing=preparing))
    assert len(cuts) == 3
    stop.clear()
    monkeypatch.setattr(running, "warm_up", lambda _session, **_options: stop.set())
    more = list[int]()
    watcher = running.Watcher(preparing=lambda done, _total: more.append(done))
    with pytest.raises(RunStopped):
        running.run(plan, stop=stop, watcher=watcher, session=object())
    assert min(more) > cuts[-1], "what was cut is not cut again"
    assert open_run_folder(plan).attempts() == {"starts": 1, "clean_stops": 1, "kills": 0}


def test_stopped_while_the_history_is_loaded(plan: RunPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()

    def road_network(*_given: Any, **_options: Any) -> None:
        stop.set()

    monkeypatch.setattr(running, "warm_up", lambda _session, **_options: 0.0)
    monkeypatch.setattr(running, "road_network", road_network)
    with pytest.raises(RunStopped):
        running.run(plan, stop=stop, session=object())
    assert not (plan.out / "run.json").exists()
