"""The way on which tuples come to an output with a value graph (A57, A90): which values are worth a look.

Semantic shedding drops tuples where the last split leads to the output alone. What they are worth is known
only at the output. So samples are taken at both ends of this way.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.boxes import Trait
from penstock.model.qos import QoS
from penstock.model.types import NUMERIC
from penstock.rewrite.subnetworks import SubNetwork

_MOST_COLUMNS = 16
ARROW = "->"


@dataclass(frozen=True)
class ValueWay:
    """From a place at which a valve may stand down to an output or view with a value graph.

    `tail`: the node whose tuples come to the place. `boxes`: those between, from the place down. `end`: the
    node whose tuples are the answers. `rowwise`: no box has memory, so each answer is that of one tuple.
    """

    output: str
    qos: QoS
    at: str
    tail: str
    boxes: tuple[str, ...]
    end: str
    rowwise: bool


def value_ways(sub: SubNetwork) -> tuple[ValueWay, ...]:
    """The ways of a sub-network. An output of which nothing may be shed has none."""
    found = (_way(sub, name) for name in (*sub.outputs, *sub.points))
    return tuple(way for way in found if way is not None)


def _way(sub: SubNetwork, output: str) -> ValueWay | None:
    net = sub.network
    qos: QoS | None = getattr(net.nodes[output], "qos", None)
    if qos is None or not qos.value or not qos.may_be_shed:
        return None
    head, boxes = output, []
    tail = end = net.nodes[output].inputs[0]
    while tail not in sub.inputs and len(net.readers(tail)) == 1 and len(net.nodes[tail].inputs) == 1:
        boxes.append(tail)
        head, tail = tail, net.nodes[tail].inputs[0]
    split = len(net.readers(tail)) > 1
    if split and not net.nodes[head].is_box:
        return None  # an arrow to an output itself is no place for a valve
    if not split and tail not in sub.inputs:
        return None  # several inputs meet here
    rowwise = all(Trait.STATELESS in net.nodes[name].traits for name in boxes)
    at = f"{tail}{ARROW}{head}" if split else tail
    return ValueWay(output, qos, at, tail, tuple(reversed(boxes)), end, rowwise)


def sampled_columns(sub: SubNetwork) -> dict[str, tuple[str, ...]]:
    """By node: the numeric columns of its tuples that a sample is to have; no nodes without value graphs."""
    columns: dict[str, set[str]] = {}
    for way in value_ways(sub):
        columns.setdefault(way.end, set()).add(way.qos.column)
        columns.setdefault(way.tail, set()).update(numeric_columns(sub, way.tail))
    return {node: tuple(sorted(names)) for node, names in columns.items()}


def numeric_columns(sub: SubNetwork, node: str) -> tuple[str, ...]:
    """The numeric columns behind a node, not more than some."""
    schema = sub.network.types[node].schema
    return tuple(column.name for column in schema if column.type in NUMERIC)[:_MOST_COLUMNS]
