"""What valves kept of what was due at each end of a sub-network in one train, by counted tuples (A83)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.engine.contract.valve import ARROW, Valve, ValveFlow
from penstock.model.boxes import Union
from penstock.rewrite.subnetworks import SubNetwork


def kept_shares(sub: SubNetwork, flows: Mapping[str, ValveFlow]) -> dict[str, float]:
    """By output and point, 0..1; empty if no valve shed anything.

    What a valve keeps is counted at its place, so along a way the parts multiply. Of several inputs the one
    that lost most counts, because a join or a window is as good as its worst side; a union is as good as
    its inputs are on average.
    """
    if not any(flow.shed for flow in flows.values()):
        return {}
    return _along(sub, {at: _kept(flow) for at, flow in flows.items()})


def kept_worth(sub: SubNetwork, flows: Mapping[str, ValveFlow], valves: Iterable[Valve]) -> dict[str, float]:
    """The same by what tuples are worth: a valve that drops by values sheds those that are worth less.

    How many were shed is counted; what they are worth, control has estimated when it chose them. Empty if no
    valve sheds by values.
    """
    worth = {valve.at: valve.worth for valve in valves if valve.grain == "values"}
    if not any(flows[at].shed for at in worth if at in flows):
        return {}
    kept = {at: max(0.0, 1 - worth.get(at, 1.0) * (1 - _kept(flow))) for at, flow in flows.items()}
    return _along(sub, kept)


def _along(sub: SubNetwork, kept: Mapping[str, float]) -> dict[str, float]:
    """What is kept at each end, from what is kept at each place."""
    shares: dict[str, float] = {}
    for name, node in sub.network.nodes.items():
        above = [shares[up] * kept.get(f"{up}{ARROW}{name}", 1.0) for up in node.inputs]
        if name in sub.inputs or not above:
            shares[name] = kept.get(name, 1.0)
        else:
            shares[name] = sum(above) / len(above) if isinstance(node, Union) else min(above)
    return {name: shares[name] for name in (*sub.outputs, *sub.points)}


def _kept(flow: ValveFlow) -> float:
    return 1.0 if not flow.offered else 1 - flow.shed / flow.offered
