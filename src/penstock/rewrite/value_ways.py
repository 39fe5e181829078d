"""The way on which tuples come to an output with a value graph (A57, A90): which values are worth a look.

Semantic shedding drops tuples where the last split leads to the output alone. What they are worth is known
only at the output. So samples are taken at both ends of this way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.model.boxes import Join, Trait
from penstock.model.qos import QoS
from penstock.model.types import NUMERIC
from penstock.rewrite.approximate_ways import approximate_ways
from penstock.rewrite.subnetworks import SubNetwork

_MOST_COLUMNS = 16
ARROW = "->"
_Way = tuple[str, str, tuple[str, ...]]  # place, tail, boxes


@dataclass(frozen=True)
class ValueWay:
    """From a place at which a valve may stand down to an output or view with a value graph.

    `tail`: the node whose tuples come to the place. `boxes`: those between, from the place down. `end`: the
    node whose tuples are the answers. `rowwise`: no box has memory, so each answer is that of one tuple.
    Above a join there are two ways, one for each side.
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
    return tuple(way for name in (*sub.outputs, *sub.points) for way in _ways_of(sub, name))


def _ways_of(sub: SubNetwork, output: str) -> Iterator[ValueWay]:
    net = sub.network
    qos = net.nodes[output].qos
    if qos is None or not qos.value or not qos.may_be_shed:
        return
    end = net.nodes[output].inputs[0]
    for at, tail, boxes in _up(sub, output, end, ()):
        rowwise = all(Trait.STATELESS in net.nodes[name].traits for name in boxes)
        yield ValueWay(output, qos, at, tail, boxes, end, rowwise)


def _up(sub: SubNetwork, head: str, tail: str, boxes: tuple[str, ...]) -> Iterator[_Way]:
    """Up to the next split or input. Nothing comes of it where streams are united."""
    net = sub.network
    if len(net.readers(tail)) > 1:
        if net.nodes[head].is_box:  # an arrow to an output itself is no place for a valve
            yield f"{tail}{ARROW}{head}", tail, boxes
    elif tail in sub.inputs:
        yield tail, tail, boxes
    elif len(net.nodes[tail].inputs) == 1 or isinstance(net.nodes[tail], Join):
        for up in net.nodes[tail].inputs:
            yield from _up(sub, tail, up, (tail, *boxes))


def sampled_columns(sub: SubNetwork) -> dict[str, tuple[str, ...]]:
    """By node: the numeric columns of its tuples that a sample is to have, for values and for errors."""
    columns: dict[str, set[str]] = {}
    for way in value_ways(sub):
        columns.setdefault(way.end, set()).add(way.qos.column)
        columns.setdefault(way.tail, set()).update(numeric_columns(sub, way.tail))
    for each in approximate_ways(sub):
        about = {answer.column for answer in each.answers.values() if answer.column}
        if about:
            columns.setdefault(each.tail, set()).update(about)
    return {node: tuple(sorted(names)) for node, names in columns.items()}


def numeric_columns(sub: SubNetwork, node: str) -> tuple[str, ...]:
    """The numeric columns behind a node, not more than some."""
    schema = sub.network.types[node].schema
    return tuple(column.name for column in schema if column.type in NUMERIC)[:_MOST_COLUMNS]
