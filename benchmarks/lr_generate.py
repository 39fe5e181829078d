"""How fast `penstock lr generate` is: wall clock, processor time and memory of whole runs, each in a fresh process.

    python benchmarks/lr_generate.py [--quick] [--seed 1] [--scaling 4]

A first short run fills numba's cache and is reported apart. "one core" pins the process to one core;
`--scaling L` adds L expressways with --jobs 1 and with a job for each core. Every run ends up in a
dated JSON file under benchmarks/results; a run that fails is recorded as such and makes the script exit with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Case:
    name: str
    xways: float
    minutes: int
    format: str
    jobs: int
    one_core: bool


@dataclass(frozen=True)
class Result:
    case: Case
    exit_code: int
    wall_s: float
    cpu_s: float
    max_rss_mb: float
    load_before: float
    rows: int
    bytes: int
    hash: str


def cases(quick: bool, scaling: float | None) -> list[Case]:
    minutes, cores = 10 if quick else 180, os.cpu_count() or 1
    more = (
        []
        if scaling is None
        else [
            Case(f"{scaling:g} expressways, --jobs {jobs}", scaling, minutes, "parquet", jobs, one_core=False)
            for jobs in sorted({1, cores})
        ]
    )
    return [
        Case("warm-up (fills numba's cache)", 0.5, 1, "parquet", 1, one_core=True),
        Case("one core, parquet", 1, minutes, "parquet", 1, one_core=True),
        Case("one core, csv", 1, minutes, "csv", 1, one_core=True),
        Case("all cores, parquet", 1, minutes, "parquet", cores, one_core=False),
        *more,
    ]


def run(case: Case, seed: int) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        options = {
            "--xways": case.xways,
            "--minutes": case.minutes,
            "--format": case.format,
            "--jobs": case.jobs,
        }
        flags = [str(part) for pair in options.items() for part in pair]
        command = [
            sys.executable,
            "-m",
            "penstock.cli.lr.commands",
            "generate",
            *flags,
            "--seed",
            str(seed),
            "--out",
            str(out),
        ]
        load = os.getloadavg()[0]
        start = time.perf_counter()
        # The child inherits our cores, so we narrow them for its start.
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)} if case.one_core else cores)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.sched_setaffinity(0, cores)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        whole = (out / "manifest.json").is_file()
        manifest = (
            json.loads((out / "manifest.json").read_text()) if whole else {"rows": 0, "files": [], "hash": ""}
        )
        return Result(
            case=case,
            exit_code=process.returncode,
            wall_s=round(wall, 2),
            cpu_s=round(usage.ru_utime + usage.ru_stime, 2),
            max_rss_mb=round(usage.ru_maxrss / 1024, 1),
            load_before=round(load, 2),
            rows=manifest["rows"],
            bytes=sum((out / name).stat().st_size for name in manifest["files"]),
            hash=manifest["hash"],
        )


def show(results: list[Result]) -> None:
    table = Table("case", "rows", "MB", "wall s", "cpu s", "max RSS MB", "load before", "exit")
    for r in results:
        cells = (
            r.case.name,
            f"{r.rows:,}",
            f"{r.bytes / 1e6:.0f}",
            r.wall_s,
            r.cpu_s,
            r.max_rss_mb,
            r.load_before,
            r.exit_code,
        )
        table.add_row(*map(str, cells))
    Console(width=120).print(table)


def write(results: list[Result], seed: int, quick: bool) -> Path:
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    file = RESULTS / f"{now:%Y-%m-%d-%H%M%S}-lr-generate{'-quick' if quick else ''}.json"
    machine = {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "processor": platform.processor() or platform.machine(),
        "system": platform.platform(),
    }
    versions = {name: version(name) for name in ("penstock", "numba", "numpy", "pyarrow")}
    versions["python"] = platform.python_version()
    figures = [asdict(result) for result in results]
    record = {
        "benchmark": "lr-generate",
        "at": now.isoformat(),
        "machine": machine,
        "versions": versions,
        "seed": seed,
    }
    with file.open("x", encoding="utf-8") as stream:
        json.dump({**record, "quick": quick, "results": figures}, stream, indent=2)
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 minutes of traffic instead of 180")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--scaling", type=float, help="also so many expressways, with one job and with all cores"
    )
    options = parser.parse_args()
    results = [run(case, options.seed) for case in cases(options.quick, options.scaling)]
    show(results)
    print(write(results, options.seed, options.quick))
    # The same seed must give the same bytes on one core and on all.
    made = {(r.case.xways, r.hash) for r in results[1:] if r.case.format == "parquet"}
    same = len(made) == len({xways for xways, _ in made})
    return 0 if same and all(r.exit_code == 0 for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
