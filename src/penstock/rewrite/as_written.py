"""Counts under the names of the boxes as written, whatever form of the network made them (`origin`).

A box may have been merged with others, copied, or put in by a rule. Where two boxes run as one, what passes
between them is not counted; it is then estimated and marked as such. So is a box of which a part stands in
front of others and a part behind them: what lies between is not its own work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from penstock.model.boxes import Node
from penstock.model.writing.network import Network

Counts = Mapping[str, int]
ESTIMATED = "estimated"


@dataclass(frozen=True)
class Share:
    """The part of a running box that is the work of one box as written.

    `begin` and `end`: from where to where in the running box, 0 to 1. `first`, `last`: no other part of the
    same box as written stands in front of it, or behind it.
    """

    box: str
    begin: Fraction = Fraction(0)
    end: Fraction = Fraction(1)
    first: bool = True
    last: bool = True


class WrittenNames:
    """Which boxes as written the boxes of another form stand for."""

    def __init__(self, form: Network, written: Network) -> None:
        above: dict[str, set[str]] = {}
        holders: dict[str, set[str]] = {}  # by box as written
        for node in form.nodes.values():
            above[node.name] = {*node.inputs}.union(*(above[tail] for tail in node.inputs))
            for origin in node.origins:
                holders.setdefault(origin, set()).add(node.name)
        self.shares = {node.name: _shares(written, node, above, holders) for node in form.nodes.values()}

    def box(self, name: str) -> str:
        """The box as written to which a message about this one belongs."""
        shares = self.shares.get(name, [])
        return shares[-1].box if shares else name

    def counts(self, counts: Mapping[str, Counts]) -> dict[str, dict[str, int]]:
        """Counts by box as written. Boxes that a rule put in, such as projections, have none."""
        folded: dict[str, dict[str, int]] = {}
        for name, mine in counts.items():
            for share in self.shares.get(name, [Share(name)]):
                _add(folded.setdefault(share.box, {}), _part(mine, share))
        return folded

    def costs(self, costs: Mapping[str, float]) -> dict[str, float]:
        """CPU or wall time by box as written; boxes that run as one divide it evenly."""
        folded: dict[str, float] = {}
        for name, seconds in costs.items():
            shares = self.shares.get(name, [Share(name)])
            for share in shares:
                folded[share.box] = folded.get(share.box, 0.0) + seconds / len(shares)
        return folded


def _shares(
    written: Network, node: Node, above: Mapping[str, set[str]], holders: Mapping[str, set[str]]
) -> list[Share]:
    shares = []
    for name, begin, end in sorted(node.stretches, key=lambda stretch: stretch.end):
        # A box that was pushed in parts takes its tuples in at the first part and lets them out at the last.
        # A twin was written like the boxes whose work it would do, so it has its parts where they have them.
        front = holders[node.origins[floor(begin * len(node.origins))]]
        back = holders[node.origins[ceil(end * len(node.origins)) - 1]]
        first = front.isdisjoint(above[node.name])
        last = not any(node.name in above[other] for other in back)
        if name in written.nodes:
            shares.append(Share(name, begin, end, first=first, last=last))
    return shares


def _part(mine: Counts, share: Share) -> dict[str, int]:
    """What belongs to one of the boxes in a box: it sees what those before it are thought to let through."""
    came, left = mine.get("in", 0), mine.get("out", 0)
    # What passes between boxes that run as one is not counted. Each is thought to let the same share through,
    # so that all of them together give what was measured.
    passed = (left / came) if came else 0.0
    part = {"in": round(came * passed ** float(share.begin)) if share.first else 0}
    part["out"] = round(came * passed ** float(share.end)) if share.last else 0
    if share.end == 1:
        part |= {key: value for key, value in mine.items() if key not in ("in", "out")}
    if share.begin > 0 or share.end < 1 or not (share.first and share.last):
        part[ESTIMATED] = 1
    return part


def _add(total: dict[str, int], part: Counts) -> None:
    for key, value in part.items():
        total[key] = 1 if key == ESTIMATED else total.get(key, 0) + value
