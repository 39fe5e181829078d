"""`make soak`: the slow tests at full counts, with a result file that says what ran, where, and how it went.

    python scripts/soak.py [pytest options, for example tests/store]

The exit code is pytest's. A run that fails is recorded as well.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("penstock", "pyspark", "pyarrow", "numpy", "pandas", "duckdb", "hypothesis", "pytest")


def run(options: list[str], report: Path) -> int:
    """All slow tests in a process of their own, reported to a JUnit file."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "slow",
        "--timeout",
        "7200",
        f"--junitxml={report}",
        *options,
    ]
    environment = {"PENSTOCK_ENGINES": "local,spark", **os.environ, "PENSTOCK_SOAK": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def outcome(case: Any) -> str:
    """`passed`, or the kind of mark that JUnit puts on a test that did not."""
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    return {"failure": "failed", "error": "error", "skipped": "skipped"}[kinds[0]] if kinds else "passed"


def cases(report: Path) -> list[dict[str, Any]]:
    """Every test with its outcome and seconds; no report: none (pytest did not get that far)."""
    if not report.exists():
        return []
    # the file was written by pytest a moment ago
    found = ET.parse(report).getroot().iter("testcase")  # noqa: S314
    return [
        {
            "test": f"{c.get('classname')}::{c.get('name')}",
            "outcome": outcome(c),
            "seconds": float(c.get("time", 0)),
        }
        for c in found
    ]


def commit() -> str:
    """The commit that was tested, with a mark if the tree differs from it."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"


def machine() -> dict[str, Any]:
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30, 1),
    }


def java() -> str:
    command = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else Path("java")
    told = subprocess.run([str(command), "-version"], capture_output=True, text=True, check=False)
    return told.stderr.splitlines()[0] if told.stderr else "unknown"


def main(options: list[str]) -> int:
    begun, clock, tested = datetime.now(UTC), time.monotonic(), commit()
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        code = run(options, report)
        tests = cases(report)
    counts = {
        kind: sum(t["outcome"] == kind for t in tests) for kind in ("passed", "failed", "error", "skipped")
    }
    result = {
        "what": "make soak",
        "begun": begun.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - clock, 1),
        "exit_code": code,
        "counts": counts,
        "options": options,
        "commit": tested,
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            "java": java(),
            **{name: version(name) for name in PACKAGES},
        },
        "tests": tests,
    }
    target = ROOT / "benchmarks" / "results" / f"soak-{begun:%Y%m%d-%H%M%S}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(
        f"{', '.join(f'{n} {kind}' for kind, n in counts.items() if n) or 'no tests ran'}; written to {target.relative_to(ROOT)}"
    )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
