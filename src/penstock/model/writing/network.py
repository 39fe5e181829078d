"""Network: boxes and arrows (Aurora, Sect. 2). A description only: building it runs nothing.

Each node is checked against its inputs as it is added, so a network that exists is sound. `rewrite.check`
adds the checks that need the whole network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import MappingProxyType

from penstock.model.boxes import About, Arrow, Kept, Node, Output, Source, View
from penstock.model.checks.arguments import check_arguments
from penstock.model.checks.shedding import check_shedding
from penstock.model.checks.stream_types import check_qos, output_type
from penstock.model.checks.topology import check_inputs, check_name, check_network_name, ordered
from penstock.model.control_settings import ControlSettings
from penstock.model.errors import NetworkError, caller, did_you_mean, shown
from penstock.model.formats.description import SinkFormat, SourceFormat
from penstock.model.qos import QoS
from penstock.model.types import Schema, StreamType
from penstock.model.writing.box_builder import BoxBuilder, Duration, QoSLike
from penstock.model.writing.stream import Stream


class Network:
    """A named, loop-free graph of sources, boxes, connection points, views and outputs.

    >>> import penstock as ps
    >>> net = ps.Network("traffic")
    >>> cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    >>> net.output("slow", cars.filter("spd < 40"), to=ps.console())
    Stream(slow: time TIMESTAMP, spd INT)
    >>> list(net.nodes)
    ['cars', 'filter_1', 'slow']
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.strip():
            raise NetworkError(
                "a network without a name",
                where=caller(),
                found=shown(name),
                expected="a text",
                hint='ps.Network("traffic")',
            )
        check_network_name(name, caller())
        self.name = name
        self._nodes: dict[str, Node] = {}
        self._types: dict[str, StreamType] = {}
        self._groups: dict[tuple[str, ...], About] = {}
        self._open: tuple[str, ...] = ()
        self.control: ControlSettings | None = None  # how `penstock run` is to control it

    @staticmethod
    def of(
        name: str,
        nodes: Iterable[Node],
        *,
        given: Mapping[str, StreamType] | None = None,
        groups: Mapping[tuple[str, ...], About] | None = None,
        control: ControlSettings | None = None,
    ) -> Network:
        """A network from its nodes in any order. `given`: types of nodes that are fed from elsewhere."""
        network = Network(name)
        network.control = control
        network._groups = dict(groups or {})
        here = caller()
        # Nodes that another program made carry no line, so errors about them name the caller's.
        for node in ordered(n if n.where.file else replace(n, where=here) for n in nodes).values():
            network._nodes[node.name] = node
            network._types[node.name] = network._type(node, given or {})
            network._note_group(node.about.group)
        return network

    def _type(self, node: Node, given: Mapping[str, StreamType]) -> StreamType:
        if node.name in given:
            return given[node.name]
        return output_type(node, [self._types[name] for name in node.inputs])

    # --- what it holds ---

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by name, each after its inputs."""
        return MappingProxyType(self._nodes)

    @property
    def types(self) -> Mapping[str, StreamType]:
        """What leaves each node."""
        return MappingProxyType(self._types)

    @property
    def groups(self) -> Mapping[tuple[str, ...], About]:
        """Superboxes by path (A32), outer ones first."""
        return MappingProxyType(self._groups)

    @property
    def arrows(self) -> tuple[Arrow, ...]:
        """All arrows, by head."""
        return tuple(
            Arrow(tail, node.name, at) for node in self._nodes.values() for at, tail in enumerate(node.inputs)
        )

    @property
    def sources(self) -> dict[str, Source]:
        return {name: node for name, node in self._nodes.items() if isinstance(node, Source)}

    @property
    def outputs(self) -> dict[str, Output]:
        return {name: node for name, node in self._nodes.items() if isinstance(node, Output)}

    @property
    def points(self) -> dict[str, Kept]:
        """Connection points and views: where tuples are kept and readers may come."""
        return {name: node for name, node in self._nodes.items() if isinstance(node, Kept)}

    def readers(self, name: str) -> tuple[str, ...]:
        """The nodes that `name` feeds."""
        return tuple(node.name for node in self._nodes.values() if name in node.inputs)

    def input_types(self, name: str) -> list[StreamType]:
        """What enters a node, in the order of its inputs."""
        return [self._types[tail] for tail in self._nodes[name].inputs]

    # --- building it ---

    def source(
        self,
        name: str,
        format: SourceFormat,  # noqa: A002 - as in Source
        *,
        timestamp: str | None = None,
        lateness: Duration = 0,
        whole: bool = False,
        idle: Duration | None = "10 seconds",
        stays: bool | None = None,
    ) -> Stream:
        """Where tuples enter (A02). See `boxes.Source` for `lateness`, `whole`, `idle` and `stays`."""
        builder = BoxBuilder(self, Source, name, caller())
        if getattr(format, "schema", Schema()) is None:
            raise NetworkError(
                "a source needs to know its columns",
                box=name,
                where=builder.where,
                hint="for example csv('in/', schema='time TIMESTAMP, vid INT')",
            )
        return builder.add(
            [],
            format=format,
            schema=getattr(format, "schema", Schema()),
            timestamp=timestamp,
            lateness=builder.duration("lateness", lateness),
            whole=whole,
            idle=None if idle is None else builder.duration("idle", idle),
            stays=stays,
        )

    def output(self, name: str, stream: Stream, *, to: SinkFormat, qos: QoSLike = None) -> Stream:
        """Where a path ends (A05): the tuples of `stream` go to `to`, governed by `qos` (A24)."""
        builder = BoxBuilder(self, Output, name, caller())
        return builder.add([stream], to=to, qos=builder.qos(qos))

    def stream(self, name: str) -> Stream:
        """The stream that leaves the node of that name, to go on from it."""
        if name not in self._nodes:
            raise NetworkError(
                f"no node '{name}' in network '{self.name}'",
                where=caller(),
                hint=did_you_mean(name, self._nodes),
            )
        return Stream(self, name)

    def group(
        self, name: str, *, tag: str = "", description: str = "", manual: str = ""
    ) -> AbstractContextManager[None]:
        """Boxes written inside `with net.group(...)` belong to this superbox; groups nest (A32)."""
        if not isinstance(name, str) or "/" in name or not name.strip():
            raise NetworkError(
                f"'{name}' cannot be the name of a group", where=caller(), expected="a text without '/'"
            )
        return self._group(name, About(tag, description, manual, group=self._open))

    @contextmanager
    def _group(self, name: str, about: About) -> Iterator[None]:
        outer, self._open = self._open, (*self._open, name)
        self._note_group(self._open)
        if about.tag or about.description or about.manual:
            self._groups[self._open] = about
        try:
            yield
        finally:
            self._open = outer

    def _note_group(self, path: tuple[str, ...]) -> None:
        for depth in range(1, len(path) + 1):
            self._groups.setdefault(path[:depth], About(group=path[: depth - 1]))

    def add(self, node: Node) -> Stream:
        """Put a node in, checked against its inputs; inside `with net.group(...)` it joins that group."""
        check_name(node, self._nodes)
        check_inputs(node, self._nodes)
        if self._open and not node.about.group:
            node = replace(node, about=replace(node.about, group=self._open))
        self._types[node.name] = self._type(node, {})
        self._nodes[node.name] = node
        return Stream(self, node.name)

    def free_name(self, kind: str) -> str:
        """The first free 'kind_1', 'kind_2', ...: the same each time the same network is written."""
        number = 1
        while f"{kind}_{number}" in self._nodes:
            number += 1
        return f"{kind}_{number}"

    def rename(self, old: str, new: str) -> None:
        """Give a node another name, also where it is read."""
        if new == old:
            return
        check_name(replace(self._nodes[old], name=new, where=caller()), self._nodes)
        renamed = {}
        for node in self._nodes.values():
            inputs = tuple(new if name == old else name for name in node.inputs)
            renamed_node = replace(node, inputs=inputs, name=new if node.name == old else node.name)
            renamed[renamed_node.name] = renamed_node
        self._types = {new if name == old else name: type_ for name, type_ in self._types.items()}
        self._nodes = renamed

    def describe(self, name: str, *, tag: str = "", description: str = "", manual: str = "") -> None:
        """Set what people see of a node; empty arguments change nothing."""
        node = self._nodes[name]
        about = node.about
        new = replace(
            about,
            tag=tag or about.tag,
            description=description or about.description,
            manual=manual or about.manual,
        )
        self._nodes[name] = replace(node, about=new)

    def shed(self, name: str, by: str) -> None:
        """Say by which grain tuples may be shed in front of a box."""
        node = replace(self._nodes[name], shed_by=by)
        check_arguments(node)
        check_shedding(node)
        self._nodes[name] = node

    def set_qos(self, name: str, qos: QoS) -> None:
        """Give an output or view another QoS: it governs what is done for it, not what it means."""
        node = self._nodes[name]
        assert isinstance(node, Output | View)
        check_qos(replace(node, where=caller()), qos, self._types[name].schema)
        self._nodes[name] = replace(node, qos=qos)

    # --- comparing and showing it ---

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        mine, theirs = ({n: _comparable(node) for n, node in net._nodes.items()} for net in (self, other))
        same = self.name == other.name and self.control == other.control
        return same and mine == theirs and self._groups == other._groups

    __hash__ = None  # type: ignore[assignment]  # it changes, so it has no hash

    # Pictures look at networks, so a network imports them only when asked for one.

    def explain(self) -> str:
        """What each node does, reads and gives, as text."""
        from penstock.model.pictures.explain import explain

        return explain(self)

    def to_mermaid(self) -> str:
        """The picture as a Mermaid flowchart."""
        from penstock.model.pictures.mermaid import to_mermaid

        return to_mermaid(self)

    def to_svg(self) -> str:
        """The picture as SVG."""
        from penstock.model.pictures.svg import to_svg

        return to_svg(self)

    def _repr_html_(self) -> str:
        from penstock.model.pictures.notebook import to_html

        return to_html(self)

    def __repr__(self) -> str:
        return f"Network({self.name!r}: {len(self._nodes)} nodes)"


def _comparable(node: Node) -> tuple[object, ...]:
    """A node as a description: rows, lists and callbacks of this process compare by name."""
    if isinstance(node, Source):
        return type(node), replace(node, format=_NO_SOURCE), node.format.identity()
    if isinstance(node, Output):
        return type(node), replace(node, to=_NO_SINK), node.to.identity()
    return type(node), node


_NO_SOURCE, _NO_SINK = SourceFormat(), SinkFormat()
