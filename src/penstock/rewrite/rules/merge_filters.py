"""Two filters, one behind the other, become one (A45): a call of a box less for each tuple.

Not if one may fail: the dead letter would name another box, and `AND` looks at its right side for tuples that
the first filter had let go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.model.boxes import Filter
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.conditions import never_fails, only_reader
from penstock.rewrite.rules.edit import edited, joined_name, joined_origin, joined_twins, reading
from penstock.rewrite.rules.step import Step
from penstock.rewrite.texts import all_of


def merge_filters(network: Network, _costs: CostModel) -> Iterator[Step]:
    """One filter for each two neighbours with predicates."""
    for second in network.nodes.values():
        first = network.nodes.get(second.inputs[0]) if second.inputs else None
        if not isinstance(first, Filter) or not isinstance(second, Filter):
            continue
        if first.predicate and second.predicate and only_reader(network, first.name, second.name):
            yield from _merged(network, first, second)


def _merged(network: Network, first: Filter, second: Filter) -> Iterator[Step]:
    if not never_fails(network, first) or not never_fails(network, second):
        return
    if first.shed_by != second.shed_by:  # one box cannot be shed in two ways
        return
    both = replace(
        second,
        name=joined_name(network, first, second),
        inputs=first.inputs,
        predicate=all_of([first.predicate, second.predicate]),
        origin=joined_origin(first, second),
        twins=joined_twins(first, second),
    )
    readers = reading(network, {second.name: both.name})
    result = edited(network, [both, *readers], {first.name, second.name} - {both.name})
    if result is not None:
        yield Step(result, f"filters '{first.name}' and '{second.name}' become one, '{both.name}'")
