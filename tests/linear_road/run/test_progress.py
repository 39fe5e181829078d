"""A run removes delivered files, but none that state may have to be rebuilt from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from linear_road.golden_input import by_time
from linear_road.road_run import answers, delivered, dry, odd_rows
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.recovery import version_folder
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.network import road_network
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.run import progress as running
from penstock.linear_road.run.progress import RunProgress
from penstock.testing.dry_run import DryRun

SECONDS = 240


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "rows.dat"
    file.write_text("\n".join(by_time(*odd_rows(3, seconds=SECONDS))) + "\n")
    return file


@pytest.mark.parametrize(("recovery", "least", "most"), [(None, 119, 120), (1e9, 0, 0), (1e-6, 117, 119)])
def test_delivered_files_stay_until_no_train_needs_them(
    tmp_path: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    recovery: float | None,
    least: int,
    most: int,
) -> None:
    monkeypatch.setattr(running, "_KEEP", 0)
    monkeypatch.setattr(version_folder, "MEMORY", tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    feed = delivered(source, tmp_path / "cut")
    slices = prepare(PreparePlan(open_input(source), lenient=True), tmp_path / "slices")
    progress = RunProgress(feed_of(DrivePlan(slices.path, lenient=True), slices), feed)

    def listen(done: TrainDone) -> None:
        progress.train_done(done)
        progress.sweep()

    def part() -> DryRun:
        net = road_network(None, feed, tmp_path / "cut" / "answers")
        return DryRun(net, tmp_path / "cut" / "checkpoint", length=1, recovery=recovery, listen=listen)

    offered = len(list(feed.glob("t*")))
    first = part()
    for _ in range(SECONDS // 2):
        assert first.train()
    gone = offered - len(list(feed.glob("t*")))
    assert least <= gone <= most
    # The machine goes down: what was in memory is lost, and trains since a snapshot run again.
    shutil.rmtree(tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    part().run_all()

    delivered(source, tmp_path / "whole")
    dry(tmp_path / "whole").run_all()
    assert answers(tmp_path / "cut") == answers(tmp_path / "whole")
