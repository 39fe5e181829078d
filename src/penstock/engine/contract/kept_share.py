"""What valves kept of what was due at each end of a sub-network in one train, by counted tuples (A83)."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.engine.contract.valve import ARROW, ValveFlow
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
    shares: dict[str, float] = {}
    for name, node in sub.network.nodes.items():
        above = [shares[up] * _kept(flows.get(f"{up}{ARROW}{name}")) for up in node.inputs]
        if name in sub.inputs or not above:
            shares[name] = _kept(flows.get(name))
        else:
            shares[name] = sum(above) / len(above) if isinstance(node, Union) else min(above)
    return {name: shares[name] for name in (*sub.outputs, *sub.points)}


def _kept(flow: ValveFlow | None) -> float:
    return 1.0 if flow is None or not flow.offered else 1 - flow.shed / flow.offered
