"""How fast `penstock lr generate` is. Each run is a fresh process, imports included.

A first short run fills numba's cache and is reported apart. "one core" pins the process to one core.
`--scaling L` adds L expressways, with one job and with a job for each core. The same seed must give the same
rows on one core and on all.

Figure: wall time, processor time, memory and rows of each run.
Time:   about 2 minutes, with --scaling 4 about 8; --quick about 30 seconds.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import facts
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import kit_command, run_child
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show

SHOWN = ("case", "rows", "bytes", "wall_s", "cpu_s", "max_rss_mb", "load_before", "exit_code")


@dataclass(frozen=True)
class Case:
    """One run of the generator."""

    name: str
    xways: float
    minutes: int
    format: str
    jobs: int
    one_core: bool


WARM_UP = Case("warm-up (fills numba's cache)", 0.5, 1, "parquet", 1, one_core=True)


def cases(minutes: int, scaling: float | None) -> list[Case]:
    cores = os.cpu_count() or 1
    runs = [
        Case("one core, parquet", 1, minutes, "parquet", 1, one_core=True),
        Case("one core, csv", 1, minutes, "csv", 1, one_core=True),
        Case("all cores, parquet", 1, minutes, "parquet", cores, one_core=False),
    ]
    if scaling is not None:
        for jobs in sorted({1, cores}):
            name = f"{scaling:g} expressways, --jobs {jobs}"
            runs.append(Case(name, scaling, minutes, "parquet", jobs, one_core=False))
    return runs


def run(case: Case, seed: int) -> dict[str, Any]:
    with scratch() as folder:
        out, load = folder / "out", facts.load()
        size = [
            "--xways",
            case.xways,
            "--minutes",
            case.minutes,
            "--format",
            case.format,
            "--jobs",
            case.jobs,
        ]
        used = run_child(kit_command("generate", *size, "--seed", seed, "--out", out), one_core=case.one_core)
        if used.exit_code:
            print(used.errors, file=sys.stderr)
        return {
            **asdict(case),
            "case": case.name,
            "exit_code": used.exit_code,
            "wall_s": used.wall_s,
            "cpu_s": used.cpu_s,
            "max_rss_mb": used.memory_mb,
            "load_before": load,
            **written(out),
        }


def written(out: Path) -> dict[str, Any]:
    """Rows, bytes and hash of what was generated; a run that failed wrote no manifest."""
    manifest = out / "manifest.json"
    if not manifest.is_file():
        return {"rows": 0, "bytes": 0, "hash": ""}
    facts_of = json.loads(manifest.read_text(encoding="utf-8"))
    size = sum((out / name).stat().st_size for name in facts_of["files"])
    return {"rows": facts_of["rows"], "bytes": size, "hash": facts_of["hash"]}


def judge(rows: list[dict[str, Any]], record: Record) -> None:
    """A run that failed, and a hash that depends on the number of cores, are wrong."""
    for row in rows:
        if row["exit_code"]:
            record.found_wrong(f"{row['case']}: exit code {row['exit_code']}")
    hashes = {(row["xways"], row["hash"]) for row in rows if row["format"] == "parquet"}
    if len(hashes) > len({xways for xways, _ in hashes}):
        record.found_wrong("the same seed gave different rows on one core and on all")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument(
        "--scaling", type=float, help="also so many expressways, with one job and with all cores"
    )
    chosen = parser.parse_args()
    minutes = 10 if chosen.quick else 180
    with recording("linear-road-generate", chosen, minutes=minutes, scaling=chosen.scaling) as record:
        record.warm_up = run(WARM_UP, chosen.seed)
        rows = [run(case, chosen.seed) for case in cases(minutes, chosen.scaling)]
        record.figures = rows
        judge([record.warm_up, *rows], record)
        show("penstock lr generate", [{name: row[name] for name in SHOWN} for row in rows])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
