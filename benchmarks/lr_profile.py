"""Where the time of Linear Road's Python workers goes, step by step: the same tickets, tasks, state and files as on Spark, without it.

    python benchmarks/lr_profile.py [--quick] [--xways 100] [--trains 12] [--city DIR]

A profile of `penstock.testing.dry_run.DryRun` in one process, after as many trains as make every vehicle known. Steps that lie within one another are
told with what is in them, so they do not add up; the profiler itself costs about a tenth.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from pathlib import Path
from typing import Any

from common import options, scratch, show, write_result
from lr_network import UNCOUNTED, prepared
from penstock.testing.dry_run import DryRun

# step -> end of the file's name, and the function in it
STEPS = {
    "all": ("testing/dry_run.py", "train"),
    "the delivered text becomes columns": ("spark/feeds.py", "unpack_feed"),
    "all boxes": ("spark/stage.py", "_box"),
    "boxes with state": ("arrow/column_latch.py", "process"),
    "- tracking": ("pipeline/tracking.py", "process"),
    "- accounts": ("pipeline/accounts.py", "process"),
    "- tolls": ("pipeline/tolls.py", "process"),
    "travel times": ("pipeline/past.py", "journeys"),
    "state, written and checked": ("spark/stage.py", "_keep"),
    "- its file": ("spark/parts.py", "_store"),
    "answers, as text into files": ("spark/sinks.py", "write"),
}


def profiled(place: Path, trains: int) -> tuple[int, float, dict[str, float]]:
    """Tuples, processor seconds, and seconds of each step."""
    from penstock.linear_road.network import road_network

    taken: list[int] = []
    net = road_network(None, place / "in", place / "answers")
    run = DryRun(net, place / "checkpoint", length=1, listen=lambda done: taken.append(done.ticket.rows))
    for _ in range(UNCOUNTED):
        run.train()
    taken.clear()
    profile, begun = cProfile.Profile(), time.process_time()
    profile.enable()
    for _ in range(trains):
        run.train()
    profile.disable()
    used, stats = time.process_time() - begun, pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return sum(taken), used, {step: _seconds(stats, *where) for step, where in STEPS.items()}


def _seconds(stats: dict[tuple[str, int, str], Any], file: str, name: str) -> float:
    found = [spent[3] for (path, _, called), spent in stats.items() if path.endswith(file) and called == name]
    if not found:
        raise SystemExit(f"no call of {name} in {file}: has it another name now? See STEPS")
    return float(sum(found))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--xways", type=int, default=100)
    parser.add_argument("--trains", type=int, default=12)
    parser.add_argument("--city", type=Path, help="traffic of `penstock lr generate`; generated if left out")
    chosen = parser.parse_args()
    xways, trains = (5, 3) if chosen.quick else (chosen.xways, chosen.trains)
    with scratch() as folder:
        prepared(chosen.city, folder, xways, UNCOUNTED + trains + 2)
        tuples, used, seconds = profiled(folder, trains)
    rows = [{"step": step, "s_a_million": spent / tuples * 1e6} for step, spent in seconds.items()]
    show(
        f"Linear Road without Spark, L = {xways}, {tuples:,} tuples, {used / tuples * 1e6:.2f} CPU-s a million",
        rows,
    )
    figures = {"tuples": tuples, "cpu_s_a_million": used / tuples * 1e6, "steps": rows}
    write_result("lr-profile", chosen, {"xways": xways, "trains": trains}, figures)


if __name__ == "__main__":
    main()
