"""A vehicle that reports from two expressways at nearly one time is judged right, whatever groups were asked
for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linear_road.golden_input import Case, by_time, report
from linear_road.road_run import answers, dry
from penstock.linear_road.drive.driver import DrivePlan, drive
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.rows import wanderers
from penstock.linear_road.rows.copies import Copies, Span, span_of
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.rows.wanderers import Wanderers
from penstock.linear_road.run.runner import whole_feed

STANDING = [report(t, vid, 60_000, lane=2) for vid in (1, 2) for t in (0, 30, 60, 90)]
ROWS = by_time(*STANDING, report(45, 2, 70_000, xway=1), report(125, 3, 58_000))


def written(place: Path, rows: list[str]) -> Path:
    (place / "rows.dat").write_text("\n".join(rows) + "\n")
    return place / "rows.dat"


@pytest.mark.parametrize("groups", [1, 2])
def test_the_answers_are_the_oracles(tmp_path: Path, groups: int) -> None:
    expected = Case(tmp_path).expected(ROWS)
    source = open_input(tmp_path / "rows.dat")
    slices = prepare(PreparePlan(source, groups, span=span_of(source), lenient=True), tmp_path / "slices")
    chosen, feed = whole_feed(
        DrivePlan(slices.path, to=str(tmp_path / "in"), speed=float("inf"), lenient=True), slices
    )
    assert feed.groups == 1, "both expressways are in one group"
    drive(chosen)
    dry(tmp_path).run_all()
    assert answers(tmp_path) == sorted(expected)


def test_only_quick_changes_join_expressways(tmp_path: Path) -> None:
    rows = by_time(
        *[report(t, 1, 6000) for t in (0, 30)],
        report(60, 1, 6000, xway=1),
        report(70, 2, 6000, xway=3),
        report(99, 2, 6000, xway=2),
        report(129, 2, 6000, xway=0),
    )
    assert span_of(open_input(written(tmp_path, rows))).together == ((2, 3),)


def test_a_change_is_seen_across_blocks_and_in_rough_order() -> None:
    fields = np.full((4, 15), -1)
    fields[:, 1], fields[:, 2], fields[:, 4] = (10, 10, 30, 39), (7, 8, 8, 7), (5, 1, 1, 2)
    found = Wanderers()
    for block in (fields[:1], fields[1:3], fields[3:]):
        found.add(block)
    assert found.ranges == [(2, 5)]
    assert wanderers.NEAR_S == 30


def test_a_span_survives_the_manifest_and_old_manifests_are_read() -> None:
    span = Span(9, 8, 4, 4.0, ((0, 1),))
    assert Span.from_json(span.as_json()) == span
    assert span.times(2).together == ((0, 1), (4, 5))
    assert "together" not in Span(9, 8, 4, 4.0).as_json()


def test_copies_of_such_an_input_keep_together_too(tmp_path: Path) -> None:
    source = open_input(written(tmp_path, ROWS))
    span = span_of(source)
    shift = Copies(2, span.vids, span.qids + 1, span.xways)
    slices = prepare(PreparePlan(source, 2, copies=shift, span=span), tmp_path / "slices")
    assert slices.span == span.times(2)
    assert whole_feed(DrivePlan(slices.path), slices)[1].groups == 2, "a copy a group tears nothing apart"
    finer = prepare(PreparePlan(source, 4, copies=shift, span=span), tmp_path / "finer")
    assert whole_feed(DrivePlan(finer.path), finer)[1].groups == 2
