"""Two maps, one behind the other, become one (A45).

The second reads what the first computed, so its expressions take in those of the first. Where that would
compute an expression twice, the costs decide.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.boxes import Map
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.merge_neighbours import merged, neighbours
from penstock.rewrite.rules.step import Step
from penstock.rewrite.texts import substituted


def merge_maps(network: Network, _costs: CostModel) -> Iterator[Step]:
    """One map for each two neighbours with expressions."""
    for first, second in neighbours(network, Map):
        if first.columns and second.columns:
            below = dict(first.columns)
            above = {name: substituted(text, below) for name, text in second.columns}
            # A dict keeps the place of a column that is given again, as a map does.
            columns = tuple((below | above if second.keep else above).items())
            yield from merged(network, first, second, columns=columns, keep=first.keep and second.keep)
