"""The valves of one train: which act where, on frames and in stages, and what they shed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame

from penstock.connectors.contract import Slice
from penstock.engine.arrow.valves import by_place, choosing
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.valve import ARROW, Valve, ValveFlow
from penstock.engine.spark.entry.slice_entry import still_acting
from penstock.engine.spark.entry.valve_sql import let_through
from penstock.engine.spark.layout.plan import Stage
from penstock.engine.spark.watch import VALVE, Watch
from penstock.model.boxes import Source
from penstock.model.writing.network import Network

Arrows = dict[tuple[str, int], tuple[Valve, ...]]
"""By arrow: a box and the number of its input."""


class TrainValves:
    """The valves of a ticket. A train without any does nothing here."""

    def __init__(self, net: Network, ticket: Ticket, watch: Watch) -> None:
        self.net, self.ticket, self.watch = net, ticket, watch
        self.at = by_place(ticket.valves)

    def at_input(self, name: str) -> tuple[Valve, ...]:
        """The valves at an input that the conductor has left to the tasks."""
        node, valves = self.net.nodes[name], self.at.get(name, ())
        if not isinstance(node, Source) or not valves:
            return valves
        slices = [s for s in self.ticket.slices.get(name, ()) if isinstance(s, Slice)]
        return still_acting(node, slices, valves)

    def arrow(self, head: str, index: int) -> str:
        """The place of an arrow."""
        return f"{self.net.nodes[head].inputs[index]}{ARROW}{head}"

    def on_arrows(self, boxes: Iterable[str]) -> Arrows:
        """The valves on the arrows to these boxes."""
        if not self.at:
            return {}
        arrows = [(name, i) for name in boxes for i in range(len(self.net.nodes[name].inputs))]
        return {each: self.at[self.arrow(*each)] for each in arrows if self.arrow(*each) in self.at}

    def inside(self, stage: Stage) -> Arrows:
        """The valves on arrows inside a stage. Those on arrows into it have acted before."""
        entries = {(entry.head, entry.index) for entry in stage.entries}
        return {
            arrow: valves for arrow, valves in self.on_arrows(stage.nodes).items() if arrow not in entries
        }

    def choosing(self) -> dict[str, tuple[Valve, ...]]:
        """By box with windows: the valves that choose among them."""
        return choosing(self.net, self.ticket.valves) if self.at else {}

    # -- on frames

    def let_through(self, frame: DataFrame, at: str) -> DataFrame:
        """The tuples of an input or arrow, without what its valves shed."""
        if at not in self.at:
            return frame
        schema = self.net.types[at.partition(ARROW)[0]].schema
        return let_through(frame, at, self.at[at], schema, self.watch)

    def flow(self, at: str) -> ValveFlow:
        """What came to the valves of a frame, and what they shed."""
        counts = self.watch.counts(f"{at}{VALVE}") if at in self.at else {}
        return ValveFlow(int(counts.get("rows") or 0), int(counts.get("shed") or 0))

    def flows(self, places: Sequence[str]) -> dict[str, ValveFlow]:
        """The flows of those places that have valves."""
        return {at: self.flow(at) for at in places if at in self.at}
