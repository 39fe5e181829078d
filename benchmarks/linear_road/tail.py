"""Where the slow trains of a rating spend their time: reads the series of its last trial.

    python -m benchmarks.linear_road.tail RESULT.json

A rating notes of each train how long its job ran, and its parts as the tasks tell: reading, boxes, writing,
state. What is left is Spark's, and waiting for the slower of two tasks. Trains of the scored seconds only.

Figure: for the middle half of the trains and for the slowest 20th: seconds of each part in the mean, and how
        much of what the slow ones take longer is in that part.
Time:   seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.tables import show

PARTS = ("read_s", "boxes_s", "write_s", "state_s")
SLOWEST = 0.05

Train = Mapping[str, float]


def parts_of(train: Train) -> dict[str, float]:
    """The seconds of a train by part.

    >>> parts_of({"ran_s": 1.0, "job_s": 0.9, "read_s": 0.1, "boxes_s": 0.5, "write_s": 0.1, "state_s": 0.0})
    {'read': 0.1, 'boxes': 0.5, 'write': 0.1, 'state': 0.0, 'rest of the job': 0.2, 'commit': 0.1}
    """
    known = {name.removesuffix("_s"): train[name] for name in PARTS}
    rest = {
        "rest of the job": train["job_s"] - sum(known.values()),
        "commit": train["ran_s"] - train["job_s"],
    }
    return {name: round(seconds, 6) for name, seconds in {**known, **rest}.items()}


def compared(trains: Sequence[Train]) -> list[dict[str, Any]]:
    """A row for each part, and one for the whole."""
    ordered = sorted(trains, key=lambda train: train["ran_s"])
    quarter, slow = len(ordered) // 4, max(1, round(SLOWEST * len(ordered)))
    middle, slowest = (_means(each) for each in (ordered[quarter:-quarter], ordered[-slow:]))
    longer = slowest["all"] - middle["all"]
    return [
        {
            "part": part,
            "middle_s": middle[part],
            "slowest_s": slowest[part],
            "of_the_difference": (slowest[part] - middle[part]) / longer,
        }
        for part in middle
    ]


def _means(trains: Sequence[Train]) -> dict[str, float]:
    by_part = [{"all": train["ran_s"], **parts_of(train)} for train in trains]
    return {part: fmean(each[part] for each in by_part) for part in by_part[0]}


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("result", type=Path, help="of benchmarks/linear_road/rate.py")
    return parser.parse_args()


def main() -> int:
    chosen = parse()
    name = f"{chosen.result.parent.name}/{chosen.result.name}"
    with recording("linear-road-tail", chosen, result=name) as record:
        trial = json.loads(chosen.result.read_text(encoding="utf-8"))["figures"]["trials"][-1]
        trains = [each for each in trial["series"]["trains"] if each["second"] >= trial["scored_from"]]
        rows = compared(trains)
        record.figures = {"L": trial["L"], "trains": len(trains), "rows": rows}
        show(f"L = {trial['L']:g}: the slowest {SLOWEST:.0%} of {len(trains)} trains", rows)
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
