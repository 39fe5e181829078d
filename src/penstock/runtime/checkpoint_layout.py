"""Where a sub-network lives in the checkpoint: it keeps the place in which its outputs and points have always lived.

Sub-networks are named after their first end, which changes when an end is added or removed. Their place in the
input lies under the name they first had, so that name is kept: with another one they would read everything again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.model.boxes import Node, Trait
from penstock.model.errors import NetworkError
from penstock.rewrite.subnetworks import SubNetwork

SubnetworkHome = dict[str, Any]
"""What is written down of a sub-network: its `ends` (points and outputs, also former ones), `inputs`, stateful `boxes`."""

_HINT = "put it back; or start with a new checkpoint and new places for the outputs"


def ends_of(sub: SubNetwork) -> list[str]:
    return [*sub.points, *sub.outputs]


def settle(
    subs: tuple[SubNetwork, ...], known: Mapping[str, SubnetworkHome], *, moved: bool = False
) -> tuple[SubNetwork, ...]:
    """The sub-networks under the names of the places they already have; new ones under a name that is free.

    Two places cannot become one, nor one two: how far each has read would be unknown. `moved`: other inputs are meant.
    """
    settled: list[SubNetwork] = []
    taken: dict[str, SubNetwork] = {}
    for sub in subs:
        mine = {*ends_of(sub), *_stateful(sub)}
        owners = [name for name, home in known.items() if mine & {*home["ends"], *home["boxes"]}]
        if len(owners) > 1:
            raise _regrouped(sub, known, owners, f"{_names(owners)} ran apart and would now run as one")
        if owners and owners[0] in taken:
            both = f"{_names([ends_of(taken[owners[0]])[0], ends_of(sub)[0]])} ran as one and would now run apart"
            raise _regrouped(sub, known, owners, both)
        if owners and not moved:
            _same_inputs(sub, known[owners[0]])
        name = owners[0] if owners else _free(sub.name, {*known, *taken})
        taken[name] = sub
        settled.append(replace(sub, name=name))
    return tuple(settled)


def homes_of(subs: tuple[SubNetwork, ...], known: Mapping[str, SubnetworkHome]) -> dict[str, SubnetworkHome]:
    """What to write down. An end that left may come back; its rows until now are out already."""
    made = dict(known)
    for sub in subs:
        former = known.get(sub.name, {"ends": []})["ends"]
        ends = list(dict.fromkeys([*ends_of(sub), *former]))
        made[sub.name] = {"ends": ends, "inputs": list(sub.inputs), "boxes": _stateful(sub)}
    return made


def _stateful(sub: SubNetwork) -> list[str]:
    return [node.name for node in sub.network.nodes.values() if Trait.STATEFUL in node.traits]


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _same_inputs(sub: SubNetwork, home: SubnetworkHome) -> None:
    """An input may come or go; one in place of another would be read from its beginning by outputs that had it before."""
    gone, new = set(home["inputs"]) - set(sub.inputs), set(sub.inputs) - set(home["inputs"])
    if gone and new:
        end = _node(sub)
        raise NetworkError(
            f"it has read {_names(sorted(gone))} so far and would now read {_names(sorted(new))} from the beginning",
            box=end.name, where=end.where, found=f"inputs: {', '.join(sub.inputs)}",
            expected=f"inputs: {', '.join(home['inputs'])}",
            hint=f"{_HINT}; or, while running, Runtime.replace(network, fresh_state=True)",
        )  # fmt: skip


def _regrouped(
    sub: SubNetwork, known: Mapping[str, SubnetworkHome], owners: list[str], problem: str
) -> NetworkError:
    end = _node(sub)
    return NetworkError(
        f"the checkpoint does not fit: {problem}",
        box=end.name, where=end.where, found=f"together: {', '.join(ends_of(sub))}",
        expected="; ".join(f"together: {', '.join(known[name]['ends'])}" for name in owners), hint=_HINT,
    )  # fmt: skip


def _node(sub: SubNetwork) -> Node:
    return sub.network.nodes[ends_of(sub)[0]]


def _names(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
