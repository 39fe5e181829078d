"""Every check of a network, in one call: each node against its inputs, then what only the whole can show.

The fluent API and the YAML form refuse a wrong box as it is written; `check` says that nothing is wrong before
anything is started, and `problems` lists all of what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath

from penstock.model.boxes import Node
from penstock.model.checks.stream_types import output_type
from penstock.model.error_location import node_error
from penstock.model.errors import NetworkError, Where
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import reaching

Problems = Iterator[NetworkError]


def check(network: Network) -> None:
    """Raise the first problem, if there is any.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> ticks = net.source("ticks", ps.rate(5))
    >>> check(net)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    penstock.model.errors.NetworkError: ...: network 'n' has no end
      found:    1 node, no output, view or connection point
      expected: at least one of them
      hint:     net.output("name", stream, to=ps.console())
    >>> end = net.output("all", ticks, to=ps.console())
    >>> check(net)
    """
    for problem in problems(network):
        raise problem


def problems(network: Network) -> Problems:
    """All that is wrong, box by box in the order of the network, then the network as a whole."""
    for rule in _RULES:
        yield from rule(network)


def idle_boxes(network: Network) -> tuple[str, ...]:
    """Nodes that lead to no output, view or connection point: no error, but their work is for nobody."""
    live = reaching(network, [*network.points, *network.outputs])
    return tuple(name for name in network.nodes if name not in live)


def _each_box(network: Network) -> Problems:
    for node in network.nodes.values():
        # a point without inputs is one that this sub-network reads: its type comes from elsewhere
        if node.name in network.points and not node.inputs:
            continue
        try:
            output_type(node, network.input_types(node.name))
        except NetworkError as error:
            yield error


def _has_an_end(network: Network) -> Problems:
    if not network.outputs and not network.points:
        count = len(network.nodes)
        yield NetworkError(
            f"network '{network.name}' has no end",
            where=next((node.where for node in reversed(list(network.nodes.values()))), Where()),
            found=f"{count} node{'s' * (count != 1)}, no output, view or connection point",
            expected="at least one of them",
            hint='net.output("name", stream, to=ps.console())',
        )


def _points_differ(network: Network) -> Problems:
    """Their names become tables and directories, where 'A' and 'a' may be one."""
    seen: dict[str, Node] = {}
    for name, node in network.points.items():
        other = seen.setdefault(name.lower(), node)
        if other is not node:
            yield node_error(node, f"'{name}' and '{other.name}' differ only in case", found=f"'{other.name}' at {other.where}", hint="SQL and some disks take them for one; rename one")  # fmt: skip


def _own_files(network: Network) -> Problems:
    """No two outputs into one directory, and none into a directory that a source reads: a loop through files."""
    read = {
        _place(node.format.directory): node
        for node in network.sources.values()
        if node.format.directory is not None
    }
    written: dict[PurePath, Node] = {}
    for node in network.outputs.values():
        if node.to.directory is None:
            continue
        place = _place(node.to.directory)
        if place in read:
            yield node_error(node, f"writes into '{node.to.directory}', which source '{read[place].name}' reads", expected="a directory of its own", hint="that would be a loop")  # fmt: skip
        other = written.setdefault(place, node)
        if other is not node:
            yield node_error(node, f"writes into '{node.to.directory}', as output '{other.name}' does", found=f"'{other.name}' at {other.where}", expected="a directory of its own")  # fmt: skip


def _place(path: str) -> PurePath:
    return PurePath(path)


_RULES: tuple[Callable[[Network], Problems], ...] = (_each_box, _has_an_end, _points_differ, _own_files)
