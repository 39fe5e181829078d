"""What a run under way shows, fed by trains: response times, accidents and tolls charged."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rich.console import Console

from linear_road.golden_input import balance, by_time, report
from linear_road.road_run import answers, delivered, odd_rows
from penstock.linear_road.drive.clock import CLOCK_FILE, Clock
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.network import road_network
from penstock.linear_road.report.live_view import live_table
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.run.live_answers import LiveAnswers
from penstock.linear_road.run.progress import RunProgress
from penstock.testing.dry_run import DryRun

LAST = 420
BEHIND = 1000.0


def tolled() -> list[str]:
    """A crowd that crawls through segment 40, and two vehicles that drive through it."""
    crowd = [
        report(t, vid, 40 * 5280 + 50 * (vid - 300), spd=9)
        for vid in range(300, 360)
        for t in range(0, LAST, 30)
    ]
    through = [
        report(t0 + 30 * k, vid, (38 + k) * 5280) for vid, t0 in ((400, 100), (401, 115)) for k in range(4)
    ]
    return crowd + through


def test_trains_feed_the_live_view(tmp_path: Path) -> None:
    rows = by_time(*odd_rows(5, seconds=LAST), *tolled())
    vehicles = sorted({int(row.split(",")[2]) for row in rows})
    rows += [balance(LAST + 20, vid, 10_000 + vid) for vid in vehicles]
    source = tmp_path / "rows.dat"
    source.write_text("\n".join(rows) + "\n")
    feed = delivered(source, tmp_path)
    Clock(time.time() - BEHIND, 0, 1).save(feed / CLOCK_FILE)
    slices = prepare(PreparePlan(open_input(source), lenient=True), tmp_path / "slices")
    progress = RunProgress(feed_of(DrivePlan(slices.path, lenient=True), slices), feed)
    newest = LiveAnswers()
    dry = DryRun(
        road_network(None, feed, tmp_path / "answers"),
        tmp_path / "checkpoint",
        length=2000,
        listen=progress.train_done,
    )
    while dry.train():
        newest.look(progress.new_files())

    given = [line.split(",") for line in answers(tmp_path)]
    owed = sum(int(row[5]) for row in given if row[0] == "2" and int(row[4]) >= 10_000)
    assert progress.charged == owed > 0
    assert progress.charges == 2
    assert progress.rows_out == len(given)
    assert progress.trains > 2
    for kind in range(5):
        wait = newest.wait(kind)
        assert wait is not None, f"type {kind} was never looked at"
        assert BEHIND - LAST - 20 <= wait[0] <= wait[1] <= BEHIND + 60
    assert f"{owed:,} in {progress.charges:,} charges" in shown(progress, newest)


def shown(progress: RunProgress, newest: LiveAnswers) -> str:
    console = Console(width=120, record=True)
    console.print(live_table(progress, newest))
    return console.export_text()


@pytest.mark.parametrize("length", [1, 1_000_000])
def test_accidents_on_all_roads_count(tmp_path: Path, length: int) -> None:
    """Three at once, all in segment 10: on two expressways, and in both directions of one."""
    roads = [(0, 0), (0, 1), (1, 0)]
    standing = [
        report(t, vid + 10 * n, 10 * 5280 + 7, xway=xway, direction=way)
        for n, (xway, way) in enumerate(roads)
        for vid in (1, 2)
        for t in range(vid, 215, 30)
    ]
    away = report(195, 11, 12 * 5280, direction=1)
    source = tmp_path / "rows.dat"
    source.write_text("\n".join(by_time(*standing, away)) + "\n")
    feed = delivered(source, tmp_path)
    slices = prepare(PreparePlan(open_input(source)), tmp_path / "slices")
    progress = RunProgress(feed_of(DrivePlan(slices.path), slices), feed)
    network = road_network(None, feed, tmp_path / "answers")
    dry = DryRun(network, tmp_path / "checkpoint", length=length, listen=progress.train_done)
    seen = {}
    while dry.train():
        seen[progress.second] = progress.accidents
    assert progress.accidents == 2
    if length == 1:
        assert [seen[t] for t in (91, 92, 182, 195)] == [0, 3, 3, 2]
