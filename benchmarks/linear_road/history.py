"""How long the history of one expressway takes, and how large it is.

The goal is 150,000 vehicles and 69 days (10.4 and 19.9 million rows) in 120 s on 2 cores. Each run is a fresh
process. A small run before it fills the cache of compiled code and is reported apart.

Figure: wall time, processor time, memory, rows and bytes for each format.
Time:   about 4 minutes; --quick about 30 seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.process_tree import kit_command, run_child
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from benchmarks.linear_road.standin import in_own_process, make_expressway

GOAL_SECONDS = 120


def run(source: Path, out: Path, days: int, form: str, seed: int) -> dict[str, Any]:
    """One `penstock lr history` in a process of its own."""
    words = ["--input", source, "--out", out, "--days", days, "--format", form, "--seed", seed]
    used = run_child(kit_command("history", *words))
    if used.exit_code:
        raise RuntimeError(f"lr history ended with {used.exit_code}: {used.errors}")
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return {
        "format": form,
        "days": days,
        "seconds": used.wall_s,
        "cpu_seconds": used.cpu_s,
        "memory_mb": used.memory_mb,
        "vehicles": manifest["vehicles"],
        "rows": manifest["rows"],
        "bytes": manifest["bytes"],
    }


def shown(row: dict[str, Any]) -> dict[str, Any]:
    tolls, segments = row["rows"].values()
    size = sum(row["bytes"].values()) / 1e6
    kept = {name: row[name] for name in ("format", "days", "seconds", "cpu_seconds", "memory_mb")}
    return {**kept, "toll_rows": tolls, "segment_rows": segments, "MB_on_disk": size}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--input", type=Path, help="a generated input instead of the stand-in")
    parser.add_argument("--format", nargs="+", default=["parquet", "csv"])
    chosen = parser.parse_args()
    days, vehicles = (7, 15_000) if chosen.quick else (69, 150_000)
    config = {
        "days": days,
        "input": "generated" if chosen.input else "stand-in",
        "goal_seconds": GOAL_SECONDS,
    }
    with recording("linear-road-history", chosen, **config) as record, scratch() as folder:
        small, source = folder / "small.parquet", chosen.input or folder / "standin.parquet"
        in_own_process(make_expressway, small, 100, 600, chosen.seed)
        if chosen.input is None:
            in_own_process(make_expressway, source, vehicles, 10_800, chosen.seed)
        record.warm_up = [run(small, folder / f"warm-{form}", 1, form, chosen.seed) for form in chosen.format]
        rows = [run(source, folder / form, days, form, chosen.seed) for form in chosen.format]
        record.figures = rows
        show("penstock lr history", [shown(row) for row in rows])
    return record.exit_code or int(any(row["seconds"] > GOAL_SECONDS for row in rows))


if __name__ == "__main__":
    sys.exit(main())
