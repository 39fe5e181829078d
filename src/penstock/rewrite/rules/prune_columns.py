"""No column travels further than it is read (A44): into Python, through a shuffle, into state.

A projection goes in front of each box that pays for columns. Columns that a map makes and nobody reads are
not made. `columns` says what is read; points, views and outputs keep all that they had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.model.boxes import Map, Node
from penstock.model.expressions.expression import column_text
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel, enters_python
from penstock.rewrite.rules.columns import Names, live_columns, reads
from penstock.rewrite.rules.conditions import never_fails
from penstock.rewrite.rules.edit import edited, free_name, reading
from penstock.rewrite.rules.step import Step


def prune_columns(network: Network, costs: CostModel) -> Iterator[Step]:
    """Maps without what nobody reads, then projections in front of boxes that pay for columns."""
    live = live_columns(network, costs.in_use)
    for node in network.nodes.values():
        if isinstance(node, Map) and node.columns:
            yield from _narrowed(network, node, live[node.name])
    for node in network.nodes.values():
        if node.is_box and node.name not in costs.in_use:  # its state may hold whole tuples
            yield from _projected(network, node, reads(network, node, live[node.name]))


def _narrowed(network: Network, node: Map, live: Names) -> Iterator[Step]:
    """A map that makes only what is read; none at all, if that is nothing."""
    # One that may fail makes dead letters too, whoever reads its columns.
    if not never_fails(network, node):
        return
    read = tuple((name, text) for name, text in node.columns if name in live or _needed(network, node, name))
    if read == node.columns:
        return
    unread = [name for name, _ in node.columns if (name, node_text(node, name)) not in read]
    if read:
        result = edited(network, [replace(node, columns=read)])
        them = "it" if len(unread) == 1 else "them"
        says = f"'{node.name}' no longer makes {', '.join(unread)}: nobody reads {them}"
    elif node.keep:
        result = edited(network, reading(network, {node.name: node.inputs[0]}), [node.name])
        says = f"'{node.name}' goes: nobody reads {', '.join(unread)}"
    else:
        return
    if result is not None:
        yield Step(result, says)


def node_text(node: Map, name: str) -> str:
    """The expression of one of the map's columns."""
    return dict(node.columns)[name]


def _needed(network: Network, node: Map, name: str) -> bool:
    """Keys stay while the grouping holds; a map that replaces a column may not give the old one back."""
    type_ = network.types[node.name]
    return name in type_.keys or (node.keep and name in network.input_types(node.name)[0].schema)


def _projected(network: Network, node: Node, read: list[Names]) -> Iterator[Step]:
    for at, tail in enumerate(node.inputs):
        names = network.types[tail].schema.names
        kept = [name for name in names if name in read[at]]
        # A map needs a column, and a projection in front of a box that stays in the JVM saves nothing.
        if not kept or len(kept) == len(names) or not enters_python(network, node, network.nodes[tail]):
            continue
        yield from _projection(network, node, at, kept)


def _projection(network: Network, node: Node, at: int, kept: list[str]) -> Iterator[Step]:
    tail = node.inputs[at]
    select = Map(
        name=free_name(network, f"columns_for_{node.name}"),
        inputs=(tail,),
        columns=tuple((name, column_text(name)) for name in kept),
        keep=False,
        where=node.where,
        about=replace(node.about, tag="", description="", manual=""),
    )
    inputs = tuple(select.name if index == at else each for index, each in enumerate(node.inputs))
    result = edited(network, [select, replace(node, inputs=inputs)])
    if result is not None:
        count = len(network.types[tail].schema.names)
        says = f"{len(kept)} of {count} columns go from '{tail}' to '{node.name}': {', '.join(kept)}"
        yield Step(result, says)
