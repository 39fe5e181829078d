"""How long Linear Road takes to be in time again after kill -9, at the busiest minutes.

    python benchmarks/lr_recovery.py [--quick] [--xways 20] [--set DIR] [--kill-after 60] [--rest 90]

The run (driver, JVM and workers with it) is killed in mid-stream and the same command started again at once. The clock goes on, so what
fell due meanwhile is answered late; recovered is the first second from which on every answer is in time. All answers are validated:
none may be lost, doubled or wrong.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from common import options, scratch, show, write_result
from penstock.linear_road.drive.driver import read_note
from penstock.linear_road.rate.plan import RatePlan, Window, busiest
from penstock.linear_road.rate.prepared_input import RateSet, prepare_set
from penstock.linear_road.rows.copies import copies_of
from penstock.linear_road.run.response_times import Responses
from penstock.linear_road.validate.shifted import Judged, validate_copies

TOLL_LIMIT = 5.0
_TICK = 0.05


def command(prepared: RateSet, window: Window, length: float, out: Path) -> list[str]:
    given = {
        "--input": prepared.slices.path, "--history": prepared.history, "--out": out, "--xways": length,
        "--from": window.begin, "--until": window.end,
    }  # fmt: skip
    words = [str(word) for pair in given.items() for word in pair]
    return [sys.executable, "-m", "penstock.cli.main", "lr", "run", "--quiet", *words]


def killed_and_gone_on(words: list[str], out: Path, at: int) -> tuple[float, float]:
    """Kill the run when second `at` has been delivered, start it again; (seconds till the driver drove again, in all)."""
    feed = out / "_checkpoint" / "feed"
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while read_note(feed).get("next", 0) <= at:
        if process.poll() is not None:
            raise SystemExit(f"the run ended before it could be killed ({process.returncode})")
        time.sleep(_TICK)
    os.killpg(process.pid, signal.SIGKILL)
    killed = time.monotonic()
    process.wait()
    stood = read_note(feed).get("next", 0)
    again = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while again.poll() is None and read_note(feed).get("next", 0) <= stood:
        time.sleep(_TICK)
    driving = time.monotonic() - killed
    again.wait()
    return driving, time.monotonic() - killed


def recovered_at(answers: Path, window: Window, limit: float) -> int:
    """The first second from which on the slowest answer of every second is in time."""
    responses = Responses()
    responses.add_file(answers)
    slowest = responses.by_second(1.0, window.begin, window.end)
    late = [window.begin + i for i, wait in enumerate(slowest) if wait is not None and wait > limit]
    return max(late) + 1 if late else window.begin


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--xways", type=float, default=20)
    parser.add_argument("--set", type=Path)
    parser.add_argument("--base", type=float, default=5)
    parser.add_argument("--kill-after", type=int, default=90, help="seconds of the run before the kill")
    parser.add_argument("--rest", type=int, default=90, help="seconds driven after the kill")
    chosen = parser.parse_args()
    small = (
        {"base": 1, "length_of_day": 20, "days": 7, "minutes": 5} if chosen.quick else {"base": chosen.base}
    )
    length = 1.0 if chosen.quick else chosen.xways
    with scratch() as folder:
        plan = RatePlan(folder, set=chosen.set, seed=chosen.seed, **small)
        prepared = prepare_set(plan, lambda _name, _done, _total: None, os.cpu_count() or 1)
        figures = measure(prepared, length, chosen.kill_after, chosen.rest, folder / "run")
    show(f"Recovery after kill -9 at L = {length:g}", [figures])
    write_result("lr-recovery", chosen, {"L": length, **plan.as_json()}, figures)
    if figures["wrong"]:
        raise SystemExit("wrong answers")


def measure(prepared: RateSet, length: float, kill_after: int, rest: int, out: Path) -> dict[str, Any]:
    cut = prepared.cut
    seconds = min(kill_after + rest, cut.end - cut.begin)
    begin = busiest(prepared.rates[cut.begin : cut.end], seconds, cut.begin)
    window = Window(begin, begin, begin + seconds)
    killed_at = begin + kill_after
    driving, total = killed_and_gone_on(command(prepared, window, length, out), out, killed_at)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    back = recovered_at(out / "answers.csv", window, TOLL_LIMIT)
    whole, part = prepared.copies(length)
    parts = [Judged(prepared.truth(prepared.base, window), range(whole))] if whole else []
    if part:
        parts.append(Judged(prepared.truth(part, window), range(whole, whole + 1)))
    assert prepared.slices.span is not None
    shift = copies_of(prepared.slices.span, count=whole + (1 if part else 0))
    verdict = validate_copies(out / "answers.csv", parts, shift, history=prepared.history)
    Console().print(verdict.as_json()["types"])
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


if __name__ == "__main__":
    main()
