"""Equal boxes that read the same become one (A27): queries and views at a point share what they begin with.

Not a Drop: each has a lot of its own. Not a box that may refuse tuples: there would be one dead letter where
there were two. Not a function, unless it says that it is rowwise and is the very same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from penstock.model.boxes import ColumnLatch, Drop, Filter, Map, Node, Trait
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.conditions import never_fails, refuses_none
from penstock.rewrite.rules.edit import edited, reading
from penstock.rewrite.rules.step import Step

_NOT_CONFIGURATION = {"name", "about", "where", "origin", "twins"}


def share_prefixes(network: Network, costs: CostModel) -> Iterator[Step]:
    """One box for each two that do the same with the same stream."""
    boxes = [node for node in network.nodes.values() if _may_be_shared(network, node, costs)]
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            if _alike(one, other):
                yield from _shared(network, one, other)


def _may_be_shared(network: Network, node: Node, costs: CostModel) -> bool:
    # Boxes in use have state of their own, and two states cannot become one.
    if not node.is_box or node.name in costs.in_use or isinstance(node, Drop | ColumnLatch):
        return False
    if isinstance(node, Filter | Map):
        return never_fails(network, node)
    return Trait.STATELESS in node.traits or refuses_none(network, node)


def _alike(one: Node, other: Node) -> bool:
    if type(one) is not type(other):
        return False
    parts = [field.name for field in fields(one) if field.name not in _NOT_CONFIGURATION]
    return _same_function(one, other) and all(getattr(one, part) == getattr(other, part) for part in parts)


def _same_function(one: Node, other: Node) -> bool:
    """Functions compare by name, and all lambdas of a module have one: only the function itself will do."""
    mine, theirs = one.user_function, other.user_function
    if mine is None or theirs is None:
        return mine is theirs
    return mine.call is theirs.call


def _shared(network: Network, one: Node, other: Node) -> Iterator[Step]:
    # What the other stands for is still counted under its names. These may be fewer or more than here: two
    # filters that became one are equal to a filter that was written whole.
    kept = replace(one, origin=one.origins, twins=one.twins + other.stretches)
    changed = [kept, *reading(network, {other.name: one.name})]
    result = edited(network, changed, [other.name])
    if result is not None:
        stream = ", ".join(f"'{tail}'" for tail in one.inputs)
        yield Step(result, f"'{one.name}' stands for '{other.name}' too: both do the same with {stream}")
