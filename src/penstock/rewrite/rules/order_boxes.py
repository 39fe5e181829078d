"""Boxes that commute go in the order of (1 - selectivity) / cost, the largest first (A46).

Filters and drops commute with each other; a drop also with a map. A box that may fail stays where it is: with
fewer tuples in front of it there would be fewer dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.model.boxes import Drop, Filter, Map, Node
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.conditions import never_fails, only_reader
from penstock.rewrite.rules.edit import edited, reading
from penstock.rewrite.rules.step import Step


def order_boxes(network: Network, costs: CostModel) -> Iterator[Step]:
    """Each two neighbours exchanged, if the second has the larger rank."""
    for second in network.nodes.values():
        first = network.nodes.get(second.inputs[0]) if second.inputs else None
        if first is None or not _commute(network, first, second):
            continue
        ranks = costs.rank(first), costs.rank(second)
        # Clearly larger: two equal boxes would change places for ever.
        if ranks[1] > ranks[0] * (1 + 1e-9) and only_reader(network, first.name, second.name):
            yield from _exchanged(network, first, second, costs)


def _commute(network: Network, first: Node, second: Node) -> bool:
    if not isinstance(second, Filter | Drop) or not isinstance(first, Filter | Drop | Map):
        return False
    # A filter behind a map is pushed, with the map's expressions in its predicate; see `push_filters`.
    if isinstance(first, Map) and isinstance(second, Filter):
        return False
    return all(isinstance(box, Drop) or never_fails(network, box) for box in (first, second))


def _exchanged(network: Network, first: Node, second: Node, costs: CostModel) -> Iterator[Step]:
    readers = reading(network, {second.name: first.name})
    changed = [replace(second, inputs=first.inputs), replace(first, inputs=(second.name,)), *readers]
    result = edited(network, changed)
    if result is not None:
        share, cost = costs.selectivity(second), costs.logic(second)
        why = f"it lets {share:.0%} through at {cost:.2g} us a tuple, and '{first.name}' "
        why += f"{costs.selectivity(first):.0%} at {costs.logic(first):.2g} us"
        yield Step(result, f"'{second.name}' goes in front of '{first.name}': {why}")
