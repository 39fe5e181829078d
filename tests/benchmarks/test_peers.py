"""The peers of the Linear Road benchmark answer as the oracle does (Spark aside: its vehicles are followed here without it)."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.validate import validate

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
GOLDEN = SHARED / "golden"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside the repository")


@pytest.fixture(scope="module")
def peers():
    """The modules of benchmarks/peers, which is no package."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))
    try:
        import desk
        import feed
        import history_sql
        import kernel
        import system_x
        import vehicle

        yield SimpleNamespace(
            desk=desk, feed=feed, history=history_sql, kernel=kernel, system_x=system_x, vehicle=vehicle
        )
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    out = tmp_path_factory.mktemp("traffic")
    generate(out, xways=1, minutes=24, seed=3, form="parquet")
    return out


def followed(peers, source: Path, history: Path | None, out: Path) -> None:
    """The vehicle-keyed peer with its state in a dict."""
    names = peers.feed.NAMES
    state: dict[int, list] = {}
    feed = peers.feed.Feed(source, follow=False)
    with out.open("wb") as file:
        answers, desk = peers.feed.Answers(file, feed), peers.desk.Desk(peers.history.History(history))
        for batch in feed.batches():
            events = []
            for values in sorted(batch.tolist(), key=lambda row: (row[1], row[0])):
                row = SimpleNamespace(**dict(zip(names, values, strict=True)))
                told = (False, False, -1, 0, False)
                if row.type == 0:
                    recent = state.get(row.vid, [])
                    told, report = peers.vehicle.step(row, recent)
                    state[row.vid] = [*(r for r in recent if r[0] >= row.time - 30), report]
                flags = ("first", "entered", "from_seg", "quoted", "stopped")
                events.append(SimpleNamespace(**vars(row), **dict(zip(flags, told, strict=True))))
            for kind, rows in desk.answer(events).items():
                fields = peers.feed.FIELDS[kind]
                answers.write(kind, peers.feed.table(fields, rows))


@needs_data
def test_vehicles_followed_one_by_one_give_the_golden_answers(peers, tmp_path):
    followed(peers, GOLDEN / "rows.dat", GOLDEN, tmp_path / "answers.csv")
    assert validate(GOLDEN / "rows.dat", history=GOLDEN, answers=tmp_path / "answers.csv").passed


def test_the_bare_kernel_is_right(peers, traffic, tmp_path):
    minutes = peers.kernel.minutes_of(traffic)
    most = [max(int(minute[field].max()) for minute in minutes) + 1 for field in (2, 4)]
    road, feed = peers.kernel.Road(*most), peers.feed.Feed(traffic, follow=False)
    with (tmp_path / "answers.csv").open("wb") as file:
        answers = peers.feed.Answers(file, feed)
        for minute in minutes:
            peers.kernel.write(answers, road.take(minute))
            peers.kernel.look_up(answers, peers.history.History(None), minute)
    verdict = validate(traffic, answers=tmp_path / "answers.csv")
    assert verdict.passed
    assert verdict.expected[1] > 0


@pytest.mark.slow
@needs_data
def test_system_x_gives_the_golden_answers(peers, tmp_path):
    with (tmp_path / "answers.csv").open("wb") as file:
        feed = peers.feed.Feed(GOLDEN / "rows.dat", follow=False)
        system = peers.system_x.SystemX(peers.feed.Answers(file, feed), peers.history.History(GOLDEN))
        for rows in feed.batches():
            system.poll(rows)
    assert validate(GOLDEN / "rows.dat", history=GOLDEN, answers=tmp_path / "answers.csv").passed


def test_system_x_on_traffic(peers, tmp_path):
    generate(tmp_path / "in", xways=0.5, minutes=2, seed=5)
    with (tmp_path / "answers.csv").open("wb") as file:
        feed = peers.feed.Feed(tmp_path / "in", follow=False)
        system = peers.system_x.SystemX(peers.feed.Answers(file, feed), peers.history.History(None))
        for rows in feed.batches():
            system.poll(rows)
    assert validate(tmp_path / "in", answers=tmp_path / "answers.csv").passed
