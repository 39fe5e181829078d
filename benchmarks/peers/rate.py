"""The largest L that another way of doing Linear Road sustains in real time.

The peer waits, warm, and the driver runs on the same machine. A trial passes if every answer is right and no
scored one is late. L doubles until a trial fails, then the gap is halved down to a tenth of L or half an
expressway. The input is the last seconds of three hours of half an expressway, copied. In such a cut every
vehicle seems new at first, so the first 30 seconds are checked but not timed.

Figure: L of the peer, with response times and cost of every trial.
Time:   5 to 20 minutes for each trial; --quick about 3 in all.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.common.command_line import options
from benchmarks.common.process_tree import kit_command
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.peers.ways import Cut, Setting, flat, is_right, peer_command, prepare

NOT_SCORED = 30
PATIENCE = 120
"""Seconds that a peer gets after the driver has ended."""

_FIELDS = ", ".join(f"'column{i}': 'DOUBLE'" for i in range(6))
_LATE = f"""
SELECT count(*) FILTER (wait > CASE kind WHEN 3 THEN 10 WHEN 4 THEN 30 ELSE 5 END),
       quantile_disc(wait, 0.5) FILTER (kind = 0),
       quantile_disc(wait, 0.99) FILTER (kind = 0),
       max(wait) FILTER (kind = 0)
FROM (
    SELECT column0 AS kind,
           CASE column0 WHEN 0 THEN column3 - column2 ELSE column2 - column1 END AS wait,
           CASE column0 WHEN 0 THEN column2 ELSE column1 END AS time
    FROM read_csv(?, header = false, auto_detect = false, delim = ',', null_padding = true,
                  columns = {{{_FIELDS}}})
)
WHERE time >= ?"""


def late_answers(answers: Path, scored_from: int) -> tuple[int, dict[str, float]]:
    """How many scored answers came late, and the response times of the tolls."""
    row = duckdb.connect().execute(_LATE, [str(answers), scored_from]).fetchone()
    assert row is not None
    return int(row[0]), {name: wait or 0 for name, wait in zip(("p50", "p99", "max"), row[1:], strict=True)}


def trial(setting: Setting, name: str, length: float, scored_from: int) -> dict[str, Any]:
    """One run in real time, and what its answers are worth."""
    rows, out = flat(setting, length), setting.scratch / f"{name}-{length:g}.csv"
    failure, cost = run_in_real_time(setting, name, length, out)
    if failure:
        return {"L": length, "pass": False, "why": failure}
    late, waits = late_answers(out, scored_from)
    right = is_right(setting, rows, out)
    passed = right and not late
    return {"L": length, "pass": passed, "late": late, "right": right, "tolls": waits, "cost": cost}


def run_in_real_time(setting: Setting, name: str, length: float, out: Path) -> tuple[str, dict[str, Any]]:
    """The peer behind the driver: why it failed (empty if it did not), and what it cost."""
    with tempfile.TemporaryDirectory(dir=setting.scratch) as folder:
        fed, ready, cost = (Path(folder) / part for part in ("fed", "ready", "cost.json"))
        fed.mkdir()
        words = [
            "--follow",
            fed,
            "--history",
            setting.history,
            "--out",
            out,
            "--ready",
            ready,
            "--json",
            cost,
        ]
        if setting.persist:
            words += ["--database", Path(folder) / "system-x.duckdb"]
        peer = subprocess.Popen(peer_command(name, *words), stderr=subprocess.DEVNULL)
        while not ready.exists() and peer.poll() is None:
            time.sleep(0.2)
        drive = ["--input", setting.source, "--xways", length, "--to", fed]
        command = kit_command("drive", *drive, "--json", Path(folder) / "drive.json")
        driver = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
        code = wait_for(peer)
        used = json.loads(cost.read_text(encoding="utf-8")) if cost.exists() else {}
    failed = code or driver.returncode
    return f"peer ended with {code}, driver with {driver.returncode}" if failed else "", used


def wait_for(peer: subprocess.Popen[bytes]) -> int:
    """A peer that is far behind when the driver has ended is killed."""
    try:
        return peer.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        peer.kill()
        peer.wait()
        return -9


def following(good: float, bad: float | None, last: float, end: float) -> float:
    """The L to try next; 0 ends the search.

    >>> following(8, None, 8, 64), following(8, 16, 16, 64)
    (16, 12.0)
    >>> following(8, 8.5, 8.5, 64), following(0, 0.5, 0.5, 64)
    (0, 0)
    """
    if bad is None:
        return min(2 * last, end) if last < end else 0
    step = max(0.5, round(good / 10 * 2) / 2)
    middle = math.floor(good + bad) / 2
    return middle if bad - good > step and middle not in (good, bad) and middle > 0 else 0


def search(
    setting: Setting, chosen: argparse.Namespace, scored_from: int, trials: list[dict[str, Any]]
) -> None:
    """Adds to `trials`, so that those made are kept when the search is stopped."""
    good, bad, length = 0.0, None, chosen.begin
    while length:
        trials.append(trial(setting, chosen.peer, length, scored_from))
        print(json.dumps(trials[-1]), file=sys.stderr)
        good, bad = (length, bad) if trials[-1]["pass"] else (good, length)
        length = following(good, bad, length, chosen.end)


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--peer", choices=("system-x", "spark-vehicles"), default="system-x")
    parser.add_argument("--seconds", type=int, default=120, help="of the busiest traffic")
    parser.add_argument("--days", type=int, default=7, help="of history")
    parser.add_argument("--from", dest="begin", type=float, default=0.5, help="the first L")
    parser.add_argument("--to", dest="end", type=float, default=4096, help="the largest L")
    parser.add_argument("--persist", action="store_true", help="system-x: in a file, a checkpoint a second")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seconds, chosen.end = 60, 0.5
    return chosen


def main() -> int:
    chosen = parse()
    minutes = 10 if chosen.quick else 180
    config = {"peer": chosen.peer, "minutes": minutes, "seconds": chosen.seconds, "days": chosen.days}
    config["persist"] = chosen.persist
    with recording(f"peers-rate-{chosen.peer}", chosen, **config) as record, scratch() as folder:
        # L goes in steps of half an expressway, so half an expressway is copied.
        setting = prepare(folder, Cut(0.5, minutes, chosen.seconds, chosen.days, chosen.seed))
        setting = replace(setting, persist=chosen.persist)
        trials: list[dict[str, Any]] = []
        record.figures = {"trials": trials}
        search(setting, chosen, minutes * 60 - chosen.seconds + NOT_SCORED, trials)
        record.figures["rating"] = rating = max((t["L"] for t in trials if t["pass"]), default=0)
        print(f"{chosen.peer}: L = {rating:g}")
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
