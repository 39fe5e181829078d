"""Views attached while the network runs: they become part of it, and leave no trace when detached."""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from penstock.model.errors import NetworkError, caller
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.points.manifest import point_path


def at_free_names(sub: SubNetwork, taken: Container[str]) -> SubNetwork:
    """Put the query's name in front of the names of its boxes, so that figures of two queries stay apart.

    Its output, view and points keep theirs. The names do not depend on which other queries run, or a query
    could not resume; only if a name is `taken` even so, a number follows.
    """
    ends = {*sub.inputs, *sub.points, sub.name}
    for name in [name for name in sub.network.nodes if name not in ends]:
        number = 1
        while (free := f"{sub.name}_{name}" + (f"_{number}" if number > 1 else "")) in taken:
            number += 1
        sub.network.rename(name, free)
    return sub


def with_views(network: Network, attached: Mapping[str, SubNetwork]) -> Network:
    """The network together with the views attached to it.

    Refuses a view attached to a point that no longer exists.
    """
    grown = network
    for sub in attached.values():
        for point in sub.inputs:
            if point not in grown.points:
                raise NetworkError(
                    f"'{sub.name}' is attached to '{point}', which the network does not have any more",
                    box=sub.name,
                    where=caller(),
                    hint=f"detach it first: detach('{sub.name}')",
                )
        if sub.points:
            own = [node for node in sub.network.nodes.values() if node.name not in sub.inputs]
            grown = Network.of(
                grown.name, [*grown.nodes.values(), *own], groups=grown.groups, control=grown.control
            )
    return grown


def without_view(network: Network, view: SubNetwork) -> Network:
    """The network without the boxes of an attached view."""
    gone = set(view.network.nodes) - set(view.inputs)
    nodes = [node for node in network.nodes.values() if node.name not in gone]
    return Network.of(network.name, nodes, groups=network.groups, control=network.control)


def must_not_be_read(sub: SubNetwork, others: Iterable[SubNetwork]) -> None:
    """Refuse to remove a point that another sub-network reads."""
    for other in others:
        read = set(sub.points) & set(other.inputs)
        if read and other is not sub:
            hint = f"detach that first: detach('{other.name}')"
            raise NetworkError(f"'{other.name}' reads '{min(read)}'", box=sub.name, where=caller(), hint=hint)


def delete_point(checkpoint: Path, name: str) -> None:
    """Delete what a point or view has retained, once its only writer is gone for good."""
    shutil.rmtree(point_path(checkpoint, name), ignore_errors=True)
