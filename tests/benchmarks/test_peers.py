"""The peers of the Linear Road benchmark answer as the oracle does.

The Spark peer is followed without Spark.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.peers import desk, history_sql, kernel, system_x, vehicle
from benchmarks.peers import feed as feed_module

from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.validate import validate

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
GOLDEN = SHARED / "golden"
needs_data = pytest.mark.skipif(
    not SHARED.is_dir() and os.environ.get("CI") != "true",
    reason="the shared data is not beside the repository",
)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    out = tmp_path_factory.mktemp("traffic")
    generate(out, xways=1, minutes=24, seed=3, form="parquet")
    return out


def followed(source: Path, history: Path | None, out: Path) -> None:
    """The vehicle-keyed peer with its state in a dict."""
    names = feed_module.NAMES
    state: dict[int, list] = {}
    feed = feed_module.Feed(source, follow=False)
    with out.open("wb") as file:
        answers, counter = feed_module.Answers(file, feed), desk.Desk(history_sql.History(history))
        for batch in feed.batches():
            events = []
            for values in sorted(batch.tolist(), key=lambda row: (row[1], row[0])):
                row = SimpleNamespace(**dict(zip(names, values, strict=True)))
                seen = (False, False, -1, 0, False)
                if row.type == 0:
                    recent = state.get(row.vid, [])
                    seen, report = vehicle.step(row, recent)
                    state[row.vid] = [*(r for r in recent if r[0] >= row.time - 30), report]
                flags = ("first", "entered", "from_seg", "quoted", "stopped")
                events.append(SimpleNamespace(**vars(row), **dict(zip(flags, seen, strict=True))))
            for kind, rows in counter.answer(events).items():
                fields = feed_module.FIELDS[kind]
                answers.write(kind, feed_module.table(fields, rows))


@needs_data
def test_vehicles_followed_one_by_one_give_the_golden_answers(tmp_path):
    followed(GOLDEN / "rows.dat", GOLDEN, tmp_path / "answers.csv")
    assert validate(GOLDEN / "rows.dat", history=GOLDEN, answers=tmp_path / "answers.csv").passed


def test_the_bare_kernel_is_right(traffic, tmp_path):
    minutes = kernel.minutes_of(traffic)
    most = [max(int(minute[field].max()) for minute in minutes) + 1 for field in (2, 4)]
    road, feed = kernel.Road(*most), feed_module.Feed(traffic, follow=False)
    with (tmp_path / "answers.csv").open("wb") as file:
        answers = feed_module.Answers(file, feed)
        for minute in minutes:
            kernel.write(answers, road.take(minute))
            kernel.look_up(answers, history_sql.History(None), minute)
    verdict = validate(traffic, answers=tmp_path / "answers.csv")
    assert verdict.passed
    assert verdict.expected[1] > 0


@pytest.mark.slow
@needs_data
def test_system_x_gives_the_golden_answers(tmp_path):
    with (tmp_path / "answers.csv").open("wb") as file:
        feed = feed_module.Feed(GOLDEN / "rows.dat", follow=False)
        system = system_x.SystemX(feed_module.Answers(file, feed), history_sql.History(GOLDEN))
        for rows in feed.batches():
            system.poll(rows)
    assert validate(GOLDEN / "rows.dat", history=GOLDEN, answers=tmp_path / "answers.csv").passed


def test_system_x_on_traffic(tmp_path):
    generate(tmp_path / "in", xways=0.5, minutes=2, seed=5)
    with (tmp_path / "answers.csv").open("wb") as file:
        feed = feed_module.Feed(tmp_path / "in", follow=False)
        system = system_x.SystemX(feed_module.Answers(file, feed), history_sql.History(None))
        for rows in feed.batches():
            system.poll(rows)
    assert validate(tmp_path / "in", answers=tmp_path / "answers.csv").passed


def test_a_system_x_that_persists_answers_the_same(tmp_path):
    generate(tmp_path / "in", xways=0.5, minutes=1, seed=5)
    answers = []
    for name, database in (("memory", None), ("file", tmp_path / "x.duckdb")):
        feed = feed_module.Feed(tmp_path / "in", follow=False)
        with (tmp_path / name).open("wb") as out:
            system = system_x.SystemX(feed_module.Answers(out, feed), history_sql.History(None), database)
            for batch in islice(feed.batches(), 20):
                system.poll(batch)
        system.con.close()
        answers.append(sorted((tmp_path / name).read_text().splitlines()))
    assert answers[0] == answers[1] != []
    kept = system_x.duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True)
    assert kept.execute("SELECT count(*) FROM reports").fetchall()[0][0] > 0
