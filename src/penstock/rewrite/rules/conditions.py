"""What must hold before a box may move or merge, so that rows and dead letters stay the same.

Each question has a test that shows what would go wrong without it (`tests/rewrite/optimizer`).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.boxes import ColumnLatch, Filter, Join, Latch, Map, Node, Resample, Windowed
from penstock.model.checks.window_types import latch_schema
from penstock.model.expressions.binding import bind
from penstock.model.expressions.expression import Aggregation, columns_of, split_aggregates
from penstock.model.expressions.typed import can_fail
from penstock.model.types import Column, Schema
from penstock.model.writing.network import Network


def only_reader(network: Network, tail: str, head: str) -> bool:
    """Whether all tuples of a box go to one input of one other; what others read must not change."""
    return network.readers(tail) == (head,) and network.nodes[head].inputs.count(tail) == 1


def never_fails(network: Network, node: Filter | Map) -> bool:
    """Whether no tuple can make the box refuse it.

    A box that refuses tuples must see exactly those that it saw as written: each is a dead letter with the
    name of the box and the tuple's columns. A user's function must promise that (`rowwise`).
    """
    if node.function is not None:
        return node.rowwise
    schema = network.input_types(node.name)[0].schema
    texts = [node.predicate] if isinstance(node, Filter) else [text for _, text in node.columns]
    return not any(can_fail(bind(text, schema)) for text in texts)


def reads_of(node: Filter) -> tuple[str, ...]:
    """The columns that a filter looks at."""
    return columns_of(node.predicate) if node.function is None else node.reads


def aggregations(network: Network, node: Windowed | Latch) -> list[Aggregation]:
    """The aggregates of a window, split into calls and what is made of them."""
    schema, keys = _window_schema(network, node), network.input_types(node.name)[0].keys
    return [split_aggregates(text, schema, keys) for _, text in node.aggregates]


def _window_schema(network: Network, node: Windowed | Latch) -> Schema:
    inputs = network.input_types(node.name)
    return latch_schema(node, inputs) if isinstance(node, Latch) else inputs[0].schema


def arguments_never_fail(network: Network, node: Windowed | Latch) -> bool:
    """Whether a window takes in every tuple that comes; those that it refuses are dead letters."""
    schema = _window_schema(network, node)
    calls = [call for split in aggregations(network, node) for call in split.calls]
    return not any(call.argument is not None and can_fail(bind(call.argument, schema)) for call in calls)


def results_never_fail(network: Network, node: Windowed | Latch) -> bool:
    """Whether every window that closes gives a row.

    A sum of BIGINT may overflow; one of INT would need 2**32 tuples. The edges of a window may lie before the
    year 1 or behind the year 9999.
    """
    schema = _window_schema(network, node)
    keys = [Column(key, schema.type_of(key)) for key in network.input_types(node.name)[0].keys]
    for split in aggregations(network, node):
        for call in split.calls:
            if call.function in ("window_start", "window_end"):
                return False
            if call.function == "sum" and bind(str(call.argument), schema).type == "BIGINT":
                return False
        if can_fail(bind(split.result, split.schema(keys))):
            return False
    return True


def refuses_none(network: Network, node: Node) -> bool:
    """Whether a box with state makes no dead letter but for tuples that come too late."""
    if isinstance(node, Windowed | Latch):
        if node.function is not None:
            return False
        return arguments_never_fail(network, node) and results_never_fail(network, node)
    if isinstance(node, Join):
        return join_never_fails(network, node)
    return isinstance(node, Resample)


def join_never_fails(network: Network, node: Join) -> bool:
    """Whether a join refuses no pair, and loses none.

    With a bound on memory, which pairs are lost depends on which other tuples are there.
    """
    bounded = node.spread and node.diffusion.memory is not None
    if bounded:
        return False
    return not node.predicate or not can_fail(bind(node.predicate, network.types[node.name].schema))


def exact_keys(schema: Schema, keys: Iterable[str]) -> bool:
    """Whether equal values of these columns are the same value.

    0.0 and -0.0 are equal, and one group; but an expression can tell them apart.
    """
    return not any(schema.type_of(key) in ("FLOAT", "DOUBLE") for key in keys)


def depends_on_order(network: Network, node: Node) -> bool:
    """Whether the answer depends on the order of tuples, not only on which there are."""
    if isinstance(node, Windowed | Latch):
        if isinstance(node, Latch) and node.function is not None:
            return True
        # Which tuples share a count window, and which is first or last, depends on their order.
        ordered = isinstance(node, Windowed) and node.ordered
        calls = [call.function for split in aggregations(network, node) for call in split.calls]
        return (
            ordered or node.size is None or hasattr(node.size, "tuples") or bool({"first", "last"} & {*calls})
        )
    return isinstance(node, Resample | ColumnLatch)
