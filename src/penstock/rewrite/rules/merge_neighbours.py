"""Two boxes of one kind, one behind the other, become one (A45): what merging filters and maps has in common.

Not if one may fail: its dead letters would name another box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from penstock.model.boxes import Filter, Map, Node
from penstock.model.writing.network import Network
from penstock.rewrite.rules.conditions import never_fails, only_reader
from penstock.rewrite.rules.edit import edited, joined_name, joined_origin, joined_twins, reading
from penstock.rewrite.rules.step import Step

Box = TypeVar("Box", Filter, Map)


def neighbours(network: Network, kind: type[Box]) -> Iterator[tuple[Box, Box]]:
    """Each two boxes of a kind that may become one: nobody else reads the first, and none of them fails."""
    for second in network.nodes.values():
        first = network.nodes.get(second.inputs[0]) if second.inputs else None
        if (
            isinstance(first, kind)
            and isinstance(second, kind)
            and only_reader(network, first.name, second.name)
            and never_fails(network, first)
            and never_fails(network, second)
            and first.shed_by == second.shed_by  # one box cannot be shed in two ways
        ):
            yield first, second


def merged(network: Network, first: Node, second: Node, **fields: Any) -> Iterator[Step]:
    """The step that puts one box with these fields in the place of both, if the network stays sound."""
    both = replace(
        second,
        name=joined_name(network, first, second),
        inputs=first.inputs,
        origin=joined_origin(first, second),
        twins=joined_twins(first, second),
        **fields,
    )
    readers = reading(network, {second.name: both.name})
    result = edited(network, [both, *readers], {first.name, second.name} - {both.name})
    if result is not None:
        yield Step(result, f"{both.kind}s '{first.name}' and '{second.name}' become one, '{both.name}'")
