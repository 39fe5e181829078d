"""How long the history of one expressway takes, and how large it is.

    python benchmarks/lr_history.py [--quick] [--input DIR] [--format parquet csv]

Goal: 150,000 vehicles and 69 days (10.4 + 19.9 million rows) in 120 s or less on 2 cores. Each run is a fresh process; its
compiled code is cached by a small run before it (reported apart as warm-up).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lr_standin import in_own_process, make_expressway, write_result

GOAL_SECONDS = 120


def run(source: Path, out: Path, days: int, form: str, seed: int) -> dict[str, Any]:
    """One `penstock lr history` in a process of its own."""
    options = ["--input", source, "--out", out, "--days", days, "--format", form, "--seed", seed]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    command = [sys.executable, "-m", "penstock.cli.lr.commands", "history", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return {"format": form, "days": days, "failed": done.stderr.strip()[-500:]}
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return {
        "format": form,
        "days": days,
        "seconds": round(wall, 2),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "memory_mb": round(after.ru_maxrss / 1024),
        "vehicles": manifest["vehicles"],
        "rows": manifest["rows"],
        "bytes": manifest["bytes"],
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a tenth of the vehicles, 7 days")
    options.add_argument("--input", type=Path, help="a generated input instead of the stand-in")
    options.add_argument("--format", nargs="+", default=["parquet", "csv"])
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    days, vehicles = (7, 15_000) if chosen.quick else (69, 150_000)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        folder = Path(scratch)
        source = chosen.input or folder / "standin.parquet"
        if chosen.input is None:
            in_own_process(make_expressway, source, vehicles, 10_800, chosen.seed)
        small = folder / "small.parquet"
        in_own_process(make_expressway, small, 100, 600, chosen.seed)
        warm = [run(small, folder / f"warm-{form}", 1, form, chosen.seed) for form in chosen.format]
        figures = [run(source, folder / form, days, form, chosen.seed) for form in chosen.format]
    config = {
        "quick": chosen.quick,
        "input": "stand-in" if chosen.input is None else "generated",
        "days": days,
        "seed": chosen.seed,
    }
    show(figures)
    print(write_result("lr-history", {**config, "warm_up": warm, "goal_seconds": GOAL_SECONDS}, figures))
    return int(any("failed" in found or found["seconds"] > GOAL_SECONDS for found in figures))


def show(figures: list[dict[str, Any]]) -> None:
    table = Table("format", "days", "seconds", "CPU s", "MB memory", "toll rows", "segment rows", "MB disk")
    for found in figures:
        if "failed" in found:
            table.add_row(found["format"], str(found["days"]), "failed", *[""] * 5)
            continue
        tolls, segments = found["rows"].values()
        size = sum(found["bytes"].values()) / 1e6
        numbers = (
            found["seconds"],
            found["cpu_seconds"],
            found["memory_mb"],
            f"{tolls:,}",
            f"{segments:,}",
            f"{size:,.0f}",
        )
        table.add_row(found["format"], str(found["days"]), *map(str, numbers))
    Console().print(table)


if __name__ == "__main__":
    raise SystemExit(main())
