"""What the state of each stateful box depends on: configuration, input, function, and where it is stored.

A checkpoint keeps these facts. State whose facts differ from those of the current network must not be used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields

from penstock.engine.spark.entry.points import pushed_ranges
from penstock.engine.spark.layout.plan import Layout, Stage, fed_alone, lay_out, mixes_numbers
from penstock.model.boxes import Filter, Join, Node, Output, Source, Trait
from penstock.model.types import Schema
from penstock.model.user_functions import Function
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, reaching
from penstock.rewrite.texts import all_of
from penstock.runtime.fingerprint import fingerprint

Fact = str | int | list[str] | dict[str, str]
BoxFacts = dict[str, dict[str, Fact]]
"""Box -> name of a fact -> fact, in a form that JSON can carry."""

_NOT_CONFIGURATION = ("name", "where", "about", "inputs", "origin", "twins", "shed_by")
_SPREAD = ("distribution", "servers", "diffusion")


def facts(subs: Iterable[SubNetwork], partitions: int, *, fuse: bool) -> BoxFacts:
    """The facts of all stateful boxes."""
    known: BoxFacts = {}
    for sub in subs:
        layout = lay_out(sub, fuse=fuse)
        for name, stage in layout.home.items():
            node = sub.network.nodes[name]
            if Trait.STATEFUL in node.traits:
                # The hash decides where the state lies. A single entry is spread by Spark's hash of its keys,
                # several by a hash of their own.
                entries = "one" if len(stage.entries) == 1 else "several"
                known[name] = {
                    "place": f"{sub.name}/{stage.name}",
                    "partitions": partitions,
                    "entries": entries,
                    "inputs": [f"{t.schema.ddl()} | {t.keys}" for t in sub.network.input_types(name)],
                    **configuration(node),
                    **_spread_by(sub, layout, stage),
                    **_looked_up(sub, node),
                }
    return known


def _spread_by(sub: SubNetwork, layout: Layout, stage: Stage) -> dict[str, Fact]:
    """How tuples find their partition where that was once otherwise: state from then lies elsewhere."""
    if layout.rooted and mixes_numbers(sub.network, stage):
        return {"spread by": "numbers as doubles"}
    if stage.spread and fed_alone(sub):
        return {"spread by": "its roles"}
    return {}


def _looked_up(sub: SubNetwork, node: Node) -> dict[str, Fact]:
    """What a join looks up in points: key ranges, or what filters say that the optimizer put in between.

    The join has seen only those keys. With others its state would lack partners.
    """
    if not isinstance(node, Join):
        return {}
    points = [
        (name, getattr(sub.network.nodes[name], "key", None)) for name in node.inputs if name in sub.inputs
    ]
    ranges = {name: pushed_ranges(sub.network, name, key) for name, key in points if key is not None}
    found = {name: str(each) for name, each in ranges.items() if each is not None}
    for side, name in enumerate(node.inputs):
        point, put_in = _put_in_front(sub, name)
        found |= {f"{point}, input {side}": all_of(put_in)} if put_in else {}
    return {"looked up": found} if found else {}


def _put_in_front(sub: SubNetwork, name: str) -> tuple[str, list[str]]:
    """Where an input of a box comes from, and the predicates of filters on the way that nobody wrote."""
    put_in, node = [], sub.network.nodes[name]
    while node.is_box and Trait.STATELESS in node.traits and len(node.inputs) == 1:
        if isinstance(node, Filter) and not {*node.origins} <= sub.as_written.nodes.keys():
            put_in.append(node.predicate)
        node = sub.network.nodes[node.inputs[0]]
    return node.name, put_in


def configuration(node: Node) -> dict[str, Fact]:
    """What a node is told, in words: two of the same configuration do the same."""
    by_hash = isinstance(node, Join) and not node.spread  # such a join says nothing about servers
    skipped = {*_NOT_CONFIGURATION, *(_SPREAD if by_hash else ())}
    options = {f.name: _text(getattr(node, f.name)) for f in fields(node) if f.name not in skipped}
    return {**options, "kind": node.kind}


def _text(value: object) -> str:
    if isinstance(value, Function):
        return f"{value.name} #{fingerprint(value.call)}"
    return value.ddl() if isinstance(value, Schema) else str(value)


def made_by(sub: SubNetwork) -> str:
    """Identify all that the state of a sub-network depends on, stateless boxes and sources included.

    Trains may be run again to rebuild state only with boxes of the same identity. Where a source lies does
    not matter: a ticket names its slices.
    """
    nodes = sub.network.nodes
    stateful = [name for name, node in nodes.items() if Trait.STATEFUL in node.traits]
    names = sorted(reaching(sub.network, stateful))
    described = [(name, nodes[name].inputs, _identity(nodes[name])) for name in names]
    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]


def _identity(node: Node) -> object:
    if isinstance(node, Source):
        options = {name: _text(value) for name, value in vars(node.format).items() if name != "path"}
        return node.schema.ddl(), node.timestamp, node.lateness, node.whole, node.format.name, options
    return sorted(configuration(node).items(), key=str)


def same(one: Network, other: Network) -> bool:
    """Whether nodes, the code of their functions, and the lists and callbacks at their ends are the same."""
    return one == other and all(_same_code(one.nodes[name], node) for name, node in other.nodes.items())


def _same_code(one: Node, other: Node) -> bool:
    if isinstance(one, Output) and one.to.in_process:
        return one.to is getattr(other, "to", None)
    functions = [f.name for f in fields(one) if isinstance(getattr(one, f.name), Function)]
    return all(_text(getattr(one, name)) == _text(getattr(other, name)) for name in functions)
