"""What reading tasks do right behind a source: filter its tuples, and leave out columns that nobody reads.

Tuples that tasks decode are Arrow tables in Python. Each column of each that goes on to the JVM costs, even
if the first box there throws the tuple away. So the filters next to a source run where it is read, and only
columns that some box reads go on. Every value is decoded all the same: a row with a malformed one is refused,
whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.arrow.boxes.stateless import FilterLogic
from penstock.engine.spark.layout.expressions import to_spark
from penstock.engine.spark.layout.plan import Layout, behind
from penstock.engine.spark.layout.preaggregate import columns_read, may_preaggregate
from penstock.model.boxes import Drop, Filter, GroupBy, Map, Node, Union
from penstock.model.expressions.expression import columns_of
from penstock.model.types import Schema, StreamType
from penstock.model.writing.network import Network

Names = frozenset[str]


@dataclass(frozen=True)
class Early:
    """The filters that run where a source is read, in order, and the columns that go no further."""

    filters: tuple[Filter, ...] = ()
    type: StreamType | None = None
    unread: Names = frozenset()

    def narrow(self, schema: Schema) -> Schema:
        """The columns that go on."""
        return Schema(tuple(column for column in schema if column.name not in self.unread))

    def passed(self, tuples: pa.Table) -> tuple[pa.Table, dict[str, int]]:
        """The tuples that pass all filters, and how many each filter removed."""
        removed: dict[str, int] = {}
        for box in self.filters:
            assert self.type is not None
            logic = FilterLogic(box, [self.type], self.type)
            left = logic.process([tuples], (), final=False).out
            removed[box.name] = tuples.num_rows - left.num_rows
            tuples = left
        return tuples, removed


NOTHING_EARLY = Early()


def early_of(net: Network, layout: Layout, source: str) -> Early:
    """What can be done where a source is read.

    Only filters that refuse no tuple, one behind the other, with no other reader in between.
    """
    filters: list[Filter] = []
    at, type_ = source, net.types[source]
    while isinstance(node := only_reader(net, at), Filter) and node.name in layout.native:
        if to_spark(node.predicate, type_.schema).failure is not None:
            break
        filters.append(node)
        at = node.name
    read = _columns_read(net, layout)[at]
    return Early(tuple(filters), type_, frozenset(name for name in type_.schema.names if name not in read))


def only_reader(net: Network, name: str) -> Filter | Map | None:
    """The filter or map of expressions that is the only reader of a node's tuples."""
    readers = _readers(net, name)
    if len(readers) != 1 or not isinstance(readers[0], Filter | Map) or readers[0].function is not None:
        return None
    return readers[0]


def _readers(net: Network, name: str) -> list[Node]:
    return [node for node in net.nodes.values() if any(behind(net, up) == name for up in node.inputs)]


def _columns_read(net: Network, layout: Layout) -> dict[str, Names]:
    """The columns of each node's tuples that something behind it reads.

    Stages and whatever leaves take all that they are given: to give them less is the optimizer's work. A box
    that may refuse a tuple reads all, for the letter.
    """
    read: dict[str, Names] = dict.fromkeys(net.nodes, frozenset())
    for node in reversed(list(net.nodes.values())):
        for name in {behind(net, up) for up in node.inputs}:
            read[name] |= frozenset(_read_by(net, layout, name, node, read[node.name]))
    return read


def _read_by(net: Network, layout: Layout, name: str, node: Node, behind_it: Names) -> Iterable[str]:
    schema = net.types[name].schema
    if node.name not in layout.native:
        return _read_by_stage(net, layout, name, node)
    match node:
        case Filter():
            fails = to_spark(node.predicate, schema).failure is not None
            return schema.names if fails else {*behind_it, *columns_of(node.predicate)}
        case Map():
            if any(to_spark(text, schema).failure is not None for _, text in node.columns):
                return schema.names
            computed = {each for _, text in node.columns for each in columns_of(text)}
            produced = {column for column, _ in node.columns}
            return computed | (behind_it - produced if node.keep else frozenset())
        case GroupBy():
            return {*behind_it, *node.keys}
        case Drop() | Union():
            return behind_it
    return schema.names


def _read_by_stage(net: Network, layout: Layout, name: str, node: Node) -> Iterable[str]:
    stage = layout.home.get(node.name)
    entries = [e for e in stage.entries if e.head == node.name and e.tail == name] if stage else []
    if entries and all(may_preaggregate(net, layout, entry) for entry in entries):
        return {each for entry in entries for each in columns_read(net, entry)}
    return net.types[name].schema.names
