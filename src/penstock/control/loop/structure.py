"""What control has to know of the networks that run: which outputs get what a sub-network or a box gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.control.priority import RatedEnd
from penstock.model.costs import MeasuredCosts
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork


@dataclass(frozen=True)
class Structure:
    """The sub-networks that run, each after those whose points it reads as far as there is an order.

    `attached`: the names of those that are no part of the network.
    """

    subs: tuple[SubNetwork, ...]
    attached: frozenset[str] = frozenset()

    @classmethod
    def running(cls, network: Network, subs: Iterable[SubNetwork]) -> Structure:
        """That of sub-networks which run beside or as parts of a network."""
        known = tuple(subs)
        return cls(known, frozenset(sub.name for sub in known if is_attached(network, sub)))

    @property
    def qos(self) -> dict[str, QoS]:
        """The QoS of outputs and views, by name."""
        return {name: qos for sub in self.subs for name, qos in rated(sub).items()}

    def readers(self, sub: SubNetwork) -> list[SubNetwork]:
        """The sub-networks that read its points."""
        return [other for other in self.subs if other is not sub and set(sub.points) & set(other.inputs)]

    @cached_property
    def outputs_below(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """By sub-network and node: the outputs, views and points for which the node works.

        A point that may lose tuples keeps what the outputs behind it keep, so these stand for it: its valve
        follows their shares (`valves.py`). An attached query has no say in that.
        """
        known: dict[str, Mapping[str, frozenset[str]]] = {}
        for sub in self.subs:
            self._work_for(sub, known)
        return known

    def _work_for(
        self, sub: SubNetwork, known: dict[str, Mapping[str, frozenset[str]]]
    ) -> Mapping[str, frozenset[str]]:
        if sub.name not in known:
            stands_for = {point: self._behind(sub, point, known) for point in losing_points(sub)}
            known[sub.name] = {
                name: frozenset(each for end in ends for each in stands_for.get(end, {end}))
                for name, ends in ends_below(sub).items()
            }
        return known[sub.name]

    def _behind(
        self, sub: SubNetwork, point: str, known: dict[str, Mapping[str, frozenset[str]]]
    ) -> frozenset[str]:
        """The ends behind a point, and the point itself if it has a QoS."""
        own = {point} & rated(sub).keys()
        readers = [r for r in self.readers(sub) if point in r.inputs and r.name not in self.attached]
        return frozenset(own).union(*(self._work_for(reader, known)[point] for reader in readers))

    def ends(self, sub: SubNetwork, costs: MeasuredCosts) -> tuple[RatedEnd, ...]:
        """The outputs and views with a QoS that get what a sub-network gives, through points too."""
        rated_ends: dict[str, RatedEnd] = {}
        stack: list[tuple[SubNetwork, float]] = [(sub, 0.0)]
        seen = {sub.name}
        while stack:
            at, below = stack.pop()
            for name, qos in rated(at).items():
                rated_ends[name] = RatedEnd(name, qos, below)
            for reader in self.readers(at):
                if reader.name not in seen:
                    seen.add(reader.name)
                    stack.append((reader, below + 2 * costs.fixed_seconds(reader.name)))
        return tuple(rated_ends[name] for name in sorted(rated_ends))

    def fixed_on_the_way(self, sub: SubNetwork, costs: MeasuredCosts) -> float:
        """Seconds that trains take without tuples, on the longest way that leads to a sub-network (A59)."""
        return self._fixed_above(sub, costs, frozenset())

    def _fixed_above(self, sub: SubNetwork, costs: MeasuredCosts, seen: frozenset[str]) -> float:
        writers = [o for o in self.subs if o.name not in seen and set(o.points) & set(sub.inputs)]
        above = [self._fixed_above(o, costs, seen | {sub.name}) for o in writers if o is not sub]
        return costs.fixed_seconds(sub.name) + max(above, default=0.0)


def rated(sub: SubNetwork) -> dict[str, QoS]:
    """The outputs and views of a sub-network that have a QoS."""
    stated = {name: getattr(sub.network.nodes[name], "qos", None) for name in (*sub.outputs, *sub.points)}
    return {name: qos for name, qos in stated.items() if qos is not None}


def running_in(network: Network, sub: SubNetwork) -> Network | None:
    """The whole network, with the boxes of a sub-network as they run; None if two names collide.

    The optimizer may have moved boxes. What may be shed in front of them follows from where they stand now,
    and from all that lies behind the points. An attached query is not part of the network, and stands for
    itself.
    """
    if is_attached(network, sub):
        return sub.network
    if sub.written is None:
        return network
    others = {name: node for name, node in network.nodes.items() if name not in sub.written.nodes}
    mine = {name: node for name, node in sub.network.nodes.items() if name not in sub.inputs}
    if others.keys() & mine.keys():
        return None  # a box that the optimizer put in has the name of one elsewhere
    inputs = {name: network.nodes[name] for name in sub.inputs}
    nodes = [*others.values(), *inputs.values(), *mine.values()]
    return Network.of(network.name, nodes, groups=network.groups, control=network.control)


def is_attached(network: Network, sub: SubNetwork) -> bool:
    """Whether a sub-network is an attached query, which is no part of the network."""
    return any(name not in network.nodes for name in sub.as_written.nodes)


def losing_points(sub: SubNetwork) -> frozenset[str]:
    """Points and views that may lose tuples."""
    return frozenset(name for name in sub.points if getattr(sub.network.nodes[name], "shed", False))


def ends_below(sub: SubNetwork) -> dict[str, frozenset[str]]:
    """For each node of a sub-network, its outputs and points that the node leads to."""
    below: dict[str, set[str]] = {name: set() for name in sub.network.nodes}
    for name in reversed(list(sub.network.nodes)):
        if name in sub.outputs or name in sub.points:
            below[name].add(name)
        for up in sub.network.nodes[name].inputs:
            below[up] |= below[name]
    return {name: frozenset(ends) for name, ends in below.items()}


def rates_in(sub: SubNetwork, costs: MeasuredCosts, rates: Mapping[str, float]) -> dict[str, float]:
    """Tuples a second into each node, from those of the inputs, by measured selectivities (A81)."""
    into: dict[str, float] = {}
    out: dict[str, float] = {}
    for name, node in sub.network.nodes.items():
        into[name] = rates.get(name, 0.0) if name in sub.inputs else sum(out[up] for up in node.inputs)
        measured = costs.boxes.get(name)
        passed = measured.selectivity if measured is not None and node.is_box else None
        out[name] = into[name] * (1.0 if passed is None else passed)
    return into


def by_name(subs: Iterable[SubNetwork]) -> dict[str, SubNetwork]:
    """The sub-networks by name."""
    return {sub.name: sub for sub in subs}


def outputs_of(subs: Sequence[SubNetwork]) -> list[str]:
    """All outputs, and views with a QoS."""
    return [name for sub in subs for name in (*sub.outputs, *(p for p in sub.points if p in rated(sub)))]
