"""The process that the kill tests kill: runs a network once over the files of a folder, with trains of random
length and drop rates that change all the time. `python kill_worker.py FOLDER [MASTER]`; exit code 0 when
everything is through.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.engine.contract.situation import Situation
from penstock.testing import examples

RATES = (0.0, 0.1, 0.3, 0.6)
RECOVERY = "PENSTOCK_TEST_RECOVERY"  # in the environment: state is kept by snapshots
CARS, DOORS = "time TIMESTAMP, k INT, v INT", "time TIMESTAMP, k INT, door INT"


def network(folder: Path, *, shed: bool = True, sources: dict[str, Any] | None = None) -> ps.Network:
    """Drop, filter, windows, latch and join; behind the connection point a second sub-network with a latch.

    For the reference: without the drop box, and with lists as sources.
    """
    formats = sources or {
        "cars": ps.csv(str(folder / "cars"), CARS, settle="0"),
        "doors": ps.csv(str(folder / "doors"), DOORS, settle="0"),
    }
    net = ps.Network("killed")
    stays = True if RECOVERY in os.environ else None
    cars = net.source("cars", formats["cars"], timestamp="time", lateness="2 seconds", stays=stays)
    doors = net.source("doors", formats["doors"], timestamp="time", lateness="2 seconds", stays=stays)
    kept = cars.drop(0.0, seed=5, name="shed") if shed else cars
    valid = kept.filter("100 / v > 1", name="valid")
    by_key = valid.group_by("k", name="by_key")
    counted = by_key.latch(
        function=examples.running_count,
        state="seen BIGINT",
        produces="time TIMESTAMP, k INT, v INT, seen BIGINT",
        name="count",
    )
    counted.output("counted", to=ps.parquet(str(folder / "out" / "counted")))
    pairs = valid.join(doors, on=["k"], within="3 seconds", name="matched").select(
        "k", "v", "door", name="cut"
    )
    pairs.output("pairs", to=ps.csv(str(folder / "out" / "pairs")))
    point = by_key.tumble("10 seconds", n="count(*)", total="sum(v)", name="windows").connection_point(
        "minutes", key="k"
    )
    point.filter("n > 2", name="often").output("busy", to=ps.parquet(str(folder / "out" / "busy")))
    again = point.group_by("k", name="again").latch(
        function=examples.running_count,
        state="seen BIGINT",
        produces="time TIMESTAMP, k INT, n BIGINT, seen BIGINT",
        name="number",
    )
    again.output("numbered", to=ps.parquet(str(folder / "out" / "numbered")))
    return net


@dataclass
class AnyLength:
    """Trains of a length that nobody can foresee."""

    least: int = 20
    most: int = 100
    dice: random.Random = field(default_factory=random.Random)

    def next_train(self, situation: Situation) -> int | None:
        del situation
        return self.dice.randint(self.least, self.most)


def main(folder: Path, master: str | None) -> None:
    if master is None:
        # One try for a task, and one for a train: a worker that dies ends the run, which is then restarted.
        os.environ["MASTER"] = "local[2]"
        spark = None
    else:
        from penstock.engine.spark.session import local_session

        memory = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
        spark = local_session(master, "penstock-cluster-test", **memory)
    done = threading.Event()
    running = ps.Runtime(
        network(folder),
        spark,
        folder / "checkpoint",
        once=True,
        close=True,
        policy=AnyLength(),
        partitions=2,
        attempts=1,
        recovery=os.environ.get(RECOVERY),
        take_over="PENSTOCK_TEST_TAKE_OVER" in os.environ,
    )

    def unrest() -> None:
        while not done.wait(0.2):
            running.set_drop_rate("shed", random.choice(RATES))

    with running:
        threading.Thread(target=unrest, daemon=True).start()
        running.wait()
        done.set()
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
