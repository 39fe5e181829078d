"""Where each microsecond of the Linear Road network goes: peak seconds through Spark, one second a train, as fast as they go.

    python benchmarks/lr_network.py [--quick] [--xways 100] [--seconds 60] [--city DIR]

One expressway is generated (or given, `--city`), its busiest seconds are cut out and copied `--xways` times, delivered in
full before the clock starts, then taken one second a train. The first 33 trains are not counted: by then every vehicle has a previous
report. Reported: processor seconds a million tuples by process (driver, JVM, Python workers) and by box, time of a train from ticket to
commit. Answers are written, state is kept; nothing is validated here (`lr rate` does that).
"""

from __future__ import annotations

import collections
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from common import memory_mb, options, quantile, scratch, session, show, write_result

UNCOUNTED = 33


def prepared(city: Path | None, folder: Path, xways: int, seconds: int) -> Path:
    """The delivered peak: `xways` copies of the last seconds of one expressway."""
    from penstock.linear_road.drive.driver import Drive, drive
    from penstock.linear_road.traffic.generate import generate

    if city is None:
        city = folder / "city"
        generate(city, xways=1, seed=7)
    begin = 10_799 - seconds
    drive(
        Drive(
            city, to=str(folder / "in"), speed=float("inf"), groups=2, copies=xways, begin=begin, end=10_799
        )
    )
    return folder / "in"


def by_process() -> collections.Counter[str]:
    """Processor seconds so far of the driver, the JVM, the source's own process and the workers, those in the kernel apart."""
    me, found = psutil.Process(), collections.Counter[str]()
    for process in [me, *me.children(recursive=True)]:
        try:
            used, line = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        role = (
            "JVM"
            if "java" in line.split(" ")[0]
            else "offsets of the source"
            if "streaming_source" in line
            else "Python workers"
        )
        role = "driver" if process.pid == me.pid else role
        found[role] += used.user
        found[f"{role}, kernel"] += used.system
    return found


def measured(place: Path, spark: Any) -> dict[str, Any]:
    from penstock.linear_road.network import road_network, road_runtime

    net = road_network(None, place / "in", place / "answers")
    run = road_runtime(net, place / "checkpoint", spark=spark, once=True, length=1)
    trains: list[tuple[float, float, int]] = []
    cost: collections.Counter[str] = collections.Counter()
    begun: list[Any] = []
    told = run._train_done

    def done(train: Any) -> None:
        trains.append((train.ticket.arrival, time.time(), train.ticket.rows))
        if len(trains) == UNCOUNTED:
            begun.append((by_process(), time.time()))
        elif len(trains) > UNCOUNTED and train.ticket.rows:
            cost.update(train.outcome.cost)
        told(train)

    run._train_done = done  # type: ignore[method-assign]
    with run:
        run.wait()
        end, used = time.time(), by_process()
        memory = memory_mb()
    counted = [train for train in trains[UNCOUNTED:] if train[2]]
    rows = sum(train[2] for train in counted)
    took = [left - came for came, left, _ in counted]
    spent = {role: (used[role] - begun[0][0][role]) / rows * 1e6 for role in used}
    return {
        "tuples": rows,
        "trains": len(counted),
        "tuples_a_train": rows / len(counted),
        "tuples_a_second": rows / (end - begun[0][1]),
        "cpu_s_a_million": sum(spent.values()),
        "cpu_s_a_million_by_process": spent,
        "wall_s_a_million_by_box": {box: seconds / rows * 1e6 for box, seconds in cost.most_common()},
        "train_s": {"p50": quantile(took, 0.5), "p95": quantile(took, 0.95), "max": max(took)},
        "memory_mb": memory,
    }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--xways", type=int, nargs="+")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--city", type=Path)
    chosen = parser.parse_args()
    sizes = chosen.xways or ([10] if chosen.quick else [1, 20, 100])
    seconds = chosen.seconds or (45 if chosen.quick else 75)
    from penstock.linear_road.network import warm_up

    figures = []
    with scratch() as folder:
        spark = session()
        warm = warm_up(spark)
        city = chosen.city
        for xways in sizes:
            place = folder / str(xways)
            prepared(city, place, xways, seconds)
            city = city or place / "city"
            figures.append({"xways": xways, **measured(place, spark)})
            for name in ("in", "answers", "checkpoint"):
                shutil.rmtree(place / name)
        spark.stop()
    rows = [
        {
            "L": f["xways"],
            "tuples/train": f["tuples_a_train"],
            "tuples/s": f["tuples_a_second"],
            "CPU-s/M": f["cpu_s_a_million"],
            "train p50": f["train_s"]["p50"],
            "max": f["train_s"]["max"],
        }
        for f in figures
    ]
    show(
        "Linear Road network, peak seconds, one a train, as fast as they go",
        rows,
        f"warm-up {warm:.0f} s, not counted",
    )
    write_result("lr-network", chosen, {"xways": sizes, "seconds": seconds, "warm_up_s": warm}, figures)


if __name__ == "__main__":
    sys.exit(main())
