"""How long Linear Road takes to be in time again after kill -9, at the busiest minutes.

The run is killed in mid-stream, with its driver, JVM and workers, and the same command is started again at
once. The clock goes on, so answers that fall due meanwhile are late. The run has recovered at the first
second from which on every answer is in time. All answers are validated: none may be lost, doubled or wrong.

Figure: seconds from the kill until every answer is in time again.
Time:   about 5 minutes, and 20 more if --set has no prepared traffic; --quick about 5.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from penstock.linear_road.drive.drive_report import read_note
from penstock.linear_road.rate.plan import RatePlan, Window, busiest
from penstock.linear_road.rate.prepared_input import RateSet, prepare_set
from penstock.linear_road.rows.copies import copies_of
from penstock.linear_road.run.response_times import ResponseTimes
from penstock.linear_road.validate.shifted import JudgedCopies, validate_copies

TOLL_LIMIT = 5.0
_TICK = 0.05


def command(prepared: RateSet, window: Window, length: float, out: Path) -> list[str]:
    source = ["--input", prepared.slices.path, "--history", prepared.history, "--xways", length]
    words = [str(word) for word in [*source, "--from", window.begin, "--until", window.end, "--out", out]]
    return [sys.executable, "-m", "penstock.cli.main", "lr", "run", "--quiet", *words]


def kill_and_resume(words: list[str], out: Path, at: int) -> tuple[float, float]:
    """Kill the run when second `at` has been delivered, and start it again.

    Returns the seconds from the kill until the driver drove again, and until the run ended.
    """
    feed, quiet = out / "_checkpoint" / "feed", subprocess.DEVNULL
    process = subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True)
    while read_note(feed).get("next", 0) <= at:
        if process.poll() is not None:
            raise RuntimeError(f"the run ended before it could be killed ({process.returncode})")
        time.sleep(_TICK)
    os.killpg(process.pid, signal.SIGKILL)
    killed = time.monotonic()
    process.wait()
    stood = read_note(feed).get("next", 0)
    again = subprocess.Popen(words, stdout=quiet, stderr=quiet)
    while again.poll() is None and read_note(feed).get("next", 0) <= stood:
        time.sleep(_TICK)
    driving = time.monotonic() - killed
    again.wait()
    return driving, time.monotonic() - killed


def recovered_at(answers: Path, window: Window, limit: float) -> int:
    """The first second from which on the slowest answer of every second is in time."""
    responses = ResponseTimes()
    responses.add_file(answers)
    slowest = responses.by_second(1.0, window.begin, window.end)
    late = [window.begin + i for i, wait in enumerate(slowest) if wait is not None and wait > limit]
    return max(late) + 1 if late else window.begin


def measure(prepared: RateSet, length: float, kill_after: int, rest: int, out: Path) -> dict[str, Any]:
    cut = prepared.cut
    seconds = min(kill_after + rest, cut.end - cut.begin)
    begin = busiest(prepared.rates[cut.begin : cut.end], seconds, cut.begin)
    window = Window(begin, begin, begin + seconds)
    killed_at = begin + kill_after
    driving, total = kill_and_resume(command(prepared, window, length, out), out, killed_at)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    back = recovered_at(out / "answers.csv", window, TOLL_LIMIT)
    whole, part = prepared.copies(length)
    parts = [JudgedCopies(prepared.truth(prepared.base, window), range(whole))] if whole else []
    if part:
        parts.append(JudgedCopies(prepared.truth(part, window), range(whole, whole + 1)))
    assert prepared.slices.span is not None
    shift = copies_of(prepared.slices.span, count=whole + (1 if part else 0))
    verdict = validate_copies(out / "answers.csv", parts, shift, history=prepared.history)
    print(verdict.as_json()["types"])
    return {
        "L": length,
        "tuples": record["input"]["rows"],
        "killed_at_s": killed_at - begin,
        "driver_back_s": round(driving, 1),
        "warm_up_s": record["warm_up"]["seconds"],
        "in_time_again_s": back - killed_at,
        "run_ended_s": round(total, 1),
        "wrong": verdict.wrong,
        "kills": record["attempts"]["kills"],
    }


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--xways", type=float, default=20, help="L")
    parser.add_argument("--set", type=Path, help="the prepared set of a rating; made if it is not there")
    parser.add_argument("--base", type=float, default=5, help="expressways that are generated")
    parser.add_argument("--kill-after", type=int, default=90, help="seconds of the run before the kill")
    parser.add_argument("--rest", type=int, default=90, help="seconds driven after the kill")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.xways = 1.0
    return chosen


def plan_of(chosen: argparse.Namespace, folder: Path) -> RatePlan:
    plan = RatePlan(folder, set=chosen.set, seed=chosen.seed, base=chosen.base)
    return replace(plan, base=1, traffic_minutes=20, days=7, minutes=5) if chosen.quick else plan


def main() -> int:
    chosen = parse()
    with recording("linear-road-recovery", chosen, L=chosen.xways) as record, scratch() as folder:
        plan = plan_of(chosen, folder)
        record.config |= plan.as_json()
        prepared = prepare_set(plan, lambda _name, _done, _total: None, os.cpu_count() or 1)
        figures = measure(prepared, chosen.xways, chosen.kill_after, chosen.rest, folder / "run")
        record.figures = figures
        if figures["wrong"]:
            record.found_wrong(f"{figures['wrong']} wrong answers")
        show(f"Recovery after kill -9 at L = {chosen.xways:g}", [figures])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
