"""Linear Road at 1.5 times its rating: under control, and without.

Both run the busiest minutes in real time, the driver on the same machine. Under control, whole groups of
expressways are left out. What is exact is judged by the oracle: an expressway that was left out is not exact
until it is back for five minutes, and one in whose copy of the input any answer is late or wrong does not
count as kept. So the warm-up should be longer than five minutes: the overload begins with the run, and it
takes control some trains to know what they cost. --burners are busy processes that make the machine slower
than a small L; with --speed the clock runs faster, and the limits shrink.

Figure: expressways kept exact and in time in all scored minutes, by the rating; late and wrong answers.
Time:   minutes + warm-up for each of the two, and as long to judge; --quick about 15 minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from penstock.linear_road.rate.plan import RatePlan
from penstock.linear_road.rate.prepared_input import RateSet, prepare_set
from penstock.linear_road.rate.rating import TrialRun
from penstock.linear_road.rate.search import NextTrial
from penstock.linear_road.run.child_run import run_in_child
from penstock.linear_road.run.record import RunRecord
from penstock.linear_road.run.run_folder import CHECKPOINT, RUN
from penstock.linear_road.validate.judged import exact_throughout, inexact
from penstock.process.child_process import last_said

BAR = 0.85
"""The part of the rating's expressways that control has to keep exact and in time."""

CONTENDERS = {"control": True, "none": False}


@contextlib.contextmanager
def burning(processes: int) -> Iterator[None]:
    """So many busy processes beside the run."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def lateness(record: RunRecord) -> dict[str, Any]:
    """Of the scored answers that were given, how many were late, by type; and seconds that were late."""
    latency, series, scored = record["latency"], record["series"], record["warm_up"]["scored_from"]
    pairs = zip(series.get("second", []), series.get("p50", []), strict=True)
    seconds = [wait for second, wait in pairs if second >= scored and wait is not None]
    return {
        "scored": sum(figures["scored"] for figures in latency.values()),
        "late": sum(figures["late"] for figures in latency.values()),
        "late_by_type": {kind: figures["late"] for kind, figures in latency.items()},
        "p99_s": {kind: figures["p99"] for kind, figures in latency.items()},
        "scored_seconds": len(seconds),
        "late_seconds": sum(wait > 5 for wait in seconds),
        "gave_up_at": record["gave_up_at"],
    }


def of_run(record: RunRecord) -> dict[str, Any]:
    """What a run tells itself."""
    return {
        "finished": record["finished"],
        "driver_late_seconds": record["driver"].get("late_seconds"),
        "tuples": record["input"]["rows"],
        "groups": record["config"].get("groups"),
        "cost": record["cost"],
        "load_at_end": record["machine"]["load"],
        **lateness(record),
    }


def of_control(trial: TrialRun, record: RunRecord, rating: float) -> dict[str, Any]:
    """What control has kept, by the oracle."""
    out, window = record.get("left_out", []), trial.window
    verdict = trial.verdict(out)
    spans, roads = inexact(out), range(round(trial.step.expressways))
    out_at_all = {xway for each in out for xway in each["xways"]}
    return {
        "kept": len(verdict.kept),
        "kept_of_rating": len(verdict.kept) / rating,
        "never_left_out": len(roads) - len(out_at_all),
        "exact_when_scored": len(exact_throughout(roads, spans, window.scored_from, window.end)),
        "judged_late": verdict.late,
        "judged_wrong": verdict.wrong,
        "judged": verdict.as_json(),
        "left_out": out,
    }


def contend(
    plan: RatePlan, prepared: RateSet, name: str, chosen: argparse.Namespace, number: int
) -> dict[str, Any]:
    """Run one contender and judge it."""
    # A folder of its own: what a killed run of another contender has left is not this one's.
    own = replace(plan, out=plan.out / name)
    trial = TrialRun(own, prepared, NextTrial("confirm", chosen.length), number)
    controlled = CONTENDERS[name]
    headroom = chosen.headroom if controlled else None
    with burning(chosen.burners):
        code = run_in_child(replace(trial.run_plan(), qos=controlled, headroom=headroom), trial.log)
    if not (trial.folder / RUN).is_file():
        return {"contender": name, "finished": False, "crashed": f"exit code {code}: {last_said(trial.log)}"}
    # The answers are all that is judged; the state takes as much room as they do.
    shutil.rmtree(trial.folder / CHECKPOINT / "queries", ignore_errors=True)
    record: RunRecord = json.loads((trial.folder / RUN).read_text(encoding="utf-8"))
    figures = {"contender": name, **of_run(record)}
    if controlled and record["finished"]:
        figures |= of_control(trial, record, chosen.rating)
    if chosen.keep is not None:
        shutil.copytree(trial.folder, chosen.keep / name, ignore=shutil.ignore_patterns("answers*", "feed"))
    shutil.rmtree(trial.folder, ignore_errors=True)
    return figures


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--rating", type=float, default=1000, help="the rating of this machine")
    parser.add_argument("--factor", type=float, default=1.5, help="times the rating is L")
    parser.add_argument("--minutes", type=int, default=15, help="scored minutes")
    parser.add_argument("--warm-up", type=int, default=420, help="seconds before them")
    parser.add_argument("--headroom", type=float, help="of control; its default if left out")
    parser.add_argument("--speed", type=float, default=1.0, help="times as fast as real time")
    parser.add_argument("--burners", type=int, default=0, help="busy processes beside the run")
    parser.add_argument("--only", choices=CONTENDERS, help="run only this one")
    parser.add_argument("--set", type=Path, help="the prepared set of a rating; made if it is not there")
    parser.add_argument("--work", type=Path, help="where runs work; a temporary folder if left out")
    parser.add_argument("--keep", type=Path, help="keep run.json and checkpoints there, without answers")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rating, chosen.minutes, chosen.warm_up, chosen.speed, chosen.burners = 64, 4, 420, 4.0, 4
    chosen.length = float(round(chosen.factor * chosen.rating))
    return chosen


def plan_of(chosen: argparse.Namespace, folder: Path) -> RatePlan:
    plan = RatePlan(
        folder,
        minutes=chosen.minutes,
        trial_minutes=1,
        warm_up=chosen.warm_up,
        set=chosen.set,
        seed=chosen.seed,
        speed=chosen.speed,
    )
    return replace(plan, base=1, traffic_minutes=30, days=7) if chosen.quick and not chosen.set else plan


def main() -> int:
    chosen = parse()
    bar = BAR * chosen.rating
    with (
        recording(
            "linear-road-overload", chosen, rating=chosen.rating, L=chosen.length, burners=chosen.burners
        ) as record,
        contextlib.ExitStack() as stack,
    ):
        folder = chosen.work or stack.enter_context(scratch())
        plan = plan_of(chosen, folder)
        record.config |= {**plan.as_json(), "headroom": chosen.headroom}
        prepared = prepare_set(plan, lambda _name, _done, _total: None, os.cpu_count() or 1)
        rows: list[dict[str, Any]] = []
        record.figures = {"L": chosen.length, "rating": chosen.rating, "bar": bar, "contenders": rows}
        for number, name in enumerate([chosen.only] if chosen.only else list(CONTENDERS)):
            rows.append(contend(plan, prepared, name, chosen, number))
            if rows[-1].get("judged_wrong"):
                record.found_wrong(f"{name}: {rows[-1]['judged_wrong']} wrong answers of what was judged")
        columns = ("contender", "kept", "judged_late", "judged_wrong", "late", "scored", "gave_up_at")
        shown = [{name: row.get(name) for name in columns} for row in rows]
        show(f"Linear Road at L = {chosen.length:g}, rating {chosen.rating:g}, bar {bar:g}", shown)
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
