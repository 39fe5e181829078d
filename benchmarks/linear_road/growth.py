"""How the cost of Linear Road grows with L.

Every L is a trial of `penstock lr rate`: the busiest minutes in real time, the driver on the same machine,
the answers of the scored minutes validated. A line through the points gives the fixed cost and the cost of
one more million tuples.

Figure: cores, memory and response times for each L; cores at L = 0 and processor seconds a million tuples.
Time:   about 25 minutes, and 20 more if --set has no prepared traffic; --quick about 6.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from penstock.linear_road.rate.plan import RatePlan
from penstock.linear_road.rate.prepared_input import prepare_set
from penstock.linear_road.rate.rating import TrialRun
from penstock.linear_road.rate.search import NextTrial
from penstock.linear_road.run.rating_record import Trial


def row(trial: Trial) -> dict[str, Any]:
    """The figures of one L."""
    cost, tolls = trial["cost"], trial["latency"].get("0")
    return {
        "L": trial["L"],
        "tuples_per_s": cost.get("tuples_in_per_s"),
        "answers_per_s": cost.get("tuples_out_per_s"),
        "cores": cost.get("cores"),
        "cpu_s_per_million": cost.get("cpu_s_per_million"),
        "driver_cores": trial["driver"].get("cpu_share"),
        "memory_mb": cost.get("memory_mb"),
        "toll_p50_s": tolls and tolls["p50"],
        "toll_p99_s": tolls and tolls["p99"],
        "toll_max_s": tolls and tolls["max"],
        "late": trial["late"],
        "wrong": trial["wrong"],
        "void": trial["void"] or "",
        "backlog_s": cost.get("backlog_s"),
        "load": trial["load_at_end"],
    }


def line_through(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Cores = fixed + slope * tuples/s, by least squares over the L that kept up."""
    kept = [
        r
        for r in rows
        if r["cores"] is not None and r["tuples_per_s"] and not r["late"] and not r.get("void")
    ]
    if len(kept) < 2:
        return {}
    x, y = ([r[name] for r in kept] for name in ("tuples_per_s", "cores"))
    slope, fixed = np.polyfit(x, y, 1)
    return {"fixed_cores": float(fixed), "cpu_s_per_million_more": float(slope * 1e6), "points": len(kept)}


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--lengths", type=float, nargs="+", default=[1, 10, 100, 400, 1000], help="each L")
    parser.add_argument("--set", type=Path, help="the prepared set of a rating; made if it is not there")
    parser.add_argument("--base", type=float, default=5, help="expressways that are generated")
    parser.add_argument("--minutes", type=int, default=1, help="scored minutes of each trial")
    parser.add_argument("--interval", type=float, default=0.0, help="seconds between two trains at least")
    parser.add_argument("--warm-up", type=int, default=90, help="seconds before them")
    return parser.parse_args()


def plan_of(chosen: argparse.Namespace, folder: Path) -> RatePlan:
    plan = RatePlan(
        folder,
        trial_minutes=chosen.minutes,
        warm_up=chosen.warm_up,
        set=chosen.set,
        seed=chosen.seed,
        base=chosen.base,
        interval=chosen.interval,
    )
    return replace(plan, base=1, traffic_minutes=20, days=7, minutes=1) if chosen.quick else plan


def main() -> int:
    chosen = parse()
    lengths = [0.5, 1] if chosen.quick else chosen.lengths
    with recording("linear-road-growth", chosen, lengths=lengths) as record, scratch() as folder:
        plan = plan_of(chosen, folder)
        record.config |= plan.as_json()
        prepared = prepare_set(plan, lambda _name, _done, _total: None, os.cpu_count() or 1)
        rows: list[dict[str, Any]] = []
        record.figures = {"rows": rows}
        for number, length in enumerate(lengths):
            attempt = TrialRun(plan, prepared, NextTrial("try", length), number)
            rows.append(row(attempt.run()))
            attempt.clear()
            print(rows[-1], flush=True)
            if rows[-1]["wrong"]:
                record.found_wrong(f"L = {length:g}: {rows[-1]['wrong']} wrong answers")
        record.figures["fit"] = fit = line_through(rows)
        show("Linear Road: cost by L, busiest minutes, real time", rows, str(fit))
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
