"""Every check of a network, in one call: each node against its inputs, then what only the whole can show.

The fluent API and the YAML form refuse a wrong box as it is written. `check` makes sure that nothing is wrong
before a network starts; `problems` lists everything that is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from penstock.model.boxes import Node
from penstock.model.checks.stream_types import output_type
from penstock.model.error_location import node_error
from penstock.model.errors import NetworkError, Where
from penstock.model.writing.network import Network

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


def _each_box(network: Network) -> Problems:
    for node in network.nodes.values():
        # A point without inputs is one that this sub-network reads; its type comes from elsewhere.
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
            yield node_error(
                node,
                f"'{name}' and '{other.name}' differ only in case",
                found=f"'{other.name}' at {other.where}",
                hint="SQL and some file systems treat them as one; rename one",
            )


def _own_files(network: Network) -> Problems:
    """Two outputs must not share a directory, and none may write where a source reads: that is a loop."""
    read = {
        _real(node.format.directory): node
        for node in network.sources.values()
        if node.format.directory is not None
    }
    written: dict[str, Node] = {}
    for node in network.outputs.values():
        if node.to.directory is None:
            continue
        directory = _real(node.to.directory)
        if directory in read:
            yield node_error(
                node,
                f"writes into '{node.to.directory}', which source '{read[directory].name}' reads",
                expected="a directory of its own",
                hint="that would be a loop",
            )
        other = written.setdefault(directory, node)
        if other is not node:
            yield node_error(
                node,
                f"writes into '{node.to.directory}', as output '{other.name}' does",
                found=f"'{other.name}' at {other.where}",
                expected="a directory of its own",
            )


def _real(directory: str) -> str:
    """The directory itself, however it is spelt."""
    return os.path.realpath(directory)


_RULES: tuple[Callable[[Network], Problems], ...] = (_each_box, _has_an_end, _points_differ, _own_files)
