"""Replacing a sub-network while another runs: how long the changed one pauses, and whether the other notices.

Two sub-networks read the same connection point. One is replaced again and again (hold, drain, change, release); of the
other the latency from arrival to commit is taken before, during and after.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import penstock as ps
from common import Feeder, TrainWatch, options, quantile, scratch, session, show, write_result
from overhead_jobs import FILES, REPORTS, write_input


def network(source: Path, out: Path, limit: int) -> ps.Network:
    net = ps.Network("blip")
    reports = net.source("reports", ps.parquet(str(source), schema=REPORTS), timestamp="time")
    kept = reports.filter("lane < 4").connection_point("kept", keep="10 minutes")
    net.output("changed", kept.filter(f"spd > {limit}"), to=ps.parquet(str(out / "changed")))
    net.output(
        "other", kept.group_by("seg").tumble("1 minute", n="count(*)"), to=ps.parquet(str(out / "other"))
    )
    return net


def sub_of(running: Any, output: str) -> Any:
    return next(q for q in running.queries.values() if output in q.sub.outputs)


def phases(seen: list[dict[str, Any]], changes: list[tuple[float, float]]) -> dict[str, list[float]]:
    """The other's latencies by when its trains arrived: before the first change, within one, after the last."""
    found: dict[str, list[float]] = {"before": [], "during": [], "after": []}
    for train in (t for t in seen if t["rows"]):
        late = train["done"] - train["arrival"]
        if train["done"] < changes[0][0]:
            found["before"].append(late)
        elif any(begun <= train["done"] and train["arrival"] <= ended for begun, ended in changes):
            found["during"].append(late)
        elif train["arrival"] > changes[-1][1]:
            found["after"].append(late)
    return found


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--changes", type=int)
    parser.add_argument("--period", type=float, default=1.0, help="seconds between files")
    chosen = parser.parse_args()
    changes, calm = chosen.changes or (3 if chosen.quick else 12), 12 if chosen.quick else 40
    spark = session()
    times: list[tuple[float, float]] = []
    blips: list[float] = []
    with scratch() as root:
        write_input(root / "prepared", 400, 20_000, chosen.seed)
        prepared = sorted((root / "prepared" / "reports").glob("*.parquet"))
        feeder = Feeder(prepared, root / "in", chosen.period, FILES)  # the times of a train's files overlap
        with ps.Runtime(network(root / "in", root / "out", 0), spark, root / "checkpoint") as running:
            watch = TrainWatch(sub_of(running, "other"))
            feeder.start()
            # trains and a change are far slower while the JVM is cold: neither before nor during may hold such
            _trains(running, watch, 8 if chosen.quick else 40)
            running.replace(network(root / "in", root / "out", 51))
            time.sleep(4 * chosen.period)
            watch.seen.clear()
            time.sleep(calm * chosen.period)
            for number in range(changes):
                begun = time.time()
                made = running.replace(network(root / "in", root / "out", 1 + number % 50))
                times.append((begun, time.time()))
                blips += made.values()
                time.sleep(4 * chosen.period)
            time.sleep(calm * chosen.period)
            running.check()
        feeder.stop()
    found = phases(watch.seen, times)
    rows = [
        {"other": name, "trains": len(v), "latency_p50_s": quantile(v, 0.5), "latency_p90_s": quantile(v, 0.9), "latency_max_s": max(v, default=float("nan"))}
        for name, v in found.items()
    ]  # fmt: skip
    show("The one that is not touched", rows)
    show(
        "The one that is replaced",
        [{"changes": len(blips), "blip_p50_s": statistics.median(blips), "blip_max_s": max(blips)}],
    )
    write_result(
        "blip",
        chosen,
        {"changes": changes, "period": chosen.period},
        {"other": rows, "blips": blips, "latencies": found},
    )
    spark.stop()
    return 0


def _trains(running: Any, watch: TrainWatch, count: int) -> None:
    until = time.time() + 120
    while len(watch.seen) < count and time.time() < until:
        running.check()
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
