"""The L-rating of this machine: runs `penstock lr rate` and keeps its `rating.json` as a result.

A rating is the largest L for which the answers of the scored minutes are all right and none is late. Words
that are not listed below go to `penstock lr rate`. A rating that was stopped resumes if it gets the same
`--out`; the result then names the commit of the last start only. With `--checkout` another checkout is rated,
by its own code: this is how two versions are compared on one machine.

Figure: L, with response times, cores and memory of every trial.
Time:   2 to 5 hours; --quick about 15 minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import facts
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import kit_command
from benchmarks.common.results import recording

QUICK = (
    "--to",
    1,
    "--minutes",
    1,
    "--trial-minutes",
    1,
    "--warm-up",
    60,
    "--traffic-minutes",
    20,
    "--days",
    7,
)


def tool(checkout: Path | None) -> list[str]:
    """The command `penstock lr`: ours, or that of another checkout."""
    return kit_command() if checkout is None else [str(checkout / ".venv/bin/penstock"), "lr"]


def trials_in(out: Path) -> dict[str, Any] | None:
    """The plan and the trials so far of a rating that works there."""
    file = out / "trials.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def main() -> int:
    parser = options(__doc__)
    parser.add_argument(
        "--out", type=Path, help="where it works (default: out/rating, and one for each checkout)"
    )
    parser.add_argument(
        "--checkout", type=Path, help="rate this checkout instead; `make setup` was run in it"
    )
    chosen, words = parser.parse_known_args()
    rated = None if chosen.checkout is None else facts.commit(chosen.checkout)
    # Two versions must not go on with each other's trials.
    out = chosen.out or Path("out/rating" if rated is None else f"out/rating-{rated[:8]}")
    with recording("linear-road-rate", chosen, words=words, rated_commit=rated) as record:
        size = QUICK if chosen.quick else ()
        command = [*tool(chosen.checkout), "rate", "--out", out, "--seed", chosen.seed, *size, *words]
        try:
            ended = subprocess.run(list(map(str, command)), check=False)
        finally:
            record.figures = trials_in(out)  # if it is stopped, this is what it has found
        if ended.returncode:
            raise RuntimeError(f"lr rate ended with {ended.returncode}")
        rating = json.loads((out / "rating.json").read_text(encoding="utf-8"))
        record.figures = rating
        minutes = rating.get("scored_minutes")  # older versions do not tell
        print(f"L = {rating['rating']:g}, {minutes or '?'} scored minutes")
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
