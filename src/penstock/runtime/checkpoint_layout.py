"""Where a sub-network lives in the checkpoint: under the name it first had.

Sub-networks are named after their first end, which changes when an end is added or removed. The read position
is stored under the first name, so that name is kept: under a new one the sub-network would read everything
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from penstock.model.boxes import Node, Trait
from penstock.model.errors import NetworkError
from penstock.rewrite.subnetworks import SubNetwork


class SubnetworkHome(TypedDict):
    """The record of a sub-network."""

    ends: list[str]  # points and outputs, including former ones
    inputs: list[str]
    boxes: list[str]  # the stateful ones


_HINT = "put it back; or start with a new checkpoint and new places for the outputs"


def ends_of(sub: SubNetwork) -> list[str]:
    """The points and outputs of a sub-network."""
    return [*sub.points, *sub.outputs]


def settle(
    subs: Sequence[SubNetwork], known: Mapping[str, SubnetworkHome], *, moved: bool = False
) -> tuple[SubNetwork, ...]:
    """Give each sub-network the name of the home it already has, and each new one a free name.

    Two homes cannot become one, nor one two: their read positions would be unknown. `moved`: the change of
    inputs is intended.
    """
    taken: dict[str, SubNetwork] = {}
    for sub in subs:
        owner = _owner(sub, known, taken)
        if owner is not None and not moved:
            _check_inputs(sub, known[owner])
        taken[owner or _free(sub.name, {*known, *taken})] = sub
    return tuple(replace(sub, name=name) for name, sub in taken.items())


def _owner(
    sub: SubNetwork, known: Mapping[str, SubnetworkHome], taken: Mapping[str, SubNetwork]
) -> str | None:
    """The home that a sub-network already has; None if it is new."""
    mine = {*ends_of(sub), *_stateful(sub)}
    owners = [name for name, home in known.items() if mine & {*home["ends"], *home["boxes"]}]
    if len(owners) > 1:
        raise _regrouped(sub, known, owners, f"{_names(owners)} ran apart and would now run as one")
    if owners and owners[0] in taken:
        both = _names([ends_of(taken[owners[0]])[0], ends_of(sub)[0]])
        raise _regrouped(sub, known, owners, f"{both} ran as one and would now run apart")
    return owners[0] if owners else None


def homes_of(subs: Sequence[SubNetwork], known: Mapping[str, SubnetworkHome]) -> dict[str, SubnetworkHome]:
    """The homes to record. An end that left may come back; its rows so far have been written."""
    homes = dict(known)
    for sub in subs:
        former = known[sub.name]["ends"] if sub.name in known else []
        ends = list(dict.fromkeys([*ends_of(sub), *former]))
        homes[sub.name] = SubnetworkHome(ends=ends, inputs=list(sub.inputs), boxes=_stateful(sub))
    return homes


def _stateful(sub: SubNetwork) -> list[str]:
    return [node.name for node in sub.network.nodes.values() if Trait.STATEFUL in node.traits]


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _check_inputs(sub: SubNetwork, home: SubnetworkHome) -> None:
    """Allow an input to be added or removed, but not swapped.

    A swap is refused: the outputs would get the new input from its beginning, in place of the old one.
    """
    gone, new = set(home["inputs"]) - set(sub.inputs), set(sub.inputs) - set(home["inputs"])
    if not gone or not new:
        return
    end = _first_end(sub)
    before, after = _names(sorted(gone)), _names(sorted(new))
    raise NetworkError(
        f"it has read {before} so far and would now read {after} from the beginning",
        box=end.name,
        where=end.where,
        found=f"inputs: {', '.join(sub.inputs)}",
        expected=f"inputs: {', '.join(home['inputs'])}",
        hint=f"{_HINT}; or, while running, Runtime.replace(network, fresh_state=True)",
    )


def _regrouped(
    sub: SubNetwork, known: Mapping[str, SubnetworkHome], owners: list[str], problem: str
) -> NetworkError:
    end = _first_end(sub)
    return NetworkError(
        f"the checkpoint does not fit: {problem}",
        box=end.name,
        where=end.where,
        found=f"together: {', '.join(ends_of(sub))}",
        expected="; ".join(f"together: {', '.join(known[name]['ends'])}" for name in owners),
        hint=_HINT,
    )


def _first_end(sub: SubNetwork) -> Node:
    return sub.network.nodes[ends_of(sub)[0]]


def _names(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
