"""Under control expressways come in many groups, and each group knows its expressways. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from linear_road.golden_input import report
from penstock.connectors.feed import FeedFile
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.valve import LeftOut
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import Slices
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.copies import span_of
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.run import runner as running
from penstock.linear_road.run.plan import TOLL_LIMIT, RunPlan
from penstock.linear_road.run.response_times import LIMITS
from penstock.runtime.records.left_out import changes

SECOND = 1_000_000


@pytest.fixture
def slices(tmp_path: Path) -> Callable[..., Slices]:
    """Five expressways, stored in so many groups or as halves."""

    def cut(groups: int, *, halves: bool = False) -> Slices:
        rows = [
            report(0, 10 * x + way, 5280, xway=x, direction=way, lane=2) for x in range(5) for way in (0, 1)
        ]
        (tmp_path / "rows.dat").write_text("\n".join(rows) + "\n")
        source = open_input(tmp_path / "rows.dat")
        plan = PreparePlan(source, groups, "csv", span=span_of(source), halves=halves)
        return prepare(plan, tmp_path / f"slices-{groups}")

    return cut


@pytest.mark.parametrize(("groups", "halves"), [(2, False), (5, False), (10, True)])
def test_each_group_names_its_expressways(
    slices: Callable[..., Slices], groups: int, *, halves: bool
) -> None:
    stored = slices(groups, halves=halves)
    feed = feed_of(DrivePlan(stored.path, groups=4, expressways=20, delivery="text"), stored)
    named = [feed.roads(group) for group in range(feed.groups)]
    delivered = [{int(row.split(b",")[4]) for row in bytes(piece.data).splitlines()} for piece in feed.at(0)]
    assert [set(roads) for roads in named] == delivered
    assert sorted(road for roads in named for road in roads) == list(range(20))


def plan(tmp_path: Path, **options: object) -> RunPlan:
    return RunPlan(tmp_path, tmp_path / "out", **options)  # type: ignore[arg-type]


def test_as_many_groups_as_cores_or_48_under_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "usable_cores", lambda: 2)
    counts = [running.groups_of(plan(tmp_path), roads) for roads in (1, 3, 1500)]
    assert counts == [1, 2, 2]
    assert [running.groups_of(plan(tmp_path, qos=True), roads) for roads in (1, 3, 48, 1500)] == [
        1,
        3,
        48,
        48,
    ]
    monkeypatch.setattr(running, "usable_cores", lambda: 64)
    assert running.groups_of(plan(tmp_path, qos=True), 1500) == 64


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--headroom has no effect without --qos"):
        plan(tmp_path, headroom=0.9)
    with pytest.raises(InputError, match=r"--headroom 1\.5 is no part of the capacity"):
        plan(tmp_path, qos=True, headroom=1.5)
    for interval in (-1.0, 5.0, float("nan")):
        with pytest.raises(InputError, match=f"--interval {interval:g} is no time between two trains"):
            plan(tmp_path, interval=interval)
    with pytest.raises(InputError, match=r"--interval 2 (?s:.*)less than the 1\.67 in which"):
        plan(tmp_path, interval=2.0, speed=3.0)
    with pytest.raises(InputError, match=r"--interval 1 (?s:.*)at maximum speed"):
        plan(tmp_path, interval=1.0, speed=float("inf"))
    with pytest.raises(InputError, match="--interval has no effect with --qos"):
        plan(tmp_path, interval=1.0, qos=True)
    assert min(LIMITS) == TOLL_LIMIT
    with pytest.raises(InputError, match="--qos needs a clock"):
        plan(tmp_path, qos=True, speed=float("inf"))


def files(at: int, *groups: int) -> list[FeedFile]:
    return [FeedFile(f"{at}-{group}", at, group, 100, 7) for group in groups]


def test_a_group_is_out_until_a_file_of_it_is_let_in() -> None:
    left = LeftOut(14, 6 * SECOND, 5 * SECOND, (1, 2))
    first = Ticket(0, 0.0, slices={"rows": files(5, 0) + files(6, 0)}, shed={"rows": left})
    assert changes(first, {}) == {"rows": (5 * SECOND, frozenset((1, 2)))}
    before = {"rows": frozenset((1, 2))}
    assert changes(first, before) == {}
    without_files = Ticket(1, 0.0, slices={"rows": files(7, 0)})
    assert changes(without_files, before) == {}
    back = Ticket(2, 0.0, slices={"rows": files(8, 0, 2)})
    assert changes(back, before) == {"rows": (8 * SECOND, frozenset((1,)))}
    assert changes(Ticket(3, 0.0), before) == {}
