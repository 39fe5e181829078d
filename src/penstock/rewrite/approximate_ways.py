"""Which answers of an approximate output can get an estimate of their error (A08): count, sum and avg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as sql

from penstock.model.boxes import Trait, Windowed
from penstock.model.durations import Time
from penstock.model.types import NUMERIC
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork

COUNT, SUM, AVG = "count", "sum", "avg"


@dataclass(frozen=True)
class Estimated:
    """One answer column: count, sum or avg, and the column that it is about."""

    kind: str
    column: str = ""


@dataclass(frozen=True)
class ApproximateWay:
    """An output behind time windows. `box`: of the windows; `tail`: whose tuples enter it; sizes in us."""

    output: str
    box: str
    tail: str
    size: int
    every: int
    answers: Mapping[str, Estimated]


def approximate_ways(sub: SubNetwork) -> tuple[ApproximateWay, ...]:
    """Those of the outputs that say `approximate: true`, as far as one box with windows makes the answers."""
    return tuple(_ways(sub))


def _ways(sub: SubNetwork) -> Iterator[ApproximateWay]:
    net = sub.network
    for name in sub.outputs:
        qos = net.nodes[name].qos
        box = _window_above(net, name) if qos is not None and qos.approximate else None
        if box is None or not isinstance(box.size, Time) or not isinstance(box.step, Time):
            continue
        tail = box.inputs[0]
        # A point passes on what it gets, so the samples may be taken in front of it.
        while Trait.KEPT in net.nodes[tail].traits and net.nodes[tail].inputs:
            tail = net.nodes[tail].inputs[0]
        answers = {column: each for column, text in box.aggregates if (each := _estimated(net, tail, text))}
        if answers:
            yield ApproximateWay(name, box.name, tail, box.size.us, box.step.us, answers)


def _window_above(net: Network, name: str) -> Windowed | None:
    """The box whose answers these are, with boxes without memory in between."""
    node = net.nodes[name]
    while len(node.inputs) == 1:
        node = net.nodes[node.inputs[0]]
        if isinstance(node, Windowed):
            return node if node.function is None and len(node.inputs) == 1 else None
        if Trait.STATEFUL in node.traits:
            return None
    return None


def _estimated(net: Network, tail: str, text: str) -> Estimated | None:
    tree = sqlglot.parse_one(text, read="spark")
    # From a sample nobody can tell how many distinct values are missing.
    if isinstance(tree, sql.Count):
        return None if tree.find(sql.Distinct) else Estimated(COUNT)
    if not isinstance(tree, sql.Sum | sql.Avg) or not isinstance(tree.this, sql.Column):
        return None
    column, schema = tree.this.name, net.types[tail].schema
    known = column in schema.names and schema.type_of(column) in NUMERIC
    return Estimated(SUM if isinstance(tree, sql.Sum) else AVG, column) if known else None
