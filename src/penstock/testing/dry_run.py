"""Express trains without Spark: the same tickets, tasks, state and files, cranked in this process.

What Spark does between two stages is no more than carrying records to the partition of their label; here a loop does it. So a
network of feeds and vectorised boxes is tested in milliseconds, and profiled without a JVM around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark.entry.packing import pack
from penstock.engine.spark.entry.slice_placement import by_group
from penstock.engine.spark.tasks.packed_train import _NAMES, Express, ExpressTask, Record
from penstock.engine.spark.trains.outcome import Outcome
from penstock.engine.spark.trains.query import Steering, SubnetworkQuery, TrainDone
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split


class DryExpress(Express):
    """One ticket through all stages, here and now."""

    def all(self) -> None:
        stages = self.layout.stages
        records = self._first(self._express_task(stages[0]))
        for stage in stages[1:]:
            task = self._express_task(stage)
            mine: list[list[Record]] = [[r for r in records if r[0] == label] for label in self.labels]
            records = [
                r for p, part in enumerate(mine) for b in task.run(p, _batches(part)) for r in _records(b)
            ]
        for _, kind, name, body in records:
            self._take({"kind": kind, "name": name, "body": body})
            newest = json.loads(body).get("newest") if kind == "record" else None
            self._newest += [] if newest is None else [newest]

    def _first(self, task: ExpressTask) -> list[Record]:
        slices = [(name, s) for name, found in self.ticket.slices.items() for s in found]
        made: list[Record] = []
        for p, part in enumerate(by_group(slices, self.trains.partitions)):
            packed = [
                pa.RecordBatch.from_arrays(
                    [pa.array([name]), pa.array([json.dumps(s)]), pa.array([pack(s)], pa.binary())],
                    names=["input", "slice", "chunk"],
                )
                for name, s in part
            ]
            made += [record for batch in task.run(p, packed) for record in _records(batch)]
        return made


def _batches(records: list[Record]) -> list[Any]:
    if not records:
        return []
    types = [pa.int32(), pa.string(), pa.string(), pa.binary()]
    columns = [pa.array(c, t) for c, t in zip(zip(*records, strict=True), types, strict=True)]
    return [pa.RecordBatch.from_arrays(columns, names=_NAMES)]


def _records(batch: Any) -> list[Record]:
    return list(zip(*(batch.column(name).to_pylist() for name in _NAMES), strict=True))


class DryRun:
    """A network of one sub-network fed by a feed; `train` takes the next train, `all` what there is.

    `listen`: called after each committed train, as `Runtime.on_train` does.
    """

    def __init__(
        self,
        network: Network,
        checkpoint: Path,
        *,
        length: int = 500_000,
        partitions: int = 2,
        fuse: bool = True,
        listen: Callable[[TrainDone], None] = lambda _done: None,
    ) -> None:
        self._listen = listen
        (sub,) = split(network)
        steering = Steering(AsSoonAsPossible(length))
        self.query = SubnetworkQuery(
            sub,
            None,  # type: ignore[arg-type]
            checkpoint,
            steering,
            partitions=partitions,
            once=True,
            fuse=fuse,
            listen=self._done,
        )
        self.query.trains.journey = DryExpress
        self.outcome = Outcome()

    def _done(self, done: TrainDone) -> None:
        self.outcome = done.outcome
        self._listen(done)

    def train(self) -> bool:
        """Run one train; False: there is no more."""
        if self.query._committed < self.query.last:
            self.query.run_train(None, self.query.last)  # one that a crash has left behind
            return True
        while not self.query.finished.is_set():
            if self.query.next_ticket():
                self.query.run_train(None, self.query.last)
                return True
        return False

    def all(self) -> None:
        """Run until the feed is used up."""
        while self.train():
            pass
