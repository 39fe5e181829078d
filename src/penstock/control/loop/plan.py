"""From a picture to a plan: how much each output keeps, and how important each one is. Pure functions.

The road map says what to drop first, the shedder how much. What is dropped where, and in which grain, follows
from the shares (`valves.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.control.analysis import PART, quiet_share, usable_share
from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.structure import (
    Structure,
    by_name,
    rated,
    rates_in,
)
from penstock.control.priority import next_boost
from penstock.control.roadmap import LoadNode, RoadMap, road_map
from penstock.control.semantic.by_value import ByValue
from penstock.control.shedder import QUICK, Pressure, Shedding, Tempo, next_shedding, too_much
from penstock.model.costs import Line, MeasuredCosts, MeasuredSubnetwork
from penstock.model.qos import QoS
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.catalog.record_types import InputLoad

_MOVED = 0.05  # the road map is built anew when a node's part of the load moves by more
_LEAST_USABLE = 0.2  # of the capacity: trains that are slow for a while are no reason to shed everything
_ENOUGH_TRAINS, _ENOUGH_SECONDS = 8, 10.0  # of warm trains, before their costs are believed
_MOST_HEADROOM = 0.95  # for outputs that cannot be good: trains have to fit into the delay they get
_AS_TOLD = 0.01  # CPU-seconds a second: what differs by less is told as the same
_CLEARLY = 0.85  # of what is usable: with less, shares of an earlier run open before that

Decoded = Mapping[str, frozenset[str]]
"""By sub-network: the outputs whose tuples it decodes before any are dropped."""


@dataclass(frozen=True)
class Memory:
    """What is remembered from one look to the next."""

    shedding: Shedding = field(default=Shedding())
    boost: Mapping[str, float] = field(default_factory=dict)
    boosted: float = 0.0  # when
    map: RoadMap | None = None
    values: Mapping[str, ByValue] = field(default_factory=dict)  # what the map knows of values
    plain_map: RoadMap | None = None  # the map if nothing goes by value
    parts: Mapping[str, float] = field(default_factory=dict)  # of the load, by node, that the map is for
    basis: object = None  # what else the map follows from: graphs, nodes, what goes together
    exhausted: bool = False  # it is too much, and nothing more may be shed
    released: frozenset[str] = frozenset()  # sub-networks that are held, or catch up since they were


@dataclass(frozen=True)
class Plan:
    """What is to hold now. `load`: CPU-seconds a second that outputs with a QoS need, unshed.

    `left_over`: what the others need, which get what is left.
    `usable`: how much of the capacity may be used. `remaining`: the load of what is kept. `exhausted`: it is
    still too much, and nothing more may be shed. `by_value`: outputs that lose tuples by value. `late`: the
    sub-network that is furthest behind, its age and its threshold. `left`: how long that had waited which its
    last train left behind. `out_of_reach`: outputs that no rate lets be good, and the least delay that
    could be promised. `owed`: CPU-seconds that what waits needs, unshed; None if it is not known.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    boost: Mapping[str, float] = field(default_factory=dict)
    load: float | None = None
    left_over: float = 0.0
    usable: float | None = None
    remaining: float | None = None
    lost: float = 0.0
    exhausted: bool = False
    by_value: Mapping[str, ByValue] = field(default_factory=dict)
    late: str = ""
    age: float = 0.0
    threshold: float = 0.0
    left: float = 0.0
    owed: float | None = None
    out_of_reach: Mapping[str, float] = field(default_factory=dict)

    @property
    def shedding(self) -> bool:
        """Whether anything is to be shed."""
        return any(share < 1 for share in self.shares.values())


def demanded(structure: Structure, picture: Picture) -> Picture:
    """The same with the rates of points as their writers' own inputs ask for.

    A writer that works off a backlog gives its readers more for a while. That is no demand: it will be over.
    """
    seen, most = {each.name: each for each in picture.subnetworks}, dict[str, float]()
    for sub in (each for each in structure.subs if each.name in seen):
        inputs = tuple(_at_most(load, most.get(load.input)) for load in seen[sub.name].inputs)
        seen[sub.name] = replace(seen[sub.name], inputs=inputs)
        if inputs and all(load.offered_rate is not None for load in inputs):
            into = rates_in(sub, picture.costs, seen[sub.name].rates)
            most |= {point: into[point] for point in sub.points}
    return replace(picture, subnetworks=tuple(seen.values()))


def _at_most(load: InputLoad, rate: float | None) -> InputLoad:
    known = load.offered_rate
    return load if rate is None or known is None or known <= rate else replace(load, offered_rate=rate)


def load_nodes(
    structure: Structure, picture: Picture, decoded: Decoded | None = None, by_value: Iterable[str] = ()
) -> list[LoadNode]:
    """What uses CPU at the offered rates: in each sub-network what is around its boxes, and each box.

    Sub-networks that work for no output with a QoS get what is left. So they are no load that has to fit, and
    no reason to shed. `by_value`: outputs whose tuples are dropped by value, at the input of their
    sub-network.
    """
    subs = by_name(structure.subs)
    late = {name: (decoded or {}).get(name, frozenset()) for name in subs}
    late |= {n: late[n] | (frozenset(by_value) & {*s.outputs, *s.points}) for n, s in subs.items()}
    return [
        node
        for seen in picture.subnetworks
        if not seen.held and seen.name in subs and structure.ends(subs[seen.name], picture.costs)
        for node in _nodes_at(structure, subs[seen.name], seen.rates, picture.costs, late[seen.name])
    ]


def _left_over(structure: Structure, picture: Picture) -> float:
    """CPU-seconds a second that sub-networks need which work for no output with a QoS."""
    subs = by_name(structure.subs)
    return sum(
        node.load
        for seen in picture.subnetworks
        if not seen.held and seen.name in subs and not structure.ends(subs[seen.name], picture.costs)
        for node in _nodes_at(structure, subs[seen.name], seen.rates, picture.costs)
    )


def _nodes_at(
    structure: Structure,
    sub: SubNetwork,
    rates: Mapping[str, float],
    costs: MeasuredCosts,
    decoded: frozenset[str] = frozenset(),
) -> list[LoadNode]:
    measured, below = costs.subnetworks.get(sub.name), structure.outputs_below[sub.name]
    # Never the time of trains: on a cluster the CPU is not known, and contention would look like cost.
    known = None if measured is None else measured.around or measured.cpu
    if known is None:
        return []
    # A point that nobody reads goes without saying beside outputs; alone it loses nothing.
    everything = frozenset[str]().union(*below.values()) or frozenset((*sub.outputs, *sub.points))
    around = sum(rates.values()) * known.per_tuple
    nodes = [LoadNode(sub.name, around, everything, everything & decoded)]
    for name, rate in rates_in(sub, costs, rates).items():
        box = costs.boxes.get(name)
        if box is not None and box.cpu is not None and measured is not None and measured.around is not None:
            mine = below[name] or everything
            nodes.append(LoadNode(f"{sub.name}/{name}", rate * box.cpu.per_tuple, mine))
    return [node for node in nodes if node.load > 0 and node.outputs]


def cpu_per_tuple(
    structure: Structure,
    sub: SubNetwork,
    seen: SubnetworkPicture,
    costs: MeasuredCosts,
    shares: Mapping[str, float],
) -> float | None:
    """CPU-seconds that a tuple of its inputs costs a sub-network while outputs keep these shares."""
    rates = seen.rates
    total = sum(rates.values())
    if total <= 0:
        rates = dict.fromkeys(sub.inputs, 1.0)
        total = float(len(rates))
    nodes = _nodes_at(structure, sub, rates, costs)
    kept = [node.load * max(shares.get(name, 1.0) for name in node.outputs) for node in nodes]
    return sum(kept) / total if nodes else None


def decide(  # noqa: PLR0913 - all that is known, most of it with a default
    structure: Structure,
    picture: Picture,
    memory: Memory,
    *,
    headroom: float,
    sheddable: Mapping[str, QoS],
    values: Mapping[str, ByValue] | None = None,
    together: Mapping[str, frozenset[str]] | None = None,
    decoded: Decoded | None = None,
    tempo: Tempo = QUICK,
) -> tuple[Plan, Memory]:
    """The plan for a picture, and what to remember. `sheddable`: the outputs in front of which valves may be.

    An output of which nothing may be shed has share 1 in every plan. `values`: outputs that can lose tuples
    by value. `together`: by output, those that lose what it loses. `tempo`: how fast shares may move.
    """
    memory, picture = _with_boost(memory, picture), demanded(structure, picture)
    good_to, least = aims(structure, picture.floors, headroom)
    memory = replace(memory, released=_released(structure, picture, memory.released, good_to))
    values = {name: each for name, each in (values or {}).items() if name in sheddable}
    plain = load_nodes(structure, picture, decoded)
    nodes = load_nodes(structure, picture, decoded, [n for n, each in values.items() if each.at_input])
    load, left_over = sum(node.load for node in nodes), _left_over(structure, picture)
    # Nothing comes: what is shed comes back, step by step. What an earlier run has shed, too.
    silent = not nodes and (memory.map is not None or _nothing_comes(picture))
    if picture.capacity is None or not (nodes or silent):
        return Plan(boost=memory.boost, left_over=left_over), memory
    usable = picture.capacity * usable_part(structure, picture.costs, good_to, headroom)
    most = picture.capacity * usable_part(structure, picture.costs, good_to, headroom, usable_share)
    late = _furthest_behind(structure, picture, good_to)
    plan = Plan(boost=memory.boost, usable=usable, left_over=left_over, out_of_reach=least)
    if late is not None:
        plan = replace(plan, late=late[0].name, age=late[0].age, threshold=late[1], left=late[0].left)
    memory = memory if silent else _with_map(memory, nodes, plain, sheddable, values, together)
    owed = owed_to(structure, picture, memory.released)
    seen = replace(_pressure(memory, plan, picture, load, most), owed=owed)
    known = bool(plan.late) and picture.now >= _ENOUGH_SECONDS  # nothing is shed before costs are known
    before = memory.shedding
    if known:
        shedding = next_shedding(before, seen, tempo)
    else:
        shedding = _reopened(before, picture, seen, _furthest_behind(structure, picture, good_to, trains=0))
    memory = replace(memory, shedding=shedding)
    plan = replace(plan, load=load * shedding.error, usable=usable / shedding.strain, owed=owed)
    if memory.map is None:  # nothing comes since the run began
        return replace(plan, shares=dict.fromkeys(sheddable, 1.0) if shedding.kept >= 1 else {}), memory
    plan = _with_shares(plan, memory)
    exhausted = _exhausted(plan, memory, most, overloaded=known and too_much(shedding, seen, tempo))
    return replace(plan, exhausted=exhausted), replace(memory, exhausted=exhausted)


def _nothing_comes(picture: Picture) -> bool:
    """Whether every input says that nothing comes and nothing waits."""
    loads = [load for seen in picture.subnetworks for load in seen.inputs]
    return bool(loads) and all(load.offered_rate == 0 and not load.waiting for load in loads)


def _with_boost(memory: Memory, picture: Picture) -> Memory:
    passed = picture.now - memory.boosted
    if passed < 1.0:
        return memory
    return replace(
        memory, boost=next_boost(memory.boost, picture.zones, min(passed, 5.0)), boosted=picture.now
    )


def aims(
    structure: Structure, floors: Mapping[str, float], headroom: float
) -> tuple[dict[str, float], dict[str, float]]:
    """By output, up to which delay control tries to keep it good; and those that no rate lets be good.

    What cannot be good is no reason to shed others. So its aim is the delay that trains give at the headroom.
    For the others it is their threshold. `floors`: what trains take at least, by sub-network.
    """
    costs = MeasuredCosts(
        subnetworks={n: MeasuredSubnetwork(n, wall=Line(seconds)) for n, seconds in floors.items()}
    )
    good_to, least = dict[str, float](), dict[str, float]()
    for sub in structure.subs:
        promised = structure.fixed_on_the_way(sub, costs) / PART
        for name, qos in rated(sub).items():
            if qos.threshold < promised:
                least[name] = promised
            # The same headroom as for trains of the others, and never none at all.
            good_to[name] = promised / (1 - min(headroom, _MOST_HEADROOM)) if name in least else qos.threshold
    return good_to, least


def usable_part(
    structure: Structure,
    costs: MeasuredCosts,
    good_to: Mapping[str, float],
    headroom: float,
    share: Callable[[float, float, float], float] = quiet_share,
) -> float:
    """The part of the capacity that may be used, so that the strictest output stays good."""
    shares = [
        share(structure.fixed_on_the_way(sub, costs), good_to[name], headroom)
        for sub in structure.subs
        for name in rated(sub)
    ]
    return max(_LEAST_USABLE, min((headroom, *shares)))


def _furthest_behind(
    structure: Structure, picture: Picture, good_to: Mapping[str, float], trains: int = _ENOUGH_TRAINS
) -> tuple[SubnetworkPicture, float] | None:
    """The sub-network whose input is oldest by the threshold of its ends, and that threshold.

    `trains`: those that have run fewer do not count.
    """
    limits = _limits(structure, picture, good_to)
    thresholds = [
        (seen, limits[seen.name])
        for seen in picture.subnetworks
        if not seen.held and seen.name in limits and seen.trains >= trains
    ]
    return max(thresholds, key=lambda pair: pair[0].age / max(1e-3, pair[1]), default=None)


def _limits(structure: Structure, picture: Picture, good_to: Mapping[str, float]) -> dict[str, float]:
    """By sub-network that works for an output with a QoS: the strictest threshold, as seen from its input."""
    subs = by_name(structure.subs)
    return {
        seen.name: min(good_to[end.name] - end.below for end in ends)
        for seen in picture.subnetworks
        if seen.name in subs and (ends := structure.ends(subs[seen.name], picture.costs))
    }


def _released(
    structure: Structure, picture: Picture, before: frozenset[str], good_to: Mapping[str, float]
) -> frozenset[str]:
    """Sub-networks that are held, and those that have not yet caught up since they were.

    What waits there was not left behind by an overload. Nor was what they give to readers of their points.
    """
    limits, names = _limits(structure, picture, good_to), set[str]()
    writers = {point: sub.name for sub in structure.subs for point in sub.points}
    for seen in picture.subnetworks:  # each comes after those whose points it reads
        catches_up = seen.age > PART * limits.get(seen.name, 0.0)
        given = seen.name in before or any(writers.get(load.input) in names for load in seen.inputs)
        if seen.held or (given and catches_up):
            names.add(seen.name)
    return frozenset(names)


def owed_to(structure: Structure, picture: Picture, released: frozenset[str] = frozenset()) -> float | None:
    """CPU-seconds that all waiting tuples need, unshed; None if it is not known how many wait somewhere."""
    seen, given, total = {each.name: each for each in picture.subnetworks}, dict[str, float](), 0.0
    for sub in structure.subs:
        known = seen.get(sub.name)
        if known is None or sub.name in released or not structure.ends(sub, picture.costs):
            continue
        if any(load.waiting is None for load in known.inputs):
            return None
        waiting = {load.input: (load.waiting or 0) + given.get(load.input, 0.0) for load in known.inputs}
        total += sum(node.load for node in _nodes_at(structure, sub, waiting, picture.costs))
        into = rates_in(sub, picture.costs, waiting)
        given |= {point: into[point] for point in sub.points}
    return total


def _reopened(
    before: Shedding, picture: Picture, seen: Pressure, late: tuple[SubnetworkPicture, float] | None
) -> Shedding:
    """What an earlier run has left, opened if all clearly fits and nothing waits for long; never tightened.

    Where little comes, it would else take many minutes until trains tell anything.
    """
    waits = late is not None and late[0].age > PART * late[1]
    known = all(load.offered_rate is not None for each in picture.subnetworks for load in each.inputs)
    fits = before.error * before.strain * seen.load <= _CLEARLY * seen.usable
    if before.kept >= 1 or picture.now < _ENOUGH_SECONDS or waits or not known or not fits:
        return before
    after = next_shedding(before, replace(seen, measured=None, predicted=None, left=0.0))
    return replace(before, kept=max(before.kept, after.kept), opened=after.opened)


def _pressure(memory: Memory, plan: Plan, picture: Picture, load: float, most: float) -> Pressure:
    assert plan.usable is not None
    return Pressure(
        now=picture.now,
        load=load,
        usable=plan.usable,
        age=plan.age,
        threshold=plan.threshold,
        measured=picture.measured,
        predicted=picture.predicted,
        trains=sum(seen.trains for seen in picture.subnetworks),
        least=min(
            (road.rows[-1].load for road in (memory.map, memory.plain_map) if road is not None),
            default=0.0,
        ),
        worked=picture.worked,
        left=plan.left,
        most=most,
    )


def _with_map(
    memory: Memory,
    nodes: Sequence[LoadNode],
    plain_nodes: Sequence[LoadNode],
    sheddable: Mapping[str, QoS],
    values: Mapping[str, ByValue],
    together: Mapping[str, frozenset[str]] | None,
) -> Memory:
    """With a road map for these loads. `plain_nodes`: if nothing goes by value."""
    total = sum(node.load for node in nodes)
    parts = {node.name: node.load / total for node in nodes}
    moved = memory.parts.keys() != parts.keys() or any(
        abs(part - memory.parts[name]) > _MOVED for name, part in parts.items()
    )
    # A graph may change while the network runs, and so may the outputs behind a node.
    basis = dict(sheddable), dict(together or {}), {n.name: (n.outputs, n.paid) for n in plain_nodes}
    same = memory.basis == basis and not _other_values(memory.values, values)
    if memory.map is not None and not moved and same:
        return memory
    shares = [replace(node, load=parts[node.name]) for node in nodes]
    plain = road_map([replace(n, load=parts[n.name]) for n in plain_nodes], sheddable, together=together)
    curves = {name: each.curve for name, each in values.items()}
    chosen = road_map(shares, sheddable, curves, together) if values else plain
    return replace(memory, map=chosen, plain_map=plain, parts=parts, values=values, basis=basis)


def _other_values(before: Mapping[str, ByValue], now: Mapping[str, ByValue]) -> bool:
    return before.keys() != now.keys() or any(
        each.at_input != now[name].at_input or each.curve.differs(now[name].curve, _MOVED)
        for name, each in before.items()
    )


def _with_shares(plan: Plan, memory: Memory) -> Plan:
    """The first row of the map that is small enough. Its loads are parts of the whole.

    What goes by value is decoded first. Where that costs too much, dropping at random serves better.
    """
    assert memory.map is not None
    assert memory.plain_map is not None
    assert plan.load is not None
    least = memory.shedding.kept * memory.map.full
    row, plain = memory.map.row_for(least), memory.plain_map.row_for(least)
    fits, plain_fits = row.load <= least + 1e-9, plain.load <= least + 1e-9
    by_value = bool(memory.values) and (plain.lost >= row.lost if fits == plain_fits else fits)
    last = memory.map.rows[-1] if by_value else memory.plain_map.rows[-1]
    row = row if by_value else plain
    return replace(
        plan,
        shares=dict(row.shares),
        remaining=row.load * plan.load,
        lost=row.lost,
        exhausted=row is last,
        by_value=memory.values if by_value else {},
    )


def _exhausted(plan: Plan, memory: Memory, most: float, *, overloaded: bool) -> bool:
    """Whether it is still too much though nothing more may be shed (A82), or nothing at all.

    Where nothing at all may be shed, a moment in which nothing is late does not end it: the load must fit.
    """
    left, usable = plan.remaining or 0.0, plan.usable or 0.0
    if not plan.exhausted or left < usable + _AS_TOLD:
        return False
    return memory.shedding.kept < 1 or overloaded or (memory.exhausted and left > max(usable, most))
