"""A join with a point's history looks its keys up, if that is cheaper than to merge all of it (A50).

A filter on the other side says which keys can meet. The same filter on the side of the point is a look-up:
files without such keys are not opened (A49), and of the others only these keys go into the join. Without it
all rows of the opened files are merged. The filter costs something for each tuple that is read, so the costs
decide. Only for keys of one type, where equal values are the same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.model.boxes import Filter, Join, Node, Trait
from penstock.model.expressions.expression import columns_of
from penstock.model.types import StreamType
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.conditions import exact_keys, never_fails, refuses_none
from penstock.rewrite.rules.edit import edited, free_name
from penstock.rewrite.rules.step import Step
from penstock.rewrite.texts import all_of, bare, conjuncts, renamed, substituted


def look_up(network: Network, costs: CostModel) -> Iterator[Step]:
    """A filter on the storage key between a point and a join, for each that the other side implies."""
    for join in network.nodes.values():
        if not isinstance(join, Join) or join.name in costs.in_use or not refuses_none(network, join):
            continue
        if join.inputs[0] == join.inputs[1]:
            continue
        for side in (0, 1):
            for key, other in ((pair[side], pair[1 - side]) for pair in join.on):
                yield from _looked_up(network, join, side, key, other)


def _looked_up(network: Network, join: Join, side: int, key: str, other: str) -> Iterator[Step]:
    known = _filters(network, join.inputs[side])
    point = known[-1] if known else None
    if point is None or getattr(point, "key", None) != key or not _same_type(network, join, side, key, other):
        return
    mine = [node.predicate for node in known[:-1] if isinstance(node, Filter)]
    have = {bare(part) for predicate in mine for part in conjuncts(predicate)}
    # Only filters that cannot fail: on the side of the point they would refuse other tuples than as written.
    theirs = [
        substituted(part, renamed({other: key}))
        for node in _filters(network, join.inputs[1 - side])
        if isinstance(node, Filter) and node.predicate and never_fails(network, node)
        for part in conjuncts(node.predicate)
        if columns_of(part) == (other,)
    ]
    # Without this the rule would add the same filter again and again.
    missing = [part for part in theirs if bare(part) not in have]
    if missing:
        yield from _between(network, join, side, point, all_of(missing))


def _filters(network: Network, name: str) -> list[Node]:
    """The filters in front of an input of the join, nearest first, and the node behind which they stand."""
    nodes = [network.nodes[name]]
    while isinstance(nodes[-1], Filter) and nodes[-1].predicate:
        nodes.append(network.nodes[nodes[-1].inputs[0]])
    return nodes if Trait.KEPT in nodes[-1].traits or len(nodes) > 1 else []


def _same_type(network: Network, join: Join, side: int, key: str, other: str) -> bool:
    types: list[StreamType] = network.input_types(join.name)
    mine, theirs = types[side].schema, types[1 - side].schema
    return mine.type_of(key) == theirs.type_of(other) and exact_keys(mine, [key])


def _between(network: Network, join: Join, side: int, point: Node, predicate: str) -> Iterator[Step]:
    tail = join.inputs[side]
    filter_ = Filter(
        name=free_name(network, f"{join.name}_keys_of_{point.name}"),
        inputs=(tail,),
        predicate=predicate,
        where=join.where,
        about=replace(join.about, tag="", description="", manual=""),
    )
    inputs = tuple(filter_.name if at == side else each for at, each in enumerate(join.inputs))
    result = edited(network, [filter_, replace(join, inputs=inputs)])
    if result is not None:
        says = f"join '{join.name}' looks up '{predicate}' in '{point.name}' and does not merge all of it"
        yield Step(result, says)
