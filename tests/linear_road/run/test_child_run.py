"""A run in a child process: the plan travels whole, and exit code and last words come back."""

from __future__ import annotations

from pathlib import Path

from linear_road.golden_input import report
from penstock.linear_road.drive.plan_text import plan_from_text, plan_to_text
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.run.child_run import REFUSED, run_in_child
from penstock.linear_road.run.plan import RunPlan
from penstock.process.child_process import last_said


def test_a_plan_travels_whole(tmp_path: Path) -> None:
    for pace in ({"speed": float("inf")}, {"interval": 2.5}):
        plan = RunPlan(tmp_path, tmp_path / "out", tmp_path, expressways=1.5, begin=60, **pace)
        assert plan_from_text(RunPlan, plan_to_text(plan)) == plan


def test_a_refused_plan_says_why(tmp_path: Path) -> None:
    rows = tmp_path / "rows.dat"
    rows.write_text("".join(report(t, 1, 6000) + "\n" for t in range(10)))
    slices = prepare(PreparePlan(open_input(rows), format="parquet"), tmp_path / "slices")
    log = tmp_path / "log"
    assert run_in_child(RunPlan(slices.path, tmp_path / "out"), log) == REFUSED
    said = last_said(log)
    assert "are parquet, which the network does not read; hint: prepare them with --format csv" in said


def test_of_a_log_the_last_message_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for text, said in (
        ("", ""),
        ("begun\n\nkilled\n\n", "killed"),
        ("begun\nno clock\n  found:    0\n  hint:     start it\n", "no clock; found: 0; hint: start it"),
        ("Error: heap\n  at somewhere\n", "at somewhere"),
    ):
        log.write_text(text)
        assert last_said(log) == said
