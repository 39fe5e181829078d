"""Which PySpark works: the suite of boxes on Spark, run by an interpreter for each version.

    python benchmarks/engine/pyspark_versions.py /venvs/spark41/bin/python /venvs/spark42/bin/python

Each interpreter has one PySpark and the packages of requirements.lock. Nothing of Penstock is installed in
it.

Figure: tests passed, failed and skipped for each version, and the names of those that failed.
Time:   about 10 minutes a version on two quiet cores; --quick runs the tests of Filter only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.common.command_line import options  # noqa: E402 - found through the line above
from benchmarks.common.results import recording  # noqa: E402 - as above

PACKAGES = ("pyspark", "py4j", "pyarrow", "pandas", "numpy")
ASK = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {PACKAGES}}}))"


def versions(python: str) -> dict[str, str]:
    """The versions that an interpreter has."""
    answer = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout
    return dict(json.loads(answer))


def outcome(case: ET.Element) -> str:
    """`passed`, or the mark that JUnit puts on a test that did not."""
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


def run_suite(python: str, tests: str) -> dict[str, Any]:
    """The suite under one interpreter."""
    clock = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PENSTOCK_ENGINES": "spark"}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [python, "-m", "pytest", tests, "-p", "no:cacheprovider", f"--junitxml={report}"]
        code = subprocess.run(
            [*command, "--timeout", "900"], cwd=ROOT, env=environment, check=False
        ).returncode
        # pytest wrote the file a moment ago, unless it did not get that far
        cases = list(ET.parse(report).getroot().iter("testcase")) if report.exists() else []
    names = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if outcome(case) in ("failure", "error")
    ]
    return {
        "versions": versions(python),
        "exit_code": code,
        "seconds": round(time.monotonic() - clock, 1),
        "outcomes": dict(Counter(map(outcome, cases))),
        "failed": names,
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="interpreters, one for each PySpark")
    chosen = parser.parse_args()
    tests = "tests/boxes/stateless/test_filter.py" if chosen.quick else "tests/boxes"
    with recording("pyspark-versions", chosen, tests=tests) as record:
        record.figures = []
        for python in chosen.pythons:
            suite = run_suite(python, tests)
            record.figures.append(suite)
            if suite["exit_code"]:
                record.found_wrong(f"PySpark {suite['versions']['pyspark']}: exit code {suite['exit_code']}")
    for suite in record.figures:
        print(suite["versions"]["pyspark"], suite["outcomes"])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
