"""Overload over seeds and permutations: brings the results of many runs together.

    python -m benchmarks.qos.summary RESULT.json [RESULT.json ...]

Each result of `benchmarks/qos/overload.py` is one seed of one assignment of weights and costs. Pieces that
were no overload, because a run without control kept its zones, are left out and counted.

Figure: for each assignment, load and contender the utility over the seeds: mean, least and largest, and by
        the oracle's; the worst part of seconds in which the strict output was in time; whether state was
        ahead of each other contender in every seed.
Time:   seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.tables import show

OURS = "state"


class Trial(NamedTuple):
    """One contender in one piece."""

    assignment: str
    factor: float
    contender: str
    seed: int
    figures: Mapping[str, Any]


def assignment_of(result: Mapping[str, Any]) -> str:
    told = result["config"]["assignment"]
    return f"{told['name']}, cost doubled" if told.get("doubled") else str(told["name"])


def trials_of(results: Iterable[Mapping[str, Any]]) -> tuple[list[Trial], int]:
    """All trials, and how many pieces were left out."""
    trials, left_out = [], 0
    for result in results:
        for piece in result["figures"]["pieces"]:
            if piece.get("overloaded") is False and piece["factor"] > 1:
                left_out += 1
                continue
            trials += [
                Trial(assignment_of(result), piece["factor"], name, result["seed"], figures)
                for name, figures in piece["contenders"].items()
            ]
    return trials, left_out


def rows_of(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """A row for each contender at each load of each assignment, best first."""
    groups: dict[tuple[str, float, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.assignment, trial.factor, trial.contender].append(trial)
    rows = [
        {
            "assignment": assignment,
            "factor": factor,
            "contender": contender,
            "seeds": len(group),
            "utility": fmean(each.figures["utility"] for each in group),
            "least": min(each.figures["utility"] for each in group),
            "largest": max(each.figures["utility"] for each in group),
            "of_oracle": fmean(each.figures["of_oracle"] for each in group),
            "strict_in_time": min(each.figures["strict"]["in_time"] for each in group),
            "strict_complete": min(each.figures["strict"]["complete"] for each in group),
            "valves_open_s": _largest(each.figures["valves_open_s"] for each in group),
            "turns_per_minute": max(each.figures["turns_per_minute"] for each in group),
        }
        for (assignment, factor, contender), group in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["assignment"], row["factor"], -row["utility"]))


def _largest(values: Iterable[float | None]) -> float | None:
    """None if one of them is None: then it never happened."""
    known = list(values)
    return None if None in known else max(each for each in known if each is not None)


def ahead(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """How often state was ahead of each other contender, of the seeds in which both ran."""
    by = {(t.assignment, t.factor, t.seed, t.contender): t.figures["utility"] for t in trials}
    wins: dict[tuple[str, float, str], list[float]] = defaultdict(list)
    for (assignment, factor, seed, contender), utility in by.items():
        ours = by.get((assignment, factor, seed, OURS))
        if contender != OURS and ours is not None:
            wins[assignment, factor, contender].append(ours - utility)
    return [
        {
            "assignment": assignment,
            "factor": factor,
            "other": other,
            "seeds": len(gaps),
            "ahead": sum(gap > 0 for gap in gaps),
            "least_gap": min(gaps),
        }
        for (assignment, factor, other), gaps in sorted(wins.items())
    ]


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="results of benchmarks/qos/overload.py")
    return parser.parse_args()


def main() -> int:
    chosen = parse()
    names = [f"{file.parent.name}/{file.name}" for file in chosen.results]
    with recording("qos-summary", chosen, results=names) as record:
        trials, left_out = trials_of(json.loads(file.read_text(encoding="utf-8")) for file in chosen.results)
        record.figures = {"rows": rows_of(trials), "ahead": ahead(trials), "left_out": left_out}
        show("Utility under overload", record.figures["rows"])
        show("State against the others", record.figures["ahead"])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
