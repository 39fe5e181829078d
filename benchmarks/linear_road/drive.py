"""What the driver costs at the peak of 200 expressways: 340,000 tuples a second into a directory.

The goal is under 15 % of one core from prepared slices, and no second later than allowed. The slices hold all
copies, or one expressway whose copies are made on the way out. No reader is measured: this process removes
the delivered files, so that the disk does not fill, and is not counted.

Figure: share of one core, lateness of the seconds delivered, and the time to prepare the slices.
Time:   about 7 minutes; --quick about 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.process_tree import kit_command
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from benchmarks.linear_road.standin import in_own_process, make_steady

GOAL_SHARE = 0.15
RATE = 1_700
KEEP = 5
REPORTED = (
    "rows", "bytes", "seconds", "groups", "copies", "lateness_ms", "valid", "wall_seconds", "cpu_seconds",
    "cpu_share",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One way to prepare and drive the same rows."""

    name: str
    format: str
    prepared_copies: bool
    groups: int


CASES = (
    Case("all copies prepared, csv", "csv", prepared_copies=True, groups=8),
    Case("all copies prepared, parquet", "parquet", prepared_copies=True, groups=8),
    Case("copies made while driving, csv", "csv", prepared_copies=False, groups=8),
    Case("copies made while driving, parquet", "parquet", prepared_copies=False, groups=8),
)


def drive(*words: object) -> None:
    """`penstock lr drive`; exit code 3 (a second came too late) is a figure, not a failure."""
    done = subprocess.run(kit_command("drive", *words), capture_output=True, text=True, check=False)
    if done.returncode not in {0, 3}:
        raise RuntimeError(f"lr drive ended with {done.returncode}: {done.stderr[-500:]}")


def run(case: Case, source: Path, first: int, folder: Path, xways: int) -> dict[str, Any]:
    slices, target, report = folder / "slices", folder / "target", folder / "report.json"
    began = time.perf_counter()
    copies = ["--xways", xways, "--groups", case.groups]
    at_prepare, at_drive = (copies, []) if case.prepared_copies else ([], copies)
    drive("--input", source, "--prepare", slices, "--from", first, "--format", case.format, *at_prepare)
    prepared = time.perf_counter() - began
    size = sum(file.stat().st_size for file in slices.iterdir())
    with_reader(target, lambda: drive("--input", slices, "--to", target, "--json", report, *at_drive))
    driven = json.loads(report.read_text(encoding="utf-8"))
    shutil.rmtree(slices)
    shutil.rmtree(target)
    return {
        "case": case.name,
        "rows_per_second": round(driven["rows"] / driven["seconds"]),
        "prepare_seconds": round(prepared, 2),
        "prepared_bytes": size,
        **{key: driven[key] for key in REPORTED},
    }


def with_reader(target: Path, work: Callable[[], None]) -> None:
    """Do `work` while a thread of this process removes all but the newest files of `target`."""
    done = threading.Event()

    def remove() -> None:
        while not done.wait(1.0):
            files = sorted(target.glob("t*"))
            newest = sorted({file.name[:7] for file in files})[-KEEP:]
            for file in files:
                if file.name[:7] not in newest:
                    file.unlink()

    reader = threading.Thread(target=remove)
    reader.start()
    try:
        work()
    finally:
        done.set()
        reader.join()


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="driven in each case")
    parser.add_argument("--xways", type=int, default=200, help="expressways")
    parser.add_argument("--input", type=Path, help="a generated 3-hour expressway instead of the stand-in")
    parser.add_argument(
        "--from", dest="first", type=int, help="first second of --input; default: the last --seconds"
    )
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seconds, chosen.xways = 10, 20
    return chosen


def main() -> int:
    chosen = parse()
    config = {
        "seconds": chosen.seconds,
        "xways": chosen.xways,
        "rate_per_xway": RATE,
        "goal_share": GOAL_SHARE,
    }
    config["input"] = "stand-in" if chosen.input is None else "generated"
    with recording("linear-road-drive", chosen, **config) as record, scratch() as folder:
        source, first = chosen.input, chosen.first or 10_800 - chosen.seconds
        if source is None:
            source, first = folder / "standin.parquet", 0
            in_own_process(make_steady, source, RATE, chosen.seconds, chosen.seed)
        rows = [run(case, source, first, folder, chosen.xways) for case in CASES]
        record.figures = rows
        show("penstock lr drive", [shown(row) for row in rows])
    # Parquet copies on the way out are measured for comparison; the goal is about prepared slices.
    judged = [
        row for case, row in zip(CASES, rows, strict=True) if case.format == "csv" or case.prepared_copies
    ]
    missed = any(not row["valid"] or row["cpu_share"] > GOAL_SHARE for row in judged)
    return record.exit_code or int(missed)


def shown(row: dict[str, Any]) -> dict[str, Any]:
    late = row["lateness_ms"]
    return {
        "case": row["case"],
        "tuples/s": row["rows_per_second"],
        "% of a core": 100 * row["cpu_share"],
        "late p50 ms": late["p50"],
        "p99": late["p99"],
        "max": late["max"],
        "valid": row["valid"],
        "prepare s": row["prepare_seconds"],
        "MB prepared": row["prepared_bytes"] / 1e6,
    }


if __name__ == "__main__":
    sys.exit(main())
