"""`make soak`: the long tests at full counts, recorded like a benchmark.

A soak takes hours, so it is collected piece by piece, over several sessions and machines. A piece that has
run writes its result at once: benchmarks/results/<date>/soak-PIECE-HHMMSS.json. Bring the results of other
machines there too. When every piece has passed, the soak itself is written: it names its pieces with their
commits, and adds up every count.

    python scripts/soak.py --list                   the pieces, how long each takes, and which are done
    python scripts/soak.py                          run what is still missing
    python scripts/soak.py --only boxes kills-join  these pieces, and not again if they are done
    python scripts/soak.py --since COMMIT           results of COMMIT and of later ones count

Without --since, results count if only documents and results changed after them. Exit code 0: every piece that
was asked for has passed, and has done what it must have done.

Figure: what was done (kills, attaches, networks, standing cases, fuzzed rows, corruptions, requests), and
every test with its outcome and seconds.
Time:   --list says it of each piece; --quick runs them at the counts of CI, to see that they work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common.command_line import options  # noqa: E402 - found through the line above
from benchmarks.common.results import recording  # noqa: E402 - as above
from benchmarks.soak.collected import (  # noqa: E402 - as above
    NAME,
    Collected,
    Commits,
    collect,
    newest_code,
    shortfalls,
    total,
)
from benchmarks.soak.outcomes import read_cases, summary  # noqa: E402 - as above
from benchmarks.soak.pieces import PIECES, Piece  # noqa: E402 - as above

NO_TESTS = 5  # pytest's exit code for a piece that has no long tests


def run_tests(words: Sequence[str], report: Path, *, full: bool) -> int:
    """Long tests in a process of their own, reported to a JUnit file."""
    command = [sys.executable, "-m", "pytest", "-m", "slow or soak", "--timeout", "7200"]
    environment = {
        "PENSTOCK_ENGINES": "local,spark",
        **os.environ,
        **({"PENSTOCK_SOAK": "1"} if full else {}),
    }
    command += [f"--junitxml={report}", *words]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return 0 if code == NO_TESTS else code


def run_piece(piece: Piece, chosen: argparse.Namespace) -> bool:
    """Run one piece and write its result; whether it passed and did what it must."""
    print(f"soak: {piece.name}", flush=True)
    with recording(f"{NAME}-{piece.name}", chosen, tests=piece.tests) as record:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            code = run_tests(piece.words(PIECES.values()), report, full=not chosen.quick)
            figures = summary(read_cases(report))
        record.figures = {"exit_code": code, "counts": piece.counts, **figures}
        if code:
            record.found_wrong(f"{piece.name}: exit code {code} of pytest")
        if not chosen.quick:
            for sentence in shortfalls(piece, figures["did"]):
                record.found_wrong(sentence)
    return record.exit_code == 0


def show(done: Mapping[str, Collected]) -> None:
    """One line for each piece: its minutes, its counts, its result."""
    for piece in PIECES.values():
        time = f"{piece.minutes:3} minutes, {'measured' if piece.measured else 'estimated'}"
        counts = ", ".join(f"{name} {least:,}" for name, least in piece.counts.items())
        state = done[piece.name].file if piece.name in done else "still to run"
        print(f"{piece.name:22} {time:21}  {state}{f'  ({counts})' if counts else ''}")


def finish(done: Mapping[str, Collected], chosen: argparse.Namespace, since: str) -> int:
    """Write the result of the soak if every piece has one that counts; else say what is missing."""
    missing = [name for name in PIECES if name not in done]
    if missing:
        print(f"still to run: {', '.join(missing)}")
        if asked := [name for name in missing if name in chosen.only]:
            print(f"do not count, because tracked files differ from the commit: {', '.join(asked)}")
        return 1 if asked else 0
    with recording(NAME, chosen, since=since) as record:
        record.figures = total(done)
    print(record.figures["did"])
    return record.exit_code


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=PIECES, default=list(PIECES), help="pieces to run")
    parser.add_argument("--list", action="store_true", help="show the pieces and run nothing")
    parser.add_argument("--since", metavar="COMMIT", help="results of this commit and of later ones count")
    parser.add_argument("--fresh", action="store_true", help="run pieces again that have passed")
    return parser.parse_args()


def main() -> int:
    chosen = parse()
    since = chosen.since or newest_code() or ""
    commits = Commits(since)

    def done() -> dict[str, Collected]:
        return collect(PIECES.values(), commits, quick=chosen.quick)

    if chosen.list:
        show(done())
        return 0
    asked = [PIECES[name] for name in chosen.only if chosen.fresh or name not in done()]
    failed = [piece.name for piece in asked if not run_piece(piece, chosen)]
    if failed:
        print(f"failed: {', '.join(failed)}")
        return 1
    return 0 if chosen.no_result else finish(done(), chosen, since)


if __name__ == "__main__":
    sys.exit(main())
