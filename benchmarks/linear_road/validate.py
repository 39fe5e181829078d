"""How long the validator takes for full expressways, and how much memory.

The goal is the 12 million reports of one expressway in 60 s on 2 cores with under 6 GB, and 10 expressways
without running out of memory (`--xways 10 --format parquet`). The input is generated first and not counted. A
first run writes the right answers (`--expected`), a second one checks them (`--answers`); each is a fresh
process. Right answers that do not pass, and a process that takes more memory than the goal, end this with 1.

Figure: wall time, processor time and memory of both runs.
Time:   about 6 minutes, 10 expressways about 20; --quick about 30 seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import facts
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import kit_command, run_child
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show

GOAL_SECONDS, GOAL_MB = 60, 6000
SHOWN = ("case", "run", "exit", "reports", "seconds", "cpu_seconds", "memory_mb", "load")


def measure(source: Path, folder: Path, case: str) -> list[dict[str, Any]]:
    """The two runs over one input."""
    right, verdict = folder / "right.csv", folder / "verdict.json"
    rows = []
    for step in ("expected", "answers"):
        used = run_child(kit_command("validate", "--input", source, f"--{step}", right, "--json", verdict))
        row: dict[str, Any] = {"case": case, "run": step, "exit": used.exit_code, "load": facts.load()}
        row |= {"seconds": used.wall_s, "cpu_seconds": used.cpu_s, "memory_mb": used.memory_mb}
        if not used.exit_code:
            judged = json.loads(verdict.read_text(encoding="utf-8"))
            row |= {"reports": judged["reports"], "answers": judged["expected"], "steps": judged["seconds"]}
        rows.append(row)
    return rows


def generate(out: Path, xways: float, minutes: int, form: str, seed: int) -> None:
    words = ["--xways", xways, "--minutes", minutes, "--format", form, "--seed", seed, "--out", out]
    used = run_child(kit_command("generate", *words))
    if used.exit_code:
        raise RuntimeError(f"generating {xways:g} expressways ended with {used.exit_code}: {used.errors}")


def measure_all(chosen: argparse.Namespace, minutes: int, folder: Path) -> list[dict[str, Any]]:
    if chosen.input is not None:
        return measure(chosen.input, folder, chosen.input.name)
    rows = []
    for xways in chosen.xways:
        for form in chosen.format:
            source = folder / f"input-{xways:g}-{form}"
            generate(source, xways, minutes, form, chosen.seed)
            rows += measure(source, folder, f"{xways:g} expressways, {minutes} minutes, {form}")
    return rows


def judge(rows: list[dict[str, Any]], record: Record) -> None:
    for row in rows:
        if row["exit"]:
            record.found_wrong(f"{row['case']}, {row['run']}: exit code {row['exit']}")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--xways", type=float, nargs="+", default=[1], help="expressways")
    parser.add_argument("--format", nargs="+", default=["csv", "parquet"])
    parser.add_argument("--input", type=Path, help="an input that exists already")
    chosen = parser.parse_args()
    minutes = 180
    if chosen.quick:
        minutes, chosen.xways = 30, [0.5]
    config = {"xways": chosen.xways, "minutes": minutes, "goal_seconds": GOAL_SECONDS, "goal_mb": GOAL_MB}
    with recording("linear-road-validate", chosen, **config) as record, scratch() as folder:
        rows = measure_all(chosen, minutes, folder)
        record.figures = rows
        judge(rows, record)
        goal = f"Goal for one expressway: {GOAL_SECONDS} s, {GOAL_MB:,} MB, on 2 cores."
        show("penstock lr validate", [{name: row.get(name) for name in SHOWN} for row in rows], goal)
    return record.exit_code or int(any(row["memory_mb"] >= GOAL_MB for row in rows))


if __name__ == "__main__":
    sys.exit(main())
