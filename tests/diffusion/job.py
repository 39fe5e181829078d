"""The process that the kill tests kill: one diffused join over a folder's files, with many role switches.

`python job.py FOLDER [MASTER]`; exit code 0 when everything is through.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_log import TrainLog

SCHEMA = "time TIMESTAMP, k INT, v INT"
WITHIN = (4, 6)
LENGTH = 40  # tuples of each stream in a train
SWITCH = 8  # trains after which roles are switched


def network(folder: Path) -> ps.Network:
    net = ps.Network("spread")
    left, right = (
        net.source(n, ps.csv(str(folder / n), SCHEMA, settle="0"), timestamp="time")
        for n in ("left", "right")
    )
    pairs = left.join(
        right,
        on="k",
        within=WITHIN,
        where="v <> v_right",
        distribution="auto",
        servers=2,
        sample="5 seconds",
        name="pairs",
    )
    pairs.select("time", "k", "v", "time_right", "v_right", name="cut").output(
        "out", to=ps.parquet(str(folder / "out"))
    )
    return net


def write_input(folder: Path, count: int) -> None:
    """Two ordered streams of different rates, most tuples of one key."""
    dice = random.Random(7)
    for side, rate in (("left", 8), ("right", 5)):
        (folder / side).mkdir(parents=True)
        rows = [
            (n / rate, dice.choice([1, 1, 1, 1, 2, 3]), dice.randrange(50)) for n in range(count * rate // 8)
        ]
        (folder / side / "0.csv").write_text("".join(f"{t},{k},{v}\n" for t, k, v in rows))


def truth(folder: Path) -> Counter:
    """Every pair, by two loops."""
    left, right = (
        [tuple(map(float, line.split(","))) for line in (folder / s / "0.csv").read_text().splitlines()]
        for s in ("left", "right")
    )
    return Counter(
        (a[0], a[1], a[2], b[0], b[2])
        for a in left
        for b in right
        if a[1] == b[1] and a[2] != b[2] and -WITHIN[1] <= b[0] - a[0] <= WITHIN[0]
    )


def found(folder: Path) -> Counter:
    """What was written."""
    rows = [r for path in (folder / "out").glob("*.parquet") for r in pq.read_table(path).to_pylist()]
    return Counter(
        (r["time"].timestamp(), r["k"], r["v"], r["time_right"].timestamp(), r["v_right"]) for r in rows
    )


def log(folder: Path) -> TrainLog:
    return TrainLog(next((folder / "checkpoint" / "queries").iterdir()))


def check(folder: Path) -> str:
    """The pairs are those of the two loops, and roles were really switched."""
    wanted, given = truth(folder), found(folder)
    assert given == wanted, (
        f"lost {sum((wanted - given).values())}, doubled or invented {sum((given - wanted).values())}"
    )
    tickets = [t for t in (log(folder).ticket(n) for n in range(log(folder).last() + 1)) if t is not None]
    roles = [t.joins["pairs"] for t in tickets]
    epochs, transitions = roles[-1].epoch, sum(r.both for r in roles)
    assert epochs >= 2, "roles were hardly switched"
    assert 0 < transitions < len(tickets) - 1, "no train, or every train, went to all servers"
    return (
        f"{sum(wanted.values())} pairs, {len(tickets)} trains, {epochs} switches, "
        f"{transitions} trains in transition"
    )


def main(folder: Path, master: str | None) -> None:
    spark = None
    os.environ.setdefault("MASTER", "local[2]")  # one try for a task: a worker that dies ends the run
    if master is not None:
        from penstock.engine.spark.session import local_session

        memory = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
        spark = local_session(master, "penstock-diffusion-test", **memory)
    running = ps.Runtime(
        network(folder),
        spark,
        folder / "checkpoint",
        once=True,
        close=True,
        policy=AsSoonAsPossible(LENGTH),
        partitions=2,
        attempts=1,
    )
    done = threading.Event()

    def unrest() -> None:
        # by trains, not by seconds: a transition takes some five of them, and there shall be trains beside it
        turn = 0
        while not done.wait(0.05):
            now = (log(folder).last() + 1) // SWITCH
            if now != turn:
                running.set_master("pairs", ("left", "right", "hash")[now % 3])
                turn = now

    with running:
        threading.Thread(target=unrest, daemon=True).start()
        running.wait()
        done.set()
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
