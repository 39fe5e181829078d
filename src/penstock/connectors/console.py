"""The terminal."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from penstock.connectors.contract import DriverSink, Target
from penstock.model.formats.console import Console


class ConsoleSink(DriverSink):
    """Prints the first tuples of each train, and how many more there were."""

    def __init__(self, to: Console, target: Target) -> None:
        self._limit, self._output = to.limit, target.output

    def deliver(self, table: pa.Table) -> None:
        for row in table.slice(0, self._limit).to_pylist():
            print(f"{self._output}: " + ", ".join(f"{name}={_text(value)}" for name, value in row.items()))
        if table.num_rows > self._limit:
            print(f"{self._output}: ... and {table.num_rows - self._limit} more")


def _text(value: object) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
