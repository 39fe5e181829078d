"""How the cost of Linear Road grows with L: tuples/s, processor, memory, response times, near linear or not.

    python benchmarks/lr_growth.py [--quick] [--lengths 1 5 20 50 100 200] [--set DIR] [--minutes 1]

Every L is a trial of `penstock lr rate`: the busiest minutes in real time, the driver on the same machine, every answer validated.
A line through the points gives the fixed cost (cores at L = 0) and the cost of one more expressway.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from common import options, scratch, show, write_result
from penstock.linear_road.rate.plan import RatePlan
from penstock.linear_road.rate.prepared_input import prepare_set
from penstock.linear_road.rate.rating import Attempt, Trial
from penstock.linear_road.rate.search import Next


def row(trial: Trial) -> dict[str, Any]:
    """The figures of one L."""
    cost, tolls = trial["cost"], trial["latency"].get("0", {})
    return {
        "L": trial["L"],
        "tuples_per_s": cost.get("tuples_in_per_s"),
        "answers_per_s": cost.get("tuples_out_per_s"),
        "cores": cost.get("cores"),
        "cpu_s_per_million": cost.get("cpu_s_per_million"),
        "driver_cores": trial["driver"]["cpu_share"],
        "memory_mb": cost.get("memory_mb"),
        "toll_p50_s": tolls.get("p50"),
        "toll_p99_s": tolls.get("p99"),
        "toll_max_s": tolls.get("max"),
        "late": trial["late"],
        "wrong": trial["wrong"],
        "void": trial["void"] or "",
        "backlog_s": cost.get("backlog_s"),
        "load": trial["load_at_end"],
    }


def line_through(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Cores = fixed + slope * tuples/s, by least squares over the L that kept up."""
    kept = [r for r in rows if r["cores"] is not None and not r["late"] and r["tuples_per_s"]]
    if len(kept) < 2:
        return {}
    x, y = ([r[name] for r in kept] for name in ("tuples_per_s", "cores"))
    slope, fixed = np.polyfit(x, y, 1)
    return {"fixed_cores": float(fixed), "cpu_s_per_million_more": float(slope * 1e6), "points": len(kept)}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--lengths", type=float, nargs="+", default=[1, 5, 20, 50, 100, 200])
    parser.add_argument("--set", type=Path, help="the prepared set of a rating; made if it is not there")
    parser.add_argument("--base", type=float, default=5)
    parser.add_argument("--minutes", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=90)
    chosen = parser.parse_args()
    small = {"base": 1, "length_of_day": 20, "days": 7} if chosen.quick else {"base": chosen.base}
    lengths = [0.5, 1] if chosen.quick else chosen.lengths
    with scratch() as folder:
        plan = RatePlan(
            folder, trial_minutes=chosen.minutes, minutes=15 if not chosen.quick else 1, warm_up=chosen.warm_up,
            set=chosen.set, seed=chosen.seed, **small,
        )  # fmt: skip
        prepared = prepare_set(plan, lambda _name, _done, _total: None, os.cpu_count() or 1)
        rows = []
        for number, length in enumerate(lengths):
            trial = Attempt(plan, prepared, Next("try", length), number).run()
            rows.append(row(trial))
            Console().print(rows[-1])
        config = {**plan.as_json(), "lengths": lengths}
    show("Linear Road: cost by L, busiest minutes, real time", rows)
    fit = line_through(rows)
    Console().print(fit)
    write_result("lr-growth", chosen, config, {"rows": rows, "fit": fit})
    if any(r["wrong"] for r in rows):
        raise SystemExit("wrong answers")


if __name__ == "__main__":
    main()
