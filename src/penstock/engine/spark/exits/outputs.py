"""The sinks of a sub-network, by output.

The tasks that have the tuples write to file sinks. The other sinks get each train's tuples here, in the
driver, once the train is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.connectors.contract import DriverSink, Sink, Target, TaskSink
from penstock.connectors.files.sink import publish
from penstock.connectors.loading import sink_for
from penstock.model.types import SEQ, STAMP
from penstock.model.writing.network import Network


class Outputs:
    """The sinks of one sub-network. `run` distinguishes its files from those of any other run."""

    def __init__(self, net: Network, names: Iterable[str], run: str, *, sync: bool = False) -> None:
        self._net, self._sync = net, sync
        self._sinks: dict[str, Sink] = {
            name: sink_for(net.outputs[name].to, Target(name, net.types[name].schema, run, sync))
            for name in names
        }

    def start(self, moves: Sequence[Sequence[str]], last: int) -> None:
        """Prepare for the first train after the `last`; `moves` of the last commit may still be pending."""
        for sink in self._sinks.values():
            sink.start(moves, last)

    def task_sink(self, output: str) -> TaskSink | None:
        """The sink that tasks write themselves; None if the driver delivers."""
        sink = self._sinks[output]
        return sink if isinstance(sink, TaskSink) else None

    def deliver(self, output: str, tuples: pa.Table) -> None:
        """Hand a committed train's tuples to an output, if the driver serves it."""
        sink = self._sinks.get(output)
        if isinstance(sink, DriverSink):
            ordered = tuples.sort_by([(STAMP, "ascending"), (SEQ, "ascending")])
            sink.deliver(ordered.select(list(self._net.types[output].schema.names)))

    def publish(self, moves: Iterable[Iterable[str]]) -> None:
        """Make a committed train's files visible; repeating it does no harm."""
        publish(moves, sync=self._sync)
