"""Networks in short trains without Spark, for the optimizer's benchmark: every box runs in Python there.

The tasks, state and files are those of trains on Spark that are too short for DataFrames; between two phases
a loop carries the records (`penstock.testing.dry_run`). So a run costs no start of a JVM, and its CPU is that
of one process.
"""

from __future__ import annotations

import time
from pathlib import Path

import penstock as ps
from penstock.control.costs import costs_of
from penstock.engine.contract.policy import LIMITS, AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.costs import MeasuredCosts
from penstock.rewrite.subnetworks import SubNetwork, split
from penstock.store.catalog.record_types import BoxCount, TrainRecord
from penstock.testing.dry_run import dry_job

PARTITIONS = 2
_LOOK = 0.02  # seconds between two looks for input


def run_short(network: ps.Network, checkpoint: Path, counted: list[str]) -> tuple[float, MeasuredCosts]:
    """CPU-seconds of the trains that count (all, if no sub-network is named), and the costs of all boxes."""
    used, trains = 0.0, {}
    for sub in split(network):
        trains[sub.name], cpu = _run(sub, checkpoint)
        used += cpu if sub.name in counted or not counted else 0.0
    return used, costs_of(trains)


def _run(sub: SubNetwork, checkpoint: Path) -> tuple[list[TrainRecord], float]:
    done: list[TrainRecord] = []
    settings = QuerySettings(
        PARTITIONS, once=True, close=True, listen=lambda each: done.append(_record(each))
    )
    steering = Steering(AsSoonAsPossible(LIMITS.job_tuples))
    query = SubnetworkQuery(sub, None, checkpoint, steering, settings)  # type: ignore[arg-type]  # a dry run
    query.trains.train_run = dry_job
    used = 0.0
    while not query.finished.is_set():
        if not query.next_ticket():
            time.sleep(_LOOK)  # files settle
            continue
        begun = time.process_time()
        query.run_train(query.last)
        used += time.process_time() - begun
    return done, used


def _record(done: TrainDone) -> TrainRecord:
    commit = done.commit
    boxes = tuple(
        BoxCount(name, counts.get("in", 0), counts.get("out", 0), wall=cost.wall, cpu=cost.cpu)
        for name, counts in commit.counts.items()
        if (cost := commit.costs.get(name)) is not None
    )
    return TrainRecord(done.subnetwork, done.ticket.train, 0.0, done.seconds, done.ticket.rows, boxes)
