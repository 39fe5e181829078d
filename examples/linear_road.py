"""Linear Road from Python: generate a city and its history, run the network on Spark, validate every answer.

`penstock demo` shows the same on a clock, with a live view and a report. Everything here is
`penstock.linear_road`.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

from penstock.linear_road import (
    HistoryPlan,
    RunPlan,
    generate_history,
    generate_traffic,
    run_input,
    validate_answers,
)


def main(folder: Path) -> bool:
    """Say what happens; whether every answer was right."""
    city, history, run = folder / "city", folder / "history", folder / "run"
    traffic = generate_traffic(city, xways=0.5, minutes=10, seed=7)
    print(f"{traffic['vehicles']:,} vehicles on half an expressway: {traffic['rows']:,} tuples")
    generate_history(HistoryPlan(city, history, days=7))
    # At an infinite speed there is no clock: tuples come as fast as they are answered.
    record = run_input(RunPlan(city, run, history, speed=math.inf))
    print(f"{record['rates']['answers']:,} answers in {record['rates']['wall_s']:.0f} s")
    verdict = validate_answers(city, answers=run, history=history)
    for result in verdict.results:
        print(f"{result.type.name}: {result.right:,} of {result.expected:,} right")
    return verdict.passed


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="linear-road-"))
    sys.exit(0 if main(target) else 1)
