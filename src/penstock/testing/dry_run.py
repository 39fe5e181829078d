"""Packed trains without Spark: the same tickets, tasks, state and files, in this process.

Between two stages Spark only carries records to the partition of their label. Here a loop does that. So a
network of feeds and vectorised boxes is tested in milliseconds, and profiled without a JVM around it.
"""

from __future__ import annotations

import atexit
import gc
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.entry.slice_placement import by_group
from penstock.engine.spark.tasks.packed_train import _NAMES, PackedStageTask, PackedTrainRun, ReadTask, Record
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split


class DryTrainRun(PackedTrainRun):
    """One ticket through all stages, here and now."""

    def run(self) -> None:
        """As in production, but for Spark's exchange."""
        stages = self.layout.stages
        records = self._first(self._packed_task(stages[0]))
        for stage in stages[1:]:
            task = self._packed_task(stage)
            mine: list[list[Record]] = [[r for r in records if r[0] == label] for label in self.labels]
            records = [
                r for p, part in enumerate(mine) for b in task.run(p, _batches(part)) for r in _records(b)
            ]
        for _, kind, name, body in records:
            self._take({"kind": kind, "name": name, "body": body})
            newest = json.loads(body).get("newest") if kind == "record" else None
            self._newest += [] if newest is None else [newest]

    def _first(self, task: PackedStageTask) -> list[Record]:
        read = ReadTask(by_group(self.slices(), self.trains.partitions))
        records: list[Record] = []
        for p in range(self.trains.partitions):
            chunks = read([pa.RecordBatch.from_arrays([pa.array([p])], names=["id"])])
            records += [record for batch in task.run(p, chunks) for record in _records(batch)]
        return records


def _batches(records: list[Record]) -> list[pa.RecordBatch]:
    if not records:
        return []
    types = [pa.int32(), pa.string(), pa.string(), pa.binary()]
    columns = [pa.array(c, t) for c, t in zip(zip(*records, strict=True), types, strict=True)]
    return [pa.RecordBatch.from_arrays(columns, names=_NAMES)]


def _records(batch: pa.RecordBatch) -> list[Record]:
    return list(zip(*(batch.column(name).to_pylist() for name in _NAMES), strict=True))


class DryRun:
    """A network of one sub-network fed by a feed; `train` takes the next train, `all` what there is.

    `listen`: called after each committed train, as `Runtime.on_train` does. `epoch`: of the owner.
    `sync`: what it writes survives a power cut.
    """

    def __init__(
        self,
        network: Network,
        checkpoint: Path,
        *,
        length: int = 500_000,
        partitions: int = 2,
        fuse: bool = True,
        epoch: int = 0,
        sync: bool = False,
        listen: Callable[[TrainDone], None] = lambda _done: None,
    ) -> None:
        (sub,) = split(network)
        steering = Steering(AsSoonAsPossible(length))
        settings = QuerySettings(
            partitions, once=True, close=True, fuse=fuse, epoch=epoch, sync=sync, listen=listen
        )
        self.query = SubnetworkQuery(sub, None, checkpoint, steering, settings)  # type: ignore[arg-type]
        self.query.trains.train_run = DryTrainRun
        self.query.publish_again()
        # Tasks freeze the collector of their worker. Here that is this process, which must free its modules
        # at the end: DuckDB's bindings print each object that is still there.
        atexit.register(gc.unfreeze)

    def train(self) -> bool:
        """Run one train; False: there is no more."""
        if not self.query.drained():
            self.query.tick(None, self.query.last)  # one that a crash has left behind
            return True
        while not self.query.finished.is_set():
            if self.query.next_ticket():
                self.query.tick(None, self.query.last)
                return True
        return False

    def all(self) -> None:
        """Run until the feed is used up."""
        while self.train():
            pass
