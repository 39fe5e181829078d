"""A network is cut into sub-networks at its connection points (Aurora, Sect. 3.1, A47); each becomes one query.

Views keep their tuples too, so they cut as well. A sub-network shows the points it reads as nodes without inputs.
Where the cut would make two sub-networks wait for each other (a box reads a point and also what feeds it past that
point), they are one: inside it such a point keeps its inputs, passes its tuples on, and is written like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from penstock.model.boxes import About, Node
from penstock.model.errors import NetworkError, caller, did_you_mean
from penstock.model.formats.description import SinkFormat
from penstock.model.writing.box_builder import QoSLike
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream


@dataclass(frozen=True)
class SubNetwork:
    """What runs as one query: `inputs` are the sources and points it reads, `points` and `outputs` what it writes."""

    name: str
    network: Network
    inputs: tuple[str, ...]
    points: tuple[str, ...]
    outputs: tuple[str, ...]


def split(network: Network) -> tuple[SubNetwork, ...]:
    """The sub-networks, each after those that write the points it reads; boxes that lead nowhere are left out.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    >>> kept = cars.filter("spd < 40").connection_point("slow")
    >>> end = net.output("stopped", kept.filter("spd = 0"), to=ps.console())
    >>> [(part.name, part.inputs, part.points, part.outputs) for part in split(net)]
    [('slow', ('cars',), ('slow',), ()), ('stopped', ('slow',), (), ('stopped',))]
    """
    live = reaching(network, [*network.points, *network.outputs])
    homes = _homes(network, live)
    members: dict[str, list[str]] = {}
    for name in network.nodes:
        if name in live:
            members.setdefault(homes[name], []).append(name)
    return tuple(_sub_network(network, members[home]) for home in _in_order(network, homes, live))


def reaching(network: Network, ends: Iterable[str]) -> set[str]:
    """The nodes from which one of `ends` can be reached, these included."""
    found = set(ends)
    for node in reversed(list(network.nodes.values())):
        if node.name in found:
            found.update(node.inputs)
    return found


def _homes(network: Network, live: set[str]) -> dict[str, str]:
    """For each node one representative of its sub-network. A point lives with what feeds it."""
    homes = {name: name for name in network.nodes if name in live}
    for arrow in network.arrows:
        if arrow.head in live and arrow.tail not in network.points:
            _merge(homes, arrow.tail, arrow.head)
    while (loop := _loop(network, homes, live)) is not None:
        for home in loop:
            _merge(homes, loop[0], home)
    return homes


def _merge(homes: dict[str, str], one: str, other: str) -> None:
    keep, lose = homes[one], homes[other]
    if keep != lose:
        homes.update({name: keep for name, home in homes.items() if home == lose})


def _needs(network: Network, homes: dict[str, str], live: set[str]) -> dict[str, set[str]]:
    """Which sub-networks each one reads from, through points."""
    needs: dict[str, set[str]] = {home: set() for home in homes.values()}
    for arrow in network.arrows:
        if arrow.head in live and homes[arrow.tail] != homes[arrow.head]:
            needs[homes[arrow.head]].add(homes[arrow.tail])
    return needs


def _loop(network: Network, homes: dict[str, str], live: set[str]) -> list[str] | None:
    try:
        TopologicalSorter(_needs(network, homes, live)).prepare()
    except CycleError as error:
        loop: list[str] = error.args[1]
        return loop
    return None


def _in_order(network: Network, homes: dict[str, str], live: set[str]) -> list[str]:
    needs = _needs(network, homes, live)
    order: list[str] = []

    def visit(home: str) -> None:
        if home not in order:
            for needed in sorted(needs[home], key=list(needs).index):
                visit(needed)
            order.append(home)

    for name in network.nodes:
        if name in live:
            visit(homes[name])
    return order


def _sub_network(network: Network, names: list[str]) -> SubNetwork:
    inside = set(names)
    read = [name for name in network.points if name not in inside and inside & set(network.readers(name))]
    nodes = [replace(network.nodes[name], inputs=()) for name in read] + [
        network.nodes[name] for name in names
    ]
    points = tuple(name for name in names if name in network.points)
    outputs = tuple(name for name in names if name in network.outputs)
    title = (*points, *outputs)[0]
    return SubNetwork(
        title,
        Network.of(
            title, nodes, given={name: network.types[name] for name in read}, groups=_groups(network, nodes)
        ),
        tuple([name for name in names if name in network.sources] + read),
        points,
        outputs,
    )


def _groups(network: Network, nodes: Iterable[Node]) -> dict[tuple[str, ...], About]:
    used = {node.about.group[:depth] for node in nodes for depth in range(1, len(node.about.group) + 1)}
    return {path: about for path, about in network.groups.items() if path in used}


def at_point(
    network: Network,
    point: str,
    name: str,
    build: Callable[[Stream], Stream],
    *,
    to: SinkFormat | None = None,
    qos: QoSLike = None,
) -> SubNetwork:
    """A query attached to a connection point or view (A25, A30): `build` goes on from its stream, the end is output `name`.

    `build` may join other points in (A50): `lambda s: s.join(s.network.stream("other"), ...)`; it reads those that it names.
    Without `to` there is no output: `build` itself ends in a view (A28) or connection point.
    """
    if point not in network.points:
        raise NetworkError(
            f"no connection point '{point}' in network '{network.name}'",
            box=name,
            where=caller(),
            expected="the name of a connection point or view",
            hint=did_you_mean(point, network.points),
        )
    starts = [
        replace(node, inputs=(), about=replace(node.about, group=())) for node in network.points.values()
    ]
    made = Network.of(name, starts, given={start.name: network.types[start.name] for start in starts})
    end = build(made.stream(point))
    if to is not None:
        made.output(name, end, to=to, qos=qos)
    read = tuple(n for n in network.points if made.readers(n)) or (point,)
    return _reading(made, network, read)


def _reading(made: Network, network: Network, read: tuple[str, ...]) -> SubNetwork:
    """The query without the points that it does not read."""
    nodes = [node for node in made.nodes.values() if node.name not in network.points or node.name in read]
    given = {point: network.types[point] for point in read}
    own = Network.of(made.name, nodes, given=given, groups=_groups(made, nodes))
    return SubNetwork(own.name, own, read, tuple(n for n in own.points if n not in read), tuple(own.outputs))
