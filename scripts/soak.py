"""`make soak`: the slow tests at full counts, recorded like a benchmark.

Words after the options go to pytest, for example `tests/store`. The exit code is pytest's.

Figure: every test with its outcome and seconds, and how many passed.
Time:   3 to 5 hours; --quick runs the slow tests at their usual counts, about 15 minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common.command_line import options  # noqa: E402 - found through the line above
from benchmarks.common.results import recording  # noqa: E402


def run(words: list[str], report: Path, *, full: bool) -> int:
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
        *words,
    ]
    environment = {"PENSTOCK_ENGINES": "local,spark", **os.environ}
    if full:
        environment["PENSTOCK_SOAK"] = "1"
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def outcome(case: ET.Element) -> str:
    """`passed`, or the kind of mark that JUnit puts on a test that did not."""
    marks = {"failure": "failed", "error": "error", "skipped": "skipped"}
    return next((marks[child.tag] for child in case if child.tag in marks), "passed")


def cases(report: Path) -> list[dict[str, Any]]:
    """Every test with its outcome and seconds; none if pytest did not get as far as a report."""
    if not report.exists():
        return []
    # pytest wrote the file a moment ago
    return [
        {
            "test": f"{case.get('classname')}::{case.get('name')}",
            "outcome": outcome(case),
            "seconds": float(case.get("time", 0)),
        }
        for case in ET.parse(report).getroot().iter("testcase")  # noqa: S314
    ]


def main() -> int:
    chosen, words = options(__doc__).parse_known_args()
    code = 1
    with recording("soak", chosen, words=words) as record, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = run(words, report, full=not chosen.quick)
        tests = cases(report)
        counts = Counter(test["outcome"] for test in tests)
        record.figures = {"exit_code": code, "counts": dict(counts), "tests": tests}
        for test in tests:
            if test["outcome"] in ("failed", "error"):
                record.found_wrong(f"{test['test']}: {test['outcome']}")
        print(", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no tests ran")
    return code


if __name__ == "__main__":
    sys.exit(main())
