"""Which columns are read behind each arrow (A44). A column that nobody reads need not travel.

A box that may refuse a tuple reads all of its columns: the dead letter shows them. So does a box that depends
on order, where ties are broken by the values of all columns. Whatever others see is read too: points, views
and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Never, cast

from penstock.model.boxes import (
    Drop,
    Filter,
    GroupBy,
    Join,
    Latch,
    Map,
    Node,
    Resample,
    Slide,
    Tumble,
    Windowed,
)
from penstock.model.checks.stream_types import join_names
from penstock.model.expressions.expression import columns_of
from penstock.model.types import Schema
from penstock.model.writing.network import Network
from penstock.rewrite.rules.conditions import (
    arguments_never_fail,
    depends_on_order,
    join_never_fails,
    never_fails,
)

Names = frozenset[str]
Reads = list[Names]
"""For each input of a box, the columns that it or anybody behind it reads."""


def live_columns(network: Network, in_use: Collection[str] = ()) -> dict[str, Names]:
    """The columns of each node's stream that somebody behind it reads; boxes in use read all that they get.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, vid INT, spd INT"), timestamp="time")
    >>> end = net.output("mean", cars.tumble("1 minute", speed="avg(spd)"), to=ps.console())
    >>> sorted(live_columns(net)["cars"])
    ['spd']
    """
    live: dict[str, Names] = dict.fromkeys(network.nodes, frozenset())
    # Nodes stand in topological order. Backwards, all readers of a stream come before it.
    for node in reversed(list(network.nodes.values())):
        mine = _all(network, node) if node.name in in_use else reads(network, node, live[node.name])
        for tail, names in zip(node.inputs, mine, strict=True):
            live[tail] |= names
    return live


def reads(network: Network, node: Node, wanted: Names) -> Reads:
    """What a box reads of each input, if `wanted` is read behind it. Keys are read while a grouping holds."""
    reader = cast("Callable[[Network, Node, Names], Reads] | None", _READERS.get(type(node)))
    types = network.input_types(node.name)
    if reader is None:
        return [frozenset(type_.schema.names) for type_ in types]
    return [
        names | {key for key in type_.keys if key in type_.schema}
        for names, type_ in zip(reader(network, node, wanted), types, strict=True)
    ]


def _all(network: Network, node: Node) -> Reads:
    return [frozenset(type_.schema.names) for type_ in network.input_types(node.name)]


def _filter(network: Network, node: Filter, wanted: Names) -> Reads:
    if not never_fails(network, node):
        return _all(network, node)
    return [wanted | set(node.reads if node.function is not None else columns_of(node.predicate))]


def _map(network: Network, node: Map, wanted: Names) -> Reads:
    if not never_fails(network, node):
        return _all(network, node)
    if node.function is not None:
        # What the function makes anew is not read from its input.
        kept = wanted - set(node.produces.names) if node.keep else frozenset()
        return [kept | set(node.reads)]
    texts = dict(node.columns)
    computed = [columns_of(texts[name]) for name in wanted if name in texts]
    return [frozenset(wanted - texts.keys()) | {name for names in computed for name in names}]


def _same(_network: Network, _node: Drop, wanted: Names) -> Reads:
    return [wanted]


def _group_by(network: Network, node: GroupBy, wanted: Names) -> Reads:
    # Several streams must stay alike, so all of their columns stay.
    return [wanted | set(node.keys)] if len(node.inputs) == 1 else _all(network, node)


def _window(network: Network, node: Windowed | Latch, _wanted: Names) -> Reads:
    if node.function is not None or len(node.inputs) > 1 or not arguments_never_fail(network, node):
        return _all(network, node)
    if not _ties_do_not_matter(network, node):
        return _all(network, node)
    schema = network.input_types(node.name)[0].schema
    return [frozenset(name for _, text in node.aggregates for name in columns_of(text) if name in schema)]


def _resample(network: Network, node: Resample, wanted: Names) -> Reads:
    if not _ties_do_not_matter(network, node):
        return _all(network, node)
    schema = network.input_types(node.name)[0].schema
    return [frozenset(name for name in {*wanted, *node.columns} if name in schema)]


def _ties_do_not_matter(network: Network, node: Node) -> bool:
    """Tuples of one source have a place each, so no tie is ever broken by their values."""
    return network.input_types(node.name)[0].arrival_order or not depends_on_order(network, node)


def _join(network: Network, node: Join, wanted: Names) -> Reads:
    if not join_never_fails(network, node):
        return _all(network, node)
    left, right = (type_.schema for type_ in network.input_types(node.name))
    behind = wanted | set(columns_of(node.predicate) if node.predicate else ())
    taken = {old for old, new in join_names(node, left, right) if new in behind}
    return [_left_of_join(node, left, taken, behind), frozenset(taken | {b for _, b in node.on})]


def _left_of_join(node: Join, left: Schema, taken: set[str], behind: Names) -> Names:
    # A right column has a suffix because the left side has its name too. Without that one it would lose it.
    clashing = {name for name in taken if name in left}
    return frozenset({name for name in left.names if name in behind} | clashing | {a for a, _ in node.on})


_READERS: dict[type[Node], Callable[[Network, Never, Names], Reads]] = {
    Filter: _filter,
    Map: _map,
    Drop: _same,
    GroupBy: _group_by,
    Tumble: _window,
    Slide: _window,
    Latch: _window,
    Resample: _resample,
    Join: _join,
}
