"""Where the time of Linear Road's Python workers goes, step by step, without Spark.

It profiles `penstock.testing.dry_run.DryRun` in one process: the same tickets, tasks, state and files as on
Spark. It starts after as many trains as make every vehicle known. A step includes the steps within it, so
they do not add up. The profiler itself costs about a tenth.

Figure: processor seconds a million tuples, for each step.
Time:   about 4 minutes; --quick about 1.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from benchmarks.linear_road.network import UNCOUNTED, prepared
from penstock.linear_road.rows.inputs import known_delivery
from penstock.linear_road.run.plan import RECOVERY
from penstock.model.durations import parse_duration
from penstock.testing.dry_run import DryRun

# step -> the module and the function that it is
STEPS = {
    "all": ("penstock.testing.dry_run", "train"),
    "what was delivered becomes columns": ("penstock.connectors.feed", "decode"),
    "all boxes": ("penstock.engine.spark.tasks.stage_run", "_run_box"),
    "boxes with state": ("penstock.engine.arrow.boxes.column_latch", "process"),
    "- tracking": ("penstock.linear_road.network.tracking", "process"),
    "- accounts": ("penstock.linear_road.network.accounts", "process"),
    "- tolls": ("penstock.linear_road.network.tolls", "process"),
    "travel times": ("penstock.linear_road.network.past", "journeys"),
    "state, written and checked": ("penstock.engine.spark.tasks.stage", "keep"),
    "- its file": ("penstock.engine.spark.tasks.state_parts", "_store"),
    "answers, as text into files": ("penstock.connectors.files.sink", "write"),
}


def profiled(work: Path, trains: int) -> tuple[int, float, dict[str, float]]:
    """Tuples, processor seconds, and seconds of each step."""
    from penstock.linear_road.network import road_network

    taken: list[int] = []
    net = road_network(None, work / "in", work / "answers")
    run = DryRun(
        net,
        work / "checkpoint",
        length=1,
        recovery=parse_duration(RECOVERY) / 1e6,
        listen=lambda done: taken.append(done.ticket.rows),
    )
    for _ in range(UNCOUNTED):
        run.train()
    taken.clear()
    profile, begun = cProfile.Profile(time.process_time), time.process_time()
    profile.enable()
    for _ in range(trains):
        run.train()
    profile.disable()
    used = time.process_time() - begun
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # typeshed does not name it
    return sum(taken), used, {step: _seconds(stats, *where) for step, where in STEPS.items()}


def _seconds(stats: dict[tuple[str, int, str], Any], module: str, name: str) -> float:
    file = import_module(module).__file__
    spent = [times[3] for (path, _, called), times in stats.items() if (path, called) == (file, name)]
    if not spent:
        raise LookupError(f"{module}.{name} was not called; if it was renamed, change STEPS")
    return float(sum(spent))


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--xways", type=int, default=100, help="expressways")
    parser.add_argument("--trains", type=int, default=12, help="that are profiled")
    parser.add_argument("--city", type=Path, help="traffic of `penstock lr generate`; generated if left out")
    parser.add_argument("--format", dest="form", default="packed", help="how tuples come: packed or text")
    chosen = parser.parse_args()
    xways, trains = (5, 3) if chosen.quick else (chosen.xways, chosen.trains)
    with (
        recording("linear-road-profile", chosen, xways=xways, trains=trains, format=chosen.form) as record,
        scratch() as folder,
    ):
        prepared(chosen.city, folder, xways, UNCOUNTED + trains + 2, known_delivery(chosen.form))
        tuples, used, seconds = profiled(folder, trains)
        per_million = used / tuples * 1e6
        rows = [{"step": step, "s_a_million": spent / tuples * 1e6} for step, spent in seconds.items()]
        record.figures = {"tuples": tuples, "cpu_s_a_million": per_million, "steps": rows}
        show(
            f"Linear Road without Spark, L = {xways}, {tuples:,} tuples, {per_million:.2f} CPU-s a million",
            rows,
        )
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
