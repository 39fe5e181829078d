"""A map whose columns only the filter behind it reads goes into that filter (A45).

The predicate then holds the map's expressions, and the columns are never written. Not if anybody behind the
filter reads one of them, and not if one of the two may fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.model.boxes import Filter, Map
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.columns import live_columns
from penstock.rewrite.rules.conditions import never_fails, only_reader
from penstock.rewrite.rules.edit import edited, joined_origin, joined_twins
from penstock.rewrite.rules.step import Step
from penstock.rewrite.texts import substituted


def fuse_map_into_filter(network: Network, costs: CostModel) -> Iterator[Step]:
    """The filter alone, for each map in front of a filter that makes it superfluous."""
    live = live_columns(network, costs.in_use)
    for filter_ in network.nodes.values():
        map_ = network.nodes.get(filter_.inputs[0]) if filter_.inputs else None
        if not isinstance(filter_, Filter) or not isinstance(map_, Map):
            continue
        written = {name for name, _ in map_.columns}
        # A map that does not keep the other columns also removes some, so it must stay.
        unread = map_.keep and bool(written) and not written & live[filter_.name]
        if unread and filter_.predicate and only_reader(network, map_.name, filter_.name):
            yield from _fused(network, map_, filter_)


def _fused(network: Network, map_: Map, filter_: Filter) -> Iterator[Step]:
    if not never_fails(network, map_) or not never_fails(network, filter_) or map_.shed_by != filter_.shed_by:
        return
    fused = replace(
        filter_,
        inputs=map_.inputs,
        predicate=substituted(filter_.predicate, dict(map_.columns)),
        origin=joined_origin(map_, filter_),
        twins=joined_twins(map_, filter_),
    )
    result = edited(network, [fused], [map_.name])
    if result is not None:
        yield Step(result, f"map '{map_.name}' goes into filter '{filter_.name}', its only reader")
