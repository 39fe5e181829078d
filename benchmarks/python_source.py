"""A streaming source in Python whose offset is the number of the last ticket: what the engine used before its ticks.

Kept here only to say what such a source costs (`floor.py`).

`latestOffset` looks whether the next ticket lies there; the same offset again means: no train now (A76). What the
ticket's slices hold travels packed: one record carries a slice's bytes, and the box that needs columns unpacks them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.engine.contract.ticket import TrainLog, numbered
from penstock.engine.spark.entry.packing import pack
from penstock.engine.spark.entry.slice_placement import PACKED, by_group, spread
from penstock.engine.spark.tasks.worker_gc import calm

SCHEMA = "input STRING, slice STRING, chunk BINARY"
_POLL, _PATIENCE = 0.002, 0.1  # seconds; short, because a query that is told to stop waits for it


class TrainSource(DataSource):
    """`spark.readStream.format("penstock").option("trains", DIR)`: used by the engine, not by people."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's name
        parallelism = int(self.options.get("parallelism", "2"))
        keyed = self.options.get("keyed", "false") == "true"
        return TrainReader(Path(self.options["trains"]), parallelism, keyed=keyed)


class TrainReader(DataSourceStreamReader):
    """Runs in a Python process beside the driver; `read` runs in the tasks."""

    def __init__(self, root: Path, parallelism: int, *, keyed: bool = False) -> None:
        self._root, self._parallelism, self._keyed = root, parallelism, keyed

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"train": -1}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        following = start["train"] + 1
        path = numbered(self._root / "trains", following)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if path.exists():
                return {"train": following}
            time.sleep(_POLL)
        return start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if end["train"] <= start["train"]:
            return []
        ticket = TrainLog(self._root).ticket(end["train"])
        if ticket is None:
            raise FileNotFoundError(f"{self._root}: the ticket of train {end['train']} is missing")
        packed = [(name, s) for name, slices in ticket.slices.items() for s in slices if s["kind"] in PACKED]
        if self._keyed:
            return [InputPartition(part) for part in by_group(packed, self._parallelism)]
        return [InputPartition(part) for part in spread(packed, self._parallelism)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for name, slice_ in partition.value:
            columns = [
                pa.array([name]),
                pa.array([json.dumps(slice_)]),
                pa.array([pack(slice_)], pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["input", "slice", "chunk"])
        if not partition.value:
            # a partition without files still has its task
            columns = [pa.array([""]), pa.array(["null"]), pa.array([b""], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, names=["input", "slice", "chunk"])
        calm()
