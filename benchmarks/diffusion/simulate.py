"""The cluster of the paper, simulated: the experiments SE1 to SE4 with every figure.

Simulated figures are not measurements of Spark.

Figure: the simulated figures, the claims of the paper beside ours, and the seconds that a simulation takes.
Time:   about 5 minutes; --quick about 30 seconds.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from penstock.diffusion.cluster import arrivals, draw_rates, heterogeneous
from penstock.diffusion.experiments import Setup
from penstock.diffusion.report import report
from penstock.diffusion.simulate import Scheme, random_hosts, simulate


def one_run(servers: int, seed: int, seconds: float) -> float:
    """Seconds that one run of the paper's length takes, streams included."""
    begin = time.perf_counter()
    tuples = arrivals(draw_rates(10, seconds, seed), seconds, seed)
    simulate(heterogeneous(100, seed), tuples, random_hosts(10, servers, 100, seed), Scheme())
    return time.perf_counter() - begin


def experiments(setup: Setup, pictures: Path | None) -> dict[str, Any]:
    """All four experiments; shows which claims hold."""
    with scratch() as folder:
        begin = time.perf_counter()
        claims = report(setup, folder)
        seconds = time.perf_counter() - begin
        figures = json.loads((folder / "figures.json").read_text())
        if pictures is not None:
            pictures.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.svg"):
                shutil.copy(path, pictures / f"diffusion-{path.name}")
    show("Claims", [{"id": c.id, "paper": c.paper, "ours": c.ours, "holds": c.holds} for c in claims])
    return {**figures, "all_seconds": seconds}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs for each point of SE1 and SE2")
    parser.add_argument("--pictures", type=Path, help="also keep the plots in this folder")
    chosen = parser.parse_args()
    short = {"repeats": 1, "seconds": 500.0} if chosen.quick else {"repeats": chosen.repeats}
    setup = Setup(seed=chosen.seed, **short)
    with recording("diffusion-simulate", chosen, repeats=setup.repeats, seconds=setup.seconds) as record:
        record.warm_up = {"seconds": one_run(2, 1, 10.0)}  # compiles
        took = {servers: one_run(servers, chosen.seed, setup.seconds) for servers in (5, 15, 40, 100)}
        show("One run, 100 nodes", [{"servers": k, "seconds": s} for k, s in took.items()])
        record.figures = {**experiments(setup, chosen.pictures), "one_run_seconds": took}
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
