"""A list in this process."""

from __future__ import annotations

import pyarrow as pa

from penstock.connectors.contract import DriverSink, Target
from penstock.model.formats.memory import Memory


class MemorySink(DriverSink):
    """Appends the tuples to the list, as dicts."""

    def __init__(self, to: Memory, target: Target) -> None:
        del target
        self._rows = to.rows

    def deliver(self, table: pa.Table) -> None:
        self._rows.extend(table.to_pylist())
