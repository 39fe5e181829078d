"""What a monitor sees of the tuples that leave a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.arrow.logic import logic_for
from penstock.engine.contract.steering import Monitor
from penstock.model.boxes import NO_PROMISE, Filter
from penstock.model.types import StreamType

Watched = tuple[Monitor, StreamType]
"""A monitor, and what leaves its node."""


@dataclass(frozen=True)
class SampleTask:
    """Shows what a monitor sees of one partition, in a task."""

    watched: Watched
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = list(batches)
        if known:
            table = pa.Table.from_batches(known).cast(self.schema)
            yield from sample(table, *self.watched).to_batches()


def sample(table: pa.Table, monitor: Monitor, type_: StreamType) -> pa.Table:
    """The last tuples that fulfil the monitor's condition; where it cannot be computed it is not fulfilled.

    >>> from penstock.model.types import Schema
    >>> spd = StreamType(Schema.parse("spd INT"))
    >>> rows = pa.table({"spd": pa.array([5, 50, 7, 9], pa.int32()), "_ts": range(4), "_seq": range(4)})
    >>> sample(rows, Monitor("slow", 2, "spd < 40"), spd).column("spd").to_pylist()
    [7, 9]
    """
    chosen = table
    if monitor.condition and table.num_rows:
        box = Filter(name="monitor", inputs=(monitor.node,), predicate=monitor.condition)
        chosen = logic_for(box, [type_], type_).process([table], (NO_PROMISE,), final=False).out
    return chosen.slice(max(0, chosen.num_rows - monitor.most))
