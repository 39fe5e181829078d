"""What differs between two networks, in words that a person reads before an edit or after a conflict."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.boxes import Node
from penstock.model.pictures.box_line import argument, kind
from penstock.model.writing.network import Network


def differences(old: Network, new: Network) -> list[str]:
    """One sentence for each node that came, went or changed; none if the networks are the same.

    >>> import penstock as ps
    >>> def net(condition):
    ...     network = ps.Network("n")
    ...     ticks = network.source("ticks", ps.rate(5)).filter(condition, name="even")
    ...     network.output("out", ticks, to=ps.console())
    ...     return network
    >>> differences(net("value % 2 = 0"), net("value % 4 = 0"))
    ["filter 'even': value % 2 = 0 becomes value % 4 = 0"]
    """
    gone = [f"{_named(node)} is gone" for name, node in old.nodes.items() if name not in new.nodes]
    came = [f"{_said(node)} is new" for name, node in new.nodes.items() if name not in old.nodes]
    both = [name for name in new.nodes if name in old.nodes]
    changed = [line for name in both for line in _changes(old.nodes[name], new.nodes[name])]
    return [*gone, *came, *changed]


def _named(node: Node) -> str:
    return f"{kind(node)} '{node.name}'"


def _said(node: Node) -> str:
    text = argument(node)
    return f"{_named(node)} ({text})" if text else _named(node)


def _changes(old: Node, new: Node) -> Iterator[str]:
    if old == new:
        return
    named = _named(new)
    before, after = f"{kind(old)} {argument(old)}", f"{kind(new)} {argument(new)}"
    if before != after:
        yield (
            f"{named}: {argument(old)} becomes {argument(new)}"
            if kind(old) == kind(new)
            else (f"'{new.name}': {before} becomes {after}")
        )
    if old.inputs != new.inputs:
        yield f"{named} reads {_list(new.inputs)} instead of {_list(old.inputs)}"
    if old.qos != new.qos:
        yield f"{named}: its QoS changes"
    if old.about != new.about:
        yield f"{named}: its notes or its group change"
    if before == after and old.inputs == new.inputs and old.about == new.about and old.qos == new.qos:
        yield f"{named}: other options change"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"
