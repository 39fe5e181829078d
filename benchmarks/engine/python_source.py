"""A streaming source in Python whose offset is the number of the last ticket.

The engine used such a source before Spark's own ticks. It is kept only to measure what an empty train costs
(`floor`), so it reads tickets without slices: its trains carry nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.engine.contract.train_log import TICKET, Slot

Offset: TypeAlias = dict[str, int]
_POLL, _PATIENCE = 0.002, 0.1  # seconds; short, because a query that is told to stop waits for it


class TrainSource(DataSource):
    """`spark.readStream.format("penstock").option("trains", DIR)`."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return "input STRING, slice STRING, chunk BINARY"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's name
        return TrainReader(Path(self.options["trains"]))


class TrainReader(DataSourceStreamReader):
    """Runs in a Python process beside the driver."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {"train": -1}

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: ARG002, N802 - Spark's name
        """Wait a moment for the next ticket; the same offset again means that there is no train now."""
        following = start["train"] + 1
        path = Slot(following, TICKET, 0).path(self._root)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if path.exists():
                return {"train": following}
            time.sleep(_POLL)
        return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # noqa: ARG002 - Spark's
        return []

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002 - Spark's
        return iter(())
