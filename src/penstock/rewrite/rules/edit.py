"""Small changes to the graph of a network; each gives a new network, checked box by box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor

from penstock.model.boxes import Node, Stretch, Trait
from penstock.model.checks.topology import LONGEST_NAME
from penstock.model.errors import NetworkError
from penstock.model.writing.network import Network


def edited(network: Network, changed: Iterable[Node], gone: Iterable[str] = ()) -> Network | None:
    """The network with some nodes changed or added, and others gone; None if it would not be sound.

    It would not be, for example, if an expression grew too deep. Then the step is left out.
    """
    nodes = dict(network.nodes) | {node.name: node for node in changed}
    for name in gone:
        del nodes[name]
    # A point without inputs is fed by another sub-network, so its type cannot be worked out here.
    fed_elsewhere = {name: network.types[name] for name in network.points if not network.nodes[name].inputs}
    try:
        result = Network.of(
            network.name, nodes.values(), given=fed_elsewhere, groups=network.groups, control=network.control
        )
    except NetworkError:
        return None
    return result if _same_ends(network, result) and _same_times(network, result) else None


def _same_times(before: Network, after: Network) -> bool:
    """Whether boxes with state take their times from the columns that they took them from.

    A function that gives a column by the name of the timestamp sets the time of its tuples.
    """
    both = [name for name, node in before.nodes.items() if Trait.STATEFUL in node.traits]
    return all(
        before.types[name].timestamp == after.types[name].timestamp for name in both if name in after.nodes
    )


def _same_ends(before: Network, after: Network) -> bool:
    """Whether everything that others see has the columns, the timestamp and the grouping that it had."""
    ends = [*before.points, *before.outputs]
    return all(
        (before.types[end].schema, before.types[end].timestamp, before.types[end].keys)
        == (after.types[end].schema, after.types[end].timestamp, after.types[end].keys)
        for end in ends
    )


def reading(network: Network, instead: Mapping[str, str]) -> list[Node]:
    """The nodes that read one of the old names, changed to read the new name in its place."""
    return [
        replace(node, inputs=tuple(instead.get(tail, tail) for tail in node.inputs))
        for node in network.nodes.values()
        if any(tail in instead for tail in node.inputs)
    ]


def free_name(network: Network, wanted: str, taken: Iterable[str] = ()) -> str:
    """The wanted name, with a number if it is taken, and cut if it is too long."""
    # Names are limited in bytes. Leave some for a number, and drop a character that the cut has split.
    base = wanted.encode()[: LONGEST_NAME - 8].decode(errors="ignore").rstrip()
    others = {*network.nodes, *taken}
    if base not in others:
        return base
    number = 2
    while f"{base}_{number}" in others:
        number += 1
    return f"{base}_{number}"


def joined_name(network: Network, first: Node, second: Node) -> str:
    """The name of two boxes in one; a long one is that of the second, which others know."""
    both = f"{first.name}_and_{second.name}"
    return free_name(network, both) if len(both) <= 60 else second.name


def joined_origin(*nodes: Node) -> tuple[str, ...]:
    """The boxes as written that stand in one, one behind the other."""
    return tuple(dict.fromkeys(name for node in nodes for name in node.origins))


def joined_twins(first: Node, second: Node) -> tuple[Stretch, ...]:
    """The twins of two boxes that become one, each at its stretch of the work of both."""
    whole = joined_origin(first, second)
    mine, others = (tuple(_placed(twin, node, whole) for twin in node.twins) for node in (first, second))
    # Two parts of one box as written bring the same twins.
    return mine + tuple(twin for twin in others if twin not in mine)


def _placed(twin: Stretch, node: Node, whole: Sequence[str]) -> Stretch:
    """A twin of a box, as one of a box in which the names of `whole` stand."""
    begin, end = twin.begin * len(node.origins), twin.end * len(node.origins)
    places = [whole.index(name) for name in node.origins[floor(begin) : ceil(end)]]
    # A twin may begin or end within the work of one name.
    before, after = begin - floor(begin), ceil(end) - end
    return Stretch(twin.name, (min(places) + before) / len(whole), (max(places) + 1 - after) / len(whole))
