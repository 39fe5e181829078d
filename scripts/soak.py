"""`make soak`: the slow tests at full counts, recorded like a benchmark.

A soak takes hours, so it may run in pieces. Each piece that has passed is kept in out/soak, by commit, and is
not run again; `--fresh` forgets them. The result is written when every piece has run on this commit.

    python scripts/soak.py                          what is still missing on this commit
    python scripts/soak.py --only boxes runtime     these pieces

Figure: what was done (kills, attaches, networks, standing cases), and every test with its outcome and
seconds. Time:   3 to 5 hours; --quick runs the slow tests at their usual counts, about 15 minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common import facts  # noqa: E402 - found through the line above
from benchmarks.common.command_line import options  # noqa: E402
from benchmarks.common.results import recording  # noqa: E402

PIECES = {
    "boxes": ["tests/boxes"],
    "runtime": ["tests/runtime", "tests/store"],
    "standing": ["tests/standing"],
    "diffusion": ["tests/diffusion"],
    "linear_road": ["tests/linear_road", "tests/benchmarks"],
    "fuzz": ["tests/fuzz"],
}
PIECES["rest"] = ["tests", *(f"--ignore={folder}" for folders in PIECES.values() for folder in folders)]
NO_TESTS = 5  # pytest's exit code for a piece that has no slow tests
Piece = dict[str, Any]


def run_tests(words: Sequence[str], report: Path, *, full: bool) -> int:
    """Slow tests in a process of their own, reported to a JUnit file."""
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
    environment = {
        "PENSTOCK_ENGINES": "local,spark",
        **os.environ,
        **({"PENSTOCK_SOAK": "1"} if full else {}),
    }
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return 0 if code == NO_TESTS else code


def outcome(case: ET.Element) -> str:
    """`passed`, or the kind of mark that JUnit puts on a test that did not."""
    marks = {"failure": "failed", "error": "error", "skipped": "skipped"}
    return next((marks[child.tag] for child in case if child.tag in marks), "passed")


def what_was_done(cases: Sequence[ET.Element]) -> Counter[str]:
    """What the tests say that they did (`record_property`), added up by name."""
    total: Counter[str] = Counter()
    for case in cases:
        for item in case.iter("property"):
            total[str(item.get("name"))] += int(item.get("value", 0))
    return total


def run_piece(name: str, *, full: bool) -> Piece:
    """Run one piece and tell how it went."""
    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = run_tests(PIECES[name], report, full=full)
        # pytest wrote the file a moment ago, unless it did not get that far
        cases = list(ET.parse(report).getroot().iter("testcase")) if report.exists() else []  # noqa: S314
    return {
        "exit_code": code,
        "seconds": round(time.monotonic() - clock, 1),
        "commit": facts.commit(),
        "did": dict(what_was_done(cases)),
        "outcomes": dict(Counter(map(outcome, cases))),
        "tests": [
            {
                "test": f"{case.get('classname')}::{case.get('name')}",
                "outcome": outcome(case),
                "seconds": float(case.get("time", 0)),
            }
            for case in cases
        ],
    }


class Finished:
    """Pieces that have passed, kept between two calls: a long soak is stopped and resumed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def forget(self) -> None:
        for file in self.folder.glob("*.json"):
            file.unlink()

    def keep(self, name: str, piece: Piece) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.json").write_text(json.dumps(piece))

    def pieces(self) -> dict[str, Piece]:
        files = {name: self.folder / f"{name}.json" for name in PIECES}
        return {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}


def total(pieces: dict[str, Piece]) -> dict[str, Any]:
    """What the pieces come to."""
    did: Counter[str] = Counter()
    for piece in pieces.values():
        did.update(piece["did"])
    return {"exit_code": max(p["exit_code"] for p in pieces.values()), "did": dict(did), "pieces": pieces}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=PIECES, default=list(PIECES), help="pieces to run")
    parser.add_argument("--fresh", action="store_true", help="run again what has passed on this commit")
    chosen = parser.parse_args()
    finished = Finished(ROOT / "out" / "soak" / f"{facts.commit()}{'-quick' if chosen.quick else ''}")
    if chosen.fresh:
        finished.forget()
    with recording("soak", chosen, only=chosen.only) as record:
        for name in chosen.only:
            if name in finished.pieces():
                continue
            print(f"soak: {name}", flush=True)
            piece = run_piece(name, full=not chosen.quick)
            if piece["exit_code"]:
                record.found_wrong(f"{name}: exit code {piece['exit_code']}")
                record.figures = total({**finished.pieces(), name: piece})
                break
            finished.keep(name, piece)
        else:
            record.figures = total(finished.pieces())
        missing = [name for name in PIECES if name not in finished.pieces()]
        if missing and not record.wrong:
            # The pieces lie in out/soak; the result is written when the last one has passed.
            chosen.no_result = True
            print(f"still to run: {', '.join(missing)}")
    print(record.figures["did"])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
