"""One line that says what a node does: its argument list (Aurora, Sect. 2.3, A34), for all pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Never, cast

from penstock.model.boxes import (
    ColumnLatch,
    ConnectionPoint,
    Drop,
    Filter,
    GroupBy,
    Join,
    Latch,
    Map,
    Node,
    Output,
    Resample,
    Slide,
    Source,
    Tumble,
    Union,
    View,
    Windowed,
)
from penstock.model.durations import format_duration
from penstock.model.join_distribution import EVEN


def argument(node: Node) -> str:
    """What the node does, without its kind and name.

    >>> from penstock.model.boxes import Drop
    >>> argument(Drop(name="d", rate=0.25))
    '25 % of the tuples'
    """
    arguments = cast("Callable[[Node], str] | None", _ARGUMENTS.get(type(node)))
    return "" if arguments is None else arguments(node)


def kind(node: Node) -> str:
    """The kind as people say it; a map that keeps no other column is a select."""
    if isinstance(node, Map) and node.function is None and not node.keep:
        return "select"
    return node.kind.replace("_", " ")


def _source(node: Source) -> str:
    parts = [node.format.text()]
    if node.timestamp:
        parts.append(f"timestamp {node.timestamp}")
        parts.append(f"lateness {format_duration(node.lateness) if node.lateness else 0}")
    if node.whole:
        parts.append("whole")
    if node.stays is not None:
        parts.append("stays" if node.stays else "does not stay")
    return ", ".join(parts)


def _filter(node: Filter) -> str:
    return node.predicate if node.function is None else node.function.name


def _map(node: Map) -> str:
    if node.function is not None:
        return f"{node.function.name} -> {node.produces.ddl()}"
    return ", ".join(name if name == text else f"{name} = {text}" for name, text in node.columns)


def _computed(node: Windowed | Latch) -> str:
    if node.function is not None:
        return f"{node.function.name} -> {node.produces.ddl()}"
    return ", ".join(f"{name} = {text}" for name, text in node.aggregates)


def _window(node: Windowed) -> str:
    every = f" every {node.every}" if isinstance(node, Slide) else ""
    stamp = f", stamp {node.stamp}" if node.stamp != "earliest" else ""
    return f"{node.size}{every}: {_computed(node)}{stamp}"


def _latch(node: Latch) -> str:
    return f"{node.size}: {_computed(node)}" if node.size is not None else _computed(node)


def _resample(node: Resample) -> str:
    return (
        f"every {format_duration(node.every)}, limit {format_duration(node.limit)}: {', '.join(node.columns)}"
    )


def _join(node: Join) -> str:
    keys = ", ".join(a if a == b else f"{a} = {b}" for a, b in node.on)
    after, before = (format_duration(length) for length in node.within)
    parts = [f"on {keys}"] if keys else []
    parts.append(f"within {after}" if after == before else f"within {after} after, {before} before")
    parts += [f"where {node.predicate}"] if node.predicate else []
    said = node.spread or node.servers is not None
    return ", ".join(parts) + (f"; {_spread(node)}" if said else "")


def _spread(node: Join) -> str:
    """How the join is spread, in words."""
    options = node.diffusion
    if node.distribution == "hash":
        return f"hash over {node.servers} servers" if node.on else "one server: no key to hash"
    over = f"over {node.servers} servers" if node.servers else "over all partitions"
    word = {"higher": "the faster stream", "lower": "the slower stream"}.get(options.master, options.master)
    parts = [f"diffused {over}, master {word}, sampled every {format_duration(options.sample)}"]
    parts += ["round robin"] if options.placement == "round_robin" else []
    if options.memory is not None:
        parts.append(f"{options.memory} tuples a server, when full {options.when_full}")
    if node.distribution == "diffused":
        return ", ".join(parts)
    hot = f"{options.threshold:.0%}" if options.threshold is not None else f"{EVEN:g} times its even share"
    start = f"hash until a server has more than {hot} of the load" if node.on else "no key to hash"
    return f"auto: {start}, then {', '.join(parts)}"


def _point(node: ConnectionPoint) -> str:
    return f"keeps {format_duration(node.keep)}" + (f", key {node.key}" if node.key else "")


_ARGUMENTS: Mapping[type[Node], Callable[[Never], str]] = {
    Source: _source,
    Filter: _filter,
    Map: _map,
    Drop: lambda node: f"{node.rate * 100:g} % of the tuples",
    Union: lambda node: f"{len(node.inputs)} streams",
    GroupBy: lambda node: ", ".join(node.keys),
    Tumble: _window,
    Slide: _window,
    Latch: _latch,
    ColumnLatch: lambda node: f"{node.logic.name} -> {node.produces.ddl()}",
    Resample: _resample,
    Join: _join,
    ConnectionPoint: _point,
    View: lambda node: f"keeps {format_duration(node.keep)}",
    Output: lambda node: node.to.text(),
}
