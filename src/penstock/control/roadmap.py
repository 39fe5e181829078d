"""The road map: which drops to make, in which order, for any amount of CPU that has to be saved (A84-A86).

Each output o keeps a share x of its tuples. Drops are nested: the source keeps what the most demanding output
keeps. So a node works for the largest share of the outputs below it, and that is its load. From all shares at
1, the map takes step after step the move that costs least utility for the CPU it saves. A move lowers one
output, or all outputs together that make a node work: lowering one of them alone would save nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.control.semantic.bins import ValueCurve
from penstock.model.json_types import JsonObject
from penstock.model.qos import QoS

STEP = 100
"""Shares move in steps of one in so many."""
_Shares = dict[str, int]  # in steps


@dataclass(frozen=True)
class LoadNode:
    """Something that uses CPU: `load`, in CPU-seconds a second at full input, for the outputs below it.

    `paid`: outputs whose tuples are dropped behind it only, so it works on all of them.
    """

    name: str
    load: float
    outputs: frozenset[str]
    paid: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RoadRow:
    """One row of the map: the shares, the load that remains, and the utility given up so far."""

    shares: Mapping[str, float]
    load: float
    lost: float


@dataclass(frozen=True)
class RoadMap:
    """Rows from no drop to all drops; each saves more than the one before."""

    rows: tuple[RoadRow, ...]

    def row_for(self, load: float) -> RoadRow:
        """The first row whose load is small enough; the last one if none is."""
        return next((row for row in self.rows if row.load <= load + 1e-12), self.rows[-1])

    @property
    def full(self) -> float:
        """The load without any drop."""
        return self.rows[0].load

    def plain(self) -> JsonObject:
        """The JSON form."""
        return {"rows": [{"load": r.load, "lost": r.lost, "shares": dict(r.shares)} for r in self.rows]}


@dataclass
class _Walk:
    """Where the walk stands."""

    nodes: Sequence[LoadNode]
    qos: Mapping[str, QoS]
    steps: _Shares
    curves: Mapping[str, ValueCurve] = field(default_factory=dict)
    together: Mapping[str, frozenset[str]] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)  # by node, the largest share below it

    def __post_init__(self) -> None:
        self.kept = {node.name: self._largest(node, self.steps) for node in self.nodes}

    def _largest(self, node: LoadNode, steps: _Shares) -> int:
        return max((STEP if name in node.paid else steps[name] for name in node.outputs), default=0)

    def moves(self) -> list[frozenset[str]]:
        """Outputs to lower together: each alone, and those that make a node work."""
        alone = [frozenset((name,)) for name in self.lowerable]
        joint = [
            frozenset(name for name in node.outputs if self.steps[name] == self.kept[node.name])
            for node in self.nodes
        ]
        possible = {move for move in (*alone, *joint) if move and move <= self.lowerable}
        return sorted((move for move in possible if self._whole(move)), key=sorted)

    def _whole(self, move: frozenset[str]) -> bool:
        """Whether no output that stays keeps the valve open which another one needs closed further."""
        return all(
            other in move or self.steps.get(other, 0) < self.steps[name]
            for name in move
            for other in self.together.get(name, ())
        )

    @property
    def lowerable(self) -> frozenset[str]:
        return frozenset(
            n for n, s in self.steps.items() if s > 0 and n in self.qos and self.qos[n].may_be_shed
        )

    def saved(self, move: frozenset[str]) -> float:
        """CPU that no remaining output needs after a move of one step."""
        steps = {name: step - (name in move) for name, step in self.steps.items()}
        return sum(
            node.load * (self.kept[node.name] - self._largest(node, steps)) / STEP
            for node in self.nodes
            if not node.outputs.isdisjoint(move)
        )

    def costs(self, move: frozenset[str]) -> float:
        """Utility that a move of one step costs."""
        return sum(
            self._worth(name, self.steps[name]) - self._worth(name, self.steps[name] - 1) for name in move
        )

    def _worth(self, name: str, steps: int) -> float:
        share = steps / STEP
        curve = self.curves.get(name)
        return self.qos[name].weight * self.qos[name].at_share(share if curve is None else curve.at(share))

    def take(self, move: frozenset[str]) -> None:
        for name in move:
            self.steps[name] -= 1
        for node in self.nodes:
            self.kept[node.name] = self._largest(node, self.steps)

    @property
    def load(self) -> float:
        return sum(node.load * self.kept[node.name] / STEP for node in self.nodes)


def road_map(
    nodes: Sequence[LoadNode],
    qos: Mapping[str, QoS],
    curves: Mapping[str, ValueCurve] | None = None,
    together: Mapping[str, frozenset[str]] | None = None,
) -> RoadMap:
    """The map for these loads. Outputs without QoS or loss graph are never lowered.

    `curves`: of outputs whose tuples go by value. Then the share is of what tuples are worth. `together`:
    by output, those that lose what it loses: it can only be lowered below them together with them.
    """
    names = {name for node in nodes for name in node.outputs}
    walk = _Walk(nodes, qos, dict.fromkeys(sorted(names), STEP), curves or {}, together or {})
    lost = 0.0
    rows = [_row(walk, lost)]
    while (move := _best(walk)) is not None:
        lost += walk.costs(move)
        walk.take(move)
        if walk.load < rows[-1].load - 1e-12:
            rows.append(_row(walk, lost))
    return RoadMap(tuple(rows))


def _best(walk: _Walk) -> frozenset[str] | None:
    """The move with least utility for its CPU; among equals, the one that saves most.

    If several outputs that share all their work are still apart, no single move saves anything. Then the
    cheapest one is taken, so that they meet.
    """
    moves = walk.moves()
    saving = [
        (walk.costs(move) / saved, -saved, sorted(move)) for move in moves if (saved := walk.saved(move)) > 0
    ]
    if saving:
        return frozenset(min(saving)[2])
    return min(moves, key=lambda move: (walk.costs(move), sorted(move)), default=None)


def _row(walk: _Walk, lost: float) -> RoadRow:
    return RoadRow({name: steps / STEP for name, steps in walk.steps.items()}, walk.load, lost)
