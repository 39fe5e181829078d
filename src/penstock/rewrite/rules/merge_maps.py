"""Two maps, one behind the other, become one (A45).

The second reads what the first computed, so its expressions take in those of the first. Where that would
compute an expression twice, the costs decide. Not if one may fail: its dead letters would name another box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.model.boxes import Map
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.conditions import never_fails, only_reader
from penstock.rewrite.rules.edit import edited, joined_name, joined_origin, joined_twins, reading
from penstock.rewrite.rules.step import Step
from penstock.rewrite.texts import substituted


def merge_maps(network: Network, _costs: CostModel) -> Iterator[Step]:
    """One map for each two neighbours with expressions."""
    for second in network.nodes.values():
        first = network.nodes.get(second.inputs[0]) if second.inputs else None
        if not isinstance(first, Map) or not isinstance(second, Map):
            continue
        if first.columns and second.columns and only_reader(network, first.name, second.name):
            yield from _merged(network, first, second)


def _merged(network: Network, first: Map, second: Map) -> Iterator[Step]:
    if not never_fails(network, first) or not never_fails(network, second):
        return
    if first.shed_by != second.shed_by:  # one box cannot be shed in two ways
        return
    below = dict(first.columns)
    above = {name: substituted(text, below) for name, text in second.columns}
    both = replace(
        second,
        name=joined_name(network, first, second),
        inputs=first.inputs,
        # A dict keeps the place of a column that is given again, as a map does.
        columns=tuple((below | above if second.keep else above).items()),
        keep=first.keep and second.keep,
        origin=joined_origin(first, second),
        twins=joined_twins(first, second),
    )
    readers = reading(network, {second.name: both.name})
    result = edited(network, [both, *readers], {first.name, second.name} - {both.name})
    if result is not None:
        yield Step(result, f"maps '{first.name}' and '{second.name}' become one, '{both.name}'")
