"""Two filters, one behind the other, become one (A45): a call of a box less for each tuple.

Not if one may fail: `AND` looks at its right side for tuples that the first filter had let go.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.boxes import Filter
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.merge_neighbours import merged, neighbours
from penstock.rewrite.rules.step import Step
from penstock.rewrite.texts import all_of


def merge_filters(network: Network, _costs: CostModel) -> Iterator[Step]:
    """One filter for each two neighbours with predicates."""
    for first, second in neighbours(network, Filter):
        if first.predicate and second.predicate:
            yield from merged(network, first, second, predicate=all_of([first.predicate, second.predicate]))
