"""The process that the kill test kills: swaps the form of its network after every few trains, until all input
is through. `python swap_worker.py FOLDER`; exit code 0 when it is.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful
from soak import count

SCHEMA = "time TIMESTAMP, k INT, v INT"
FILES, ROWS = count(12, soak=80), 120


def network(folder: Path) -> ps.Network:
    """Filters on both sides of a window, a map between them, and a window that leads to a second output."""
    net = ps.Network("swapped")
    cars = net.source("cars", ps.csv(str(folder / "cars"), SCHEMA, settle="0"), timestamp="time")
    seen = cars.filter("v >= 5", name="seen").map(w="v * 2", name="doubled").filter("w < 180", name="slow")
    by_key = seen.group_by("k", name="by_key")
    windows = by_key.tumble("20 seconds", n="count(*)", most="max(w)", name="windows")
    windows.filter("k <= 2", name="few").output("out", to=ps.parquet(str(folder / "out")))
    return net


def rows(number: int) -> list[tuple[int, int, int]]:
    """The rows of one file, one a second."""
    dice = random.Random(number)
    return [(number * ROWS + at, dice.randrange(5), dice.randrange(100)) for at in range(ROWS)]


def forms(net: ps.Network) -> list[Form]:
    return [Form(rewritten=True, in_use=stateful(net)), Form()]


def main(folder: Path) -> None:
    os.environ["MASTER"] = "local[2]"
    net = network(folder)
    policy = AsSoonAsPossible(60)
    running = ps.Runtime(net, None, folder / "checkpoint", policy=policy, partitions=2, attempts=1)
    with running:
        turn = 0
        while taken(running) < FILES * ROWS:
            running.rewrite("out", forms(net)[turn % 2])
            turn += 1
            before = running.queries["out"].last
            until = time.monotonic() + 60
            while running.queries["out"].last < before + 2 and time.monotonic() < until:
                running.check()
                if taken(running) == FILES * ROWS:
                    break
                time.sleep(0.02)
        running.finish()
        running.wait()


def taken(running: ps.Runtime) -> int:
    account = running.status().accounts.get("cars")
    return 0 if account is None else account.offered


if __name__ == "__main__":
    main(Path(sys.argv[1]))
