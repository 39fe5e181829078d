"""How long the validator takes for full expressways, and how much memory.

    python benchmarks/lr_validate.py [--quick] [--xways L ...] [--format csv parquet] [--input DIR]

Goal: the 12 million reports of one expressway in 60 s or less on 2 cores with under 6 GB; 10 expressways without running out
of memory (`--xways 10 --format parquet`: some 15 minutes). The input is generated first (not counted), the right answers are written by a first run (`--expected`), and
a second run checks them (`--answers`). Each run is a fresh process. Right answers that do not pass, and a process that
took more memory than the goal, end this with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from lr_standin import write_result

GOAL_SECONDS, GOAL_MB = 60, 6000
TOOL = [sys.executable, "-m", "penstock.cli.lr.commands"]


def timed(options: list[Any]) -> tuple[int, dict[str, Any]]:
    """Run the kit in a process of its own: exit code, wall and processor seconds, peak memory."""
    began = time.perf_counter()
    process = subprocess.Popen([*TOOL, *map(str, options)], stdout=subprocess.DEVNULL)
    # wait4 gives the figures of this child alone, not the largest of all children so far.
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    figures = {
        "seconds": round(wall, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "memory_mb": round(used.ru_maxrss / 1024),
    }
    return os.waitstatus_to_exitcode(status), figures


def measure(source: Path, scratch: Path, case: str) -> list[dict[str, Any]]:
    """The two runs over one input."""
    right, verdict = scratch / "right.csv", scratch / "verdict.json"
    found = []
    for step, options in (("expected", ["--expected", right]), ("answers", ["--answers", right])):
        code, figures = timed(["validate", "--input", source, *options, "--json", verdict])
        row = {"case": case, "run": step, "exit": code, "load": round(os.getloadavg()[0], 1), **figures}
        if code == 0:
            said = json.loads(verdict.read_text(encoding="utf-8"))
            row |= {"reports": said["reports"], "answers": said["expected"], "steps": said["seconds"]}
        found.append(row)
    return found


def generate(out: Path, xways: float, minutes: int, form: str, seed: int) -> None:
    options = ["--xways", xways, "--minutes", minutes, "--format", form, "--seed", seed, "--out", out]
    code, _ = timed(["generate", *options])
    if code:
        raise SystemExit(f"generating {xways:g} expressways failed with exit code {code}")


def show(figures: list[dict[str, Any]]) -> None:
    table = Table(title="penstock lr validate")
    for name in ("case", "run", "exit", "reports", "seconds", "cpu_seconds", "memory_mb", "load"):
        table.add_column(name, justify="left" if name in ("case", "run") else "right")
    for row in figures:
        cells = (row.get(name, "-") for name in (column.header for column in table.columns))
        table.add_row(*(f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in cells))
    Console(width=None if Console().is_terminal else 120).print(table)
    Console().print(f"Goal for one expressway: {GOAL_SECONDS} s, {GOAL_MB:,} MB, on 2 cores.")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="the first 30 minutes of half an expressway")
    options.add_argument("--xways", type=float, nargs="+", default=[1])
    options.add_argument("--format", nargs="+", default=["csv", "parquet"])
    options.add_argument("--input", type=Path, help="an input that is there already")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    minutes, sizes = (30, [0.5]) if chosen.quick else (180, chosen.xways)
    figures: list[dict[str, Any]] = []
    cases = [(xways, form) for xways in sizes for form in chosen.format]
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        for xways, form in cases if chosen.input is None else []:
            source = Path(scratch) / f"input-{xways:g}-{form}"
            generate(source, xways, minutes, form, chosen.seed)
            figures += measure(source, Path(scratch), f"{xways:g} expressways, {minutes} minutes, {form}")
        if chosen.input is not None:
            figures += measure(chosen.input, Path(scratch), chosen.input.name)
    show(figures)
    config = {
        "quick": chosen.quick,
        "xways": sizes,
        "minutes": minutes,
        "seed": chosen.seed,
        "duckdb": duckdb.__version__,
    }
    print(write_result("lr-validate", config, figures))
    return int(any(row["exit"] or row["memory_mb"] >= GOAL_MB for row in figures))


if __name__ == "__main__":
    sys.exit(main())
