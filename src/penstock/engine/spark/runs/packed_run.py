"""A train without a shuffle of rows: one job from packed records to counts, through all stages.

If every input is a feed (partitioned by its writer) and every box runs vectorised, rows need never exist in
the JVM. The source's records go straight into the first stage, whose task unpacks them
(`tasks/packed_stage.py`). Between two stages lies one exchange of a handful of records, and the whole train
is one Spark job.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.connectors.contract import Slice
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.entry.slice_placement import by_group
from penstock.engine.spark.layout.plan import Stage, StageInput, mixes_numbers
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.engine.spark.tasks.packed_stage import (
    RECORD_DDL,
    Onward,
    PackedStageTask,
    ReadTask,
    file_name,
    labels_for,
    record_name,
)
from penstock.model.boxes import Source

if TYPE_CHECKING:
    from penstock.engine.spark.trains.train import Trains

_FEW = 16  # up to this many files Spark reads itself; more would need a listing job


class PackedTrainRun(TrainRun):
    """One run of one ticket, packed all the way."""

    def __init__(self, trains: Trains, ticket: Ticket, outcome: Outcome) -> None:
        super().__init__(trains, ticket, outcome)
        self.labels = labels_for(trains.partitions)
        self._newest: list[int] = []

    def run(self) -> None:
        self.trains.doing = tuple(name for stage in self.layout.stages for name in stage.nodes)
        frame = self._packed()
        for i, stage in enumerate(self.layout.stages):
            # All sources lie in the records of one scan, and only the first stage can come directly after it.
            task = self._packed_task(stage)
            if i:
                frame = frame.repartition(self.trains.partitions, "label")
            frame = frame.mapInArrow(task, RECORD_DDL)
        for row in frame.collect():
            self.take(row["kind"], row["name"], bytes(row["body"]))
            if row["kind"] == "record":
                newest = json.loads(bytes(row["body"])).get("newest")
                self._newest += [] if newest is None else [newest]

    def slices(self) -> list[Slice]:
        """The slices that the train reads."""
        return [s for slices in self.ticket.slices.values() for s in slices if isinstance(s, Slice)]

    def _packed(self) -> DataFrame:
        """The train's packed records, a partition for each group of keys.

        Spark reads them itself, or tasks do if there are many files.
        """
        spark, parts = self.trains.spark, self.trains.partitions
        slices = self.slices()
        groups = by_group(slices, parts)
        if len(slices) > _FEW or any(s.whole_file() is None for s in slices):
            tasks = spark.range(0, parts, 1, parts)
            return tasks.mapInArrow(ReadTask(groups), "path STRING, chunk BINARY")
        frames = [self._files(group) for group in groups]
        # Each of them has one partition, so Spark would put all into one. A last one without any partition
        # prevents that.
        none = spark.range(0, 0).selectExpr("'' AS path", "cast(null AS BINARY) AS chunk")
        return reduce(DataFrame.union, [*frames, none])

    def _files(self, slices: list[Slice]) -> DataFrame:
        spark = self.trains.spark
        if not slices:
            return spark.range(0, 1, 1, 1).selectExpr("'' AS path", "cast(null AS BINARY) AS chunk")
        files = spark.read.format("binaryFile").load([str(s.whole_file()) for s in slices])
        return files.select("path", F.col("content").alias("chunk")).coalesce(1)

    def _packed_task(self, stage: Stage) -> PackedStageTask:
        plain = self.stage_task(stage, [])
        source = self.net.nodes.get(stage.name)
        root = source if isinstance(source, Source) else None
        if root is not None and self.trains.terminals(root.name):
            plain.leaving.append(self.leaving(root.name))
        if root is not None:
            plain.monitors = {**plain.monitors, **self.monitors([root.name])}
            plain.sampled = self.sampled_columns([root.name, *stage.nodes])
        plain.valves = self.valves.on_arrows(stage.nodes)
        return PackedStageTask(
            **vars(plain),
            root=root,
            sending=self._sending(stage),
            labels=self.labels,
            slices=self._by_name() if root is not None else {},
            root_valves=() if root is None else self.valves.at_input(root.name),
        )

    def _by_name(self) -> dict[str, Slice]:
        return {file_name(record_name(s)): s for s in self.slices()}

    def _sending(self, stage: Stage) -> list[Onward]:
        return [
            Onward(entry.tail, other.name, i, entry.keys, mixes_numbers(self.net, other))
            for other in self.layout.stages
            for i, entry in enumerate(other.entries)
            if self._home(entry) is stage
        ]

    def _home(self, entry: StageInput) -> Stage | None:
        return self.layout.home.get(entry.tail)

    def newest(self) -> dict[str, int]:
        """The largest `_ts` of the source in this train."""
        return {name: max(self._newest) for name in self.trains.sub.inputs if self._newest}
