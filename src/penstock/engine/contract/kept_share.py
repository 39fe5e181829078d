"""What valves kept of what was due at each end of a sub-network in one train, by counted tuples (A83).

What a valve keeps is counted at its place, so along a way the parts multiply. Where streams meet, it depends
on how valves choose:

- A join makes a pair of two tuples, and both must have stayed. Valves that choose by the keys of the join, or
  by windows, choose alike on both sides. All others choose apart, so the parts multiply: of two sources at
  0.5 a quarter of the pairs is left. Of one source that is joined with itself, that is the least.
- A union is as good as its inputs are on average. A window that one of them has lost is lost for all.
- Any other box is as good as its worst input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from penstock.engine.contract.valve import ARROW, Valve, ValveFlow
from penstock.model.boxes import Join, Union
from penstock.rewrite.subnetworks import SubNetwork, reaching

_Choice = str | Valve  # a place where valves choose apart from all others, or one that stands for its equals
_Parts = Mapping[_Choice, float]  # what was kept, by choice


def kept_shares(
    sub: SubNetwork,
    flows: Mapping[str, ValveFlow],
    valves: Iterable[Valve] = (),
    above: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """By output and point, 0..1; empty if no valve shed anything. `valves`: how they chose.

    `above`: by point that is read, what valves above it have kept.
    """
    lost = {point: share for point, share in (above or {}).items() if share < 1}
    if not lost and not any(flow.shed for flow in flows.values()):
        return {}
    return _along(sub, {at: _kept(flow) for at, flow in flows.items()}, flows, _choices(valves), lost)


def kept_worth(
    sub: SubNetwork,
    flows: Mapping[str, ValveFlow],
    valves: Iterable[Valve],
    above: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The same by what tuples are worth: a valve that drops by values sheds those that are worth less.

    How many were shed is counted; what they are worth, control has estimated when it chose them. Empty if no
    valve sheds by values.
    """
    known = tuple(valves)
    worth = {valve.at: valve.worth for valve in known if valve.grain == "values"}
    if not any(flows[at].shed for at in worth if at in flows):
        return {}
    kept = {at: max(0.0, 1 - worth.get(at, 1.0) * (1 - _kept(flow))) for at, flow in flows.items()}
    return _along(sub, kept, flows, _choices(known), above or {})


def _choices(valves: Iterable[Valve]) -> dict[str, _Choice]:
    """By place, how its valve chooses, if others may choose alike; not if several stand there."""
    choices: dict[str, _Choice] = {}
    for valve in valves:
        alike = valve.grain == "windows" or (valve.grain == "keys" and bool(valve.keys))
        choice = replace(valve, at="", share=1.0, steps=()) if alike else valve.at
        choices[valve.at] = valve.at if valve.at in choices else choice
    return choices


def _along(
    sub: SubNetwork,
    kept: Mapping[str, float],
    flows: Mapping[str, ValveFlow],
    choices: Mapping[str, _Choice],
    lost: Mapping[str, float],
) -> dict[str, float]:
    """What is kept at each end, from what is kept at each place."""

    def passed(parts: _Parts, at: str) -> _Parts:
        choice = choices.get(at, at)
        return {**parts, choice: parts.get(choice, 1.0) * kept[at]} if at in kept else parts

    shares: dict[str, _Parts] = {}
    for name, node in sub.network.nodes.items():
        above = [passed(shares[up], f"{up}{ARROW}{name}") for up in node.inputs]
        if name in sub.inputs or not above:
            shares[name] = passed({f"above {name}": lost[name]} if name in lost else {}, name)
        elif isinstance(node, Union):
            shares[name] = _united(node, above, [_offered(sub, up, flows) for up in node.inputs])
        else:
            shares[name] = _joined(node, *above) if isinstance(node, Join) else min(above, key=_share)
    return {name: _share(shares[name]) for name in (*sub.outputs, *sub.points)}


def _joined(node: Join, left: _Parts, right: _Parts) -> _Parts:
    both = {
        choice: (min if _meet(node, choice) else _product)(left[choice], right[choice])
        for choice in left
        if choice in right
    }
    return {**left, **right, **both}


def _meet(node: Join, choice: _Choice) -> bool:
    """Whether the two tuples of a pair stay or go together by a choice."""
    if not isinstance(choice, Valve):
        return False
    if choice.grain == "windows":
        return max(node.within) < choice.every
    return all((key, key) in node.on for key in choice.keys)


def _united(node: Union, above: Sequence[_Parts], offered: Sequence[float | None]) -> _Parts:
    """What is kept of all inputs, weighed by what came to them where that is known of each."""
    known = [each for each in offered if each is not None]
    weights = known if len(known) == len(offered) and any(known) else [1.0] * len(above)
    windows = {choice for parts in above for choice in parts if _by_windows(choice)}
    whole = {choice: min(parts.get(choice, 1.0) for parts in above) for choice in windows}
    rest = [{choice: part for choice, part in parts.items() if choice not in windows} for parts in above]
    if all(parts.keys() == rest[0].keys() for parts in rest):
        return {**whole, **{c: _mean([parts[c] for parts in rest], weights) for c in rest[0]}}
    return {**whole, node.name: _mean([_share(parts) for parts in rest], weights)}


def _by_windows(choice: _Choice) -> bool:
    return isinstance(choice, Valve) and choice.grain == "windows"


def _offered(sub: SubNetwork, node: str, flows: Mapping[str, ValveFlow]) -> float | None:
    """The tuples that came to the inputs above a node; None if it is not known of each."""
    above = [name for name in sub.inputs if name in reaching(sub.network, [node])]
    return sum(flows[name].offered for name in above) if all(name in flows for name in above) else None


def _mean(shares: Sequence[float], weights: Sequence[float]) -> float:
    return sum(map(_product, shares, weights)) / sum(weights)


def _product(one: float, other: float) -> float:
    return one * other


def _share(parts: _Parts) -> float:
    return prod(parts.values())


def _kept(flow: ValveFlow) -> float:
    return 1.0 if not flow.offered else 1 - flow.shed / flow.offered
