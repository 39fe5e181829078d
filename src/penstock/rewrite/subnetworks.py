"""Cut a network into sub-networks at its connection points (Aurora, Sect. 3.1, A47); each becomes one query.

Views keep their tuples too, so they cut as well. A sub-network shows the points it reads as nodes without
inputs. A box may read a point and also, past that point, what feeds it; then two sub-networks would wait for
each other. Such sub-networks become one. Inside it, the point keeps its inputs, passes its tuples on, and is
written like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from penstock.model.boxes import About, Node, Output, View
from penstock.model.errors import NetworkError, caller, did_you_mean
from penstock.model.formats.description import SinkFormat
from penstock.model.qos import QoS
from penstock.model.writing.box_builder import QoSLike
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream


@dataclass(frozen=True)
class SubNetwork:
    """What runs as one query: it reads the sources and points `inputs`, and writes `points` and `outputs`.

    `written`: the network as written, if `network` is another form of it.
    """

    name: str
    network: Network
    inputs: tuple[str, ...]
    points: tuple[str, ...]
    outputs: tuple[str, ...]
    written: Network | None = None

    @property
    def as_written(self) -> Network:
        """The boxes as somebody wrote them, whatever runs."""
        return self.network if self.written is None else self.written


def split(network: Network) -> tuple[SubNetwork, ...]:
    """The sub-networks, each after those that write the points it reads, without boxes that lead nowhere.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    >>> kept = cars.filter("spd < 40").connection_point("slow")
    >>> end = net.output("stopped", kept.filter("spd = 0"), to=ps.console())
    >>> [(part.name, part.inputs, part.points, part.outputs) for part in split(net)]
    [('slow', ('cars',), ('slow',), ()), ('stopped', ('slow',), (), ('stopped',))]
    """
    live = reaching(network, [*network.points, *network.outputs])
    part_of = _assign_parts(network, live)
    members: dict[str, list[str]] = {}
    for name in network.nodes:
        if name in live:
            members.setdefault(part_of[name], []).append(name)
    return tuple(_sub_network(network, members[part]) for part in _in_order(network, part_of, live))


def reaching(network: Network, ends: Iterable[str]) -> set[str]:
    """The nodes from which one of `ends` can be reached, these included."""
    names = set(ends)
    for node in reversed(list(network.nodes.values())):
        if node.name in names:
            names.update(node.inputs)
    return names


def _assign_parts(network: Network, live: set[str]) -> dict[str, str]:
    """For each node one representative of its sub-network. A point lives with what feeds it."""
    part_of = {name: name for name in network.nodes if name in live}
    for arrow in network.arrows:
        # An arrow out of a point joins nothing: there the network is cut.
        if arrow.head in live and arrow.tail not in network.points:
            _merge(part_of, arrow.tail, arrow.head)
    # Sub-networks that wait for each other become one; each merge may close another loop.
    while (loop := _loop(network, part_of, live)) is not None:
        for part in loop:
            _merge(part_of, loop[0], part)
    return part_of


def _merge(part_of: dict[str, str], one: str, other: str) -> None:
    keep, lose = part_of[one], part_of[other]
    if keep != lose:
        part_of.update({name: keep for name, part in part_of.items() if part == lose})


def _needs(network: Network, part_of: dict[str, str], live: set[str]) -> dict[str, set[str]]:
    """Which sub-networks each one reads from, through points."""
    needs: dict[str, set[str]] = {part: set() for part in part_of.values()}
    for arrow in network.arrows:
        if arrow.head in live and part_of[arrow.tail] != part_of[arrow.head]:
            needs[part_of[arrow.head]].add(part_of[arrow.tail])
    return needs


def _loop(network: Network, part_of: dict[str, str], live: set[str]) -> list[str] | None:
    try:
        TopologicalSorter(_needs(network, part_of, live)).prepare()
    except CycleError as error:
        loop: list[str] = error.args[1]
        return loop
    return None


def _in_order(network: Network, part_of: dict[str, str], live: set[str]) -> list[str]:
    needs = _needs(network, part_of, live)
    order: list[str] = []

    at = {part: number for number, part in enumerate(needs)}
    done: set[str] = set()
    # Not TopologicalSorter: among equals, the order in which the network was written must win. A stack and
    # not recursion: hundreds of points may follow each other.
    for stack in ([part_of[name]] for name in network.nodes if name in live):
        while stack:
            missing = sorted(needs[stack[-1]] - done, key=at.__getitem__)
            if missing and stack[-1] not in done:
                stack.append(missing[0])
            elif (part := stack.pop()) not in done:
                done.add(part)
                order.append(part)
    return order


def _sub_network(network: Network, names: list[str]) -> SubNetwork:
    inside = set(names)
    read = [name for name in network.points if name not in inside and inside & set(network.readers(name))]
    nodes = [replace(network.nodes[name], inputs=()) for name in read] + [
        network.nodes[name] for name in names
    ]
    points = tuple(name for name in names if name in network.points)
    outputs = tuple(name for name in names if name in network.outputs)
    # Every live node leads to a point or an output, so there is a first one to name the part after.
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


def with_qos(network: Network, name: str, qos: QoS) -> Network:
    """The same network, but for the QoS of an output or view. It may be that of a sub-network, too."""
    nodes = [
        replace(node, qos=qos) if node.name == name and isinstance(node, Output | View) else node
        for node in network.nodes.values()
    ]
    given = {node.name: network.types[node.name] for node in nodes if not node.inputs}
    return Network.of(network.name, nodes, given=given, groups=network.groups, control=network.control)


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
    """A query attached to a connection point or view (A25, A30).

    `build` goes on from the point's stream; its end becomes output `name`. `build` may join other points
    (A50): `lambda s: s.join(s.network.stream("other"), ...)`. Without `to` there is no output: `build` itself
    ends in a view (A28) or connection point.
    """
    if point not in network.points:
        raise NetworkError(
            f"no connection point '{point}' in network '{network.name}'",
            box=name,
            where=caller(),
            expected="the name of a connection point or view",
            hint=did_you_mean(point, network.points),
        )
    # `build` may name any point, so all of them are offered; those it does not read go again below.
    starts = [
        replace(node, inputs=(), about=replace(node.about, group=())) for node in network.points.values()
    ]
    query = Network.of(name, starts, given={start.name: network.types[start.name] for start in starts})
    end = build(query.stream(point))
    if to is not None:
        query.output(name, end, to=to, qos=qos)
    read = tuple(n for n in network.points if query.readers(n)) or (point,)
    return _reading(query, network, read)


def _reading(query: Network, network: Network, read: tuple[str, ...]) -> SubNetwork:
    """The query without the points that it does not read."""
    nodes = [node for node in query.nodes.values() if node.name not in network.points or node.name in read]
    given = {point: network.types[point] for point in read}
    own = Network.of(query.name, nodes, given=given, groups=_groups(query, nodes))
    return SubNetwork(own.name, own, read, tuple(n for n in own.points if n not in read), tuple(own.outputs))
