"""From the shares of outputs to valves (A84, A88): one at an input, one behind a split that keeps less.

Valves are nested: the input keeps what the most demanding output below it keeps, and a branch keeps a part
of that. So one drop serves all outputs, and happens as early as it can. Behind a connection point that may
lose tuples, the same choice is made once more: it drops nothing that the point has not lost, and serves what
the point held before its own valve closed. Where valves may be, and by which grain, says `valve_places.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from penstock.control.loop.structure import Structure, running_in
from penstock.control.valve_places import ValvePlace, memory_behind, sub_places
from penstock.engine.contract.valve import ARROW, Valve, valve_places
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, reaching
from penstock.rewrite.value_ways import ValueWay

_LEAST = 1e-6


class ValueCut(Protocol):
    """What goes by value at a place: `control/semantic/bins.py`."""

    @property
    def at(self) -> str:
        """Where."""

    def valve(self) -> Valve:
        """As an entry of the ticket."""


@dataclass(frozen=True)
class Places:
    """The places at which something may be shed, by sub-network, each after those above it."""

    by_subnetwork: Mapping[str, tuple[ValvePlace, ...]]
    # By sub-network: it and all behind its points.
    around: Mapping[str, Network] = field(default_factory=dict)
    subs: tuple[SubNetwork, ...] = ()
    closed: Mapping[str, str] = field(default_factory=dict)  # other places, and why nothing is shed there

    @classmethod
    def of(cls, network: Network, structure: Structure) -> Places:
        """Those of a running network."""
        around = {sub.name: running_in(network, sub) for sub in structure.subs}
        known = {name: whole for name, whole in around.items() if whole is not None}
        judged = {sub.name: sub_places(known[sub.name], sub) for sub in structure.subs if sub.name in known}
        places = {name: tuple(p for p in each if p.grain is not None) for name, each in judged.items()}
        closed = {p.at: p.why for each in judged.values() for p in each if p.grain is None}
        return cls(places, known, structure.subs, closed)

    def sheddable(self, qos: Mapping[str, QoS]) -> dict[str, QoS]:
        """The outputs of which something may be shed: they have a loss graph, and there is a place."""
        behind = {name for places in self.by_subnetwork.values() for p in places for name in p.outputs}
        return {name: each for name, each in qos.items() if name in behind and each.may_be_shed}

    def together(self) -> dict[str, frozenset[str]]:
        """By output, those that lose what it loses: the outputs behind the last place in front of it."""
        behind = [place.outputs for places in self.by_subnetwork.values() for place in places]
        names = {name for outputs in behind for name in outputs}
        return {name: min((each for each in behind if name in each), key=len) for name in names}

    def decoded(self) -> dict[str, frozenset[str]]:
        """By sub-network, the outputs whose tuples it decodes before any of them are dropped.

        Only slices and blocks go before that. What goes by windows, keys or tuples saves what lies behind.
        """
        losing = {name for places in self.by_subnetwork.values() for p in places for name in p.outputs}
        return {sub.name: self._decoded(sub, losing) for sub in self.subs if sub.name in self.around}

    def _decoded(self, sub: SubNetwork, losing: Iterable[str]) -> frozenset[str]:
        early = {p.at: p.outputs for p in self.by_subnetwork.get(sub.name, ()) if p.early}
        sources = [name for name in sub.inputs if name in sub.network.sources]
        above = {name: reaching(self.around[sub.name], [name]) for name in losing} if sources else {}
        return frozenset(
            name
            for name, nodes in above.items()
            if any(source in nodes and name not in early.get(source, ()) for source in sources)
        )

    @property
    def in_groups(self) -> bool:
        """Whether a feed loses whole groups. What comes back is not exact for long, so it should not soon."""
        return any(place.in_groups for places in self.by_subnetwork.values() for place in places)

    def valves(
        self, sub: SubNetwork, shares: Mapping[str, float], cuts: Mapping[str, ValueCut] | None = None
    ) -> tuple[Valve, ...]:
        """The valves of a sub-network for these shares of outputs; none where nothing is shed.

        `cuts`: of outputs that lose tuples by value.
        """
        places = self.by_subnetwork.get(sub.name, ())
        by_value = {cut.at: cut.valve() for cut in (cuts or {}).values()}
        opened = [self._valve(sub, place, shares) for place in places if place.at not in by_value]
        opened += [by_value[place.at] for place in places if place.at in by_value]
        return tuple(valve for valve in opened if valve is not None)

    def by_value(self, sub: SubNetwork, way: ValueWay) -> bool:
        """Whether tuples may be dropped by value where a way begins: only its output may lose them."""
        places = self.by_subnetwork.get(sub.name, ())
        return any(place.at == way.at and place.outputs == {way.output} for place in places)

    def kept_above(self, sub: SubNetwork, at: str, shares: Mapping[str, float]) -> float:
        """The share that valves above a place keep."""
        places = self.by_subnetwork.get(sub.name, ())
        here = next(place for place in places if place.at == at)
        above = [*self._above(sub, here), *self._above_points(sub, at)]
        return min((_share(each, shares) for each in above), default=1.0)

    def _valve(self, sub: SubNetwork, place: ValvePlace, shares: Mapping[str, float]) -> Valve | None:
        """The valve at a place, if it keeps less than those above it."""
        share, above = _share(place, shares), self._above(sub, place)
        kept = min((_share(each, shares) for each in above), default=1.0)
        if share >= kept - _LEAST:
            return None
        # Grains of another kind are chosen apart, so what both keep is the product.
        apart = [each for each in (*above, *self._above_points(sub, place.at)) if each.choice != place.choice]
        part = share / max(_LEAST, min((_share(each, shares) for each in apart), default=1.0))
        return place.valve(round(part, 6)) if part < 1 - _LEAST else None

    def _above(self, sub: SubNetwork, place: ValvePlace) -> list[ValvePlace]:
        """The places of the same sub-network above one."""
        places = self.by_subnetwork.get(sub.name, ())
        return [each for each in places if each is not place and _is_above(sub, each, place)]

    def _above_points(self, sub: SubNetwork, at: str) -> list[ValvePlace]:
        """The places of other sub-networks above one, through the points that lead to it."""
        read = reaching(sub.network, [at.partition(ARROW)[0]]) & set(sub.inputs)
        return [
            place
            for writer in self.subs
            for point in writer.points
            if point in read and writer is not sub
            for place in (
                *(p for p in self.by_subnetwork.get(writer.name, ()) if _leads_to(writer, p, point)),
                *self._above_points(writer, point),
            )
        ]

    def memory(self, sub: SubNetwork, end: str) -> int | None:
        """How long boxes behind a place remember on the way to an output or point, in us; None: for ever.

        Where no place is known, a valve may all the same have been at an input a moment ago: before the first
        look of a run, or until a graph was changed.
        """
        places = [p.at for p in self.by_subnetwork.get(sub.name, ()) if _leads_to(sub, p, end)]
        network = self.around[sub.name] if places else sub.network
        memories = [memory_behind(network, at, end) for at in places or sub.inputs]
        known = [each for each in memories if each is not None]
        return None if len(known) < len(memories) else max(known, default=0)


def losing(sub: SubNetwork, valves: Iterable[Valve]) -> frozenset[str]:
    """The outputs and points of which these valves drop something; all, if one stands where nobody knows."""
    ends, closed = (*sub.outputs, *sub.points), {valve.at for valve in valves if valve.share < 1}
    if not closed <= set(valve_places(sub)):
        return frozenset(ends)
    first = {at.partition(ARROW)[2] or at for at in closed}
    return frozenset(end for end in ends if first & reaching(sub.network, [end]))


def _share(place: ValvePlace, shares: Mapping[str, float]) -> float:
    return max((shares.get(name, 1.0) for name in place.outputs), default=1.0)


def _is_above(sub: SubNetwork, one: ValvePlace, other: ValvePlace) -> bool:
    """Whether all that comes to the other place has passed this one."""
    start = one.at.partition(ARROW)[2] or one.at
    if other.at == start or ARROW not in other.at:
        return False
    return _leads_to(sub, one, other.at.partition(ARROW)[0])


def _leads_to(sub: SubNetwork, place: ValvePlace, node: str) -> bool:
    """Whether tuples that pass a place come to a node."""
    return (place.at.partition(ARROW)[2] or place.at) in reaching(sub.network, [node])
