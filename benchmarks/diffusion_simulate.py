"""The paper's cluster, simulated: SE1-SE4 with every figure, and how long one run of 5,000 s takes.

`--pictures DIR` also keeps the plots. Simulated figures are not measurements of Spark.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from common import options, scratch, show, write_result
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


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pictures", type=Path)
    chosen = parser.parse_args()
    setup = (
        Setup(seed=chosen.seed, repeats=1, seconds=500.0)
        if chosen.quick
        else Setup(seed=chosen.seed, repeats=chosen.repeats)
    )
    one_run(2, 1, 10.0)  # compiles
    took = {servers: one_run(servers, chosen.seed, setup.seconds) for servers in (5, 15, 40, 100)}
    with scratch() as folder:
        begin = time.perf_counter()
        claims = report(setup, folder)
        whole = time.perf_counter() - begin
        figures = json.loads((folder / "figures.json").read_text())
        if chosen.pictures is not None:
            chosen.pictures.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.svg"):
                shutil.copy(path, chosen.pictures / f"diffusion-{path.name}")
    show(
        "One run, 100 nodes",
        [{"servers": k, "seconds": s} for k, s in took.items()],
        f"all four experiments: {whole:.0f} s",
    )
    show("Claims", [{"id": c.id, "paper": c.paper, "ours": c.ours, "holds": c.holds} for c in claims])
    write_result(
        "diffusion-simulate",
        chosen,
        {"repeats": setup.repeats, "seconds": setup.seconds},
        {**figures, "one_run_seconds": took, "all_seconds": whole},
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
