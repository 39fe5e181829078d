"""A function of this process."""

from __future__ import annotations

import pyarrow as pa

from penstock.connectors.contract import DriverSink, Target
from penstock.model.formats.callback import Callback


class CallbackSink(DriverSink):
    """Calls the function with each train's tuples."""

    def __init__(self, to: Callback, target: Target) -> None:
        del target
        self._function = to.function

    def deliver(self, table: pa.Table) -> None:
        self._function(table)
