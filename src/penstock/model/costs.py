"""What boxes and sub-networks cost, as measured: the frozen form that optimizer, analysis and shedder read.

`control/costs.py` fits these figures to the trains in a catalog. None always means unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """Seconds for a train of n tuples: `fixed` for the train, and `per_tuple` for each of them.

    >>> Line(fixed=0.2, per_tuple=0.001).at(100)
    0.30000000000000004
    """

    fixed: float = 0.0
    per_tuple: float = 0.0

    def at(self, tuples: float) -> float:
        """The seconds of a train with so many tuples."""
        return self.fixed + self.per_tuple * tuples

    def length(self, seconds: float) -> int | None:
        """The most tuples that take so many seconds; None if they cost nothing, 0 if not even one fits.

        >>> Line(0.2, 0.001).length(0.5), Line(0.2, 0.001).length(0.1), Line(0.2).length(0.5)
        (300, 0, None)
        """
        left = seconds - self.fixed
        if left <= 0:
            return 0
        return int(left / self.per_tuple + 1e-9) if self.per_tuple > 0 else None


@dataclass(frozen=True)
class MeasuredBox:
    """One box, from trains in which its tuples were counted; estimates never enter.

    `cpu`: CPU-seconds of a train by the tuples that came in. It is None for a native box: Spark compiles it
    into one loop with its neighbours, so only their sum is known, see MeasuredSubnetwork.
    """

    box: str
    subnetwork: str = ""
    trains: int = 0
    tuples_in: int = 0
    tuples_out: int = 0
    cpu: Line | None = None

    @property
    def selectivity(self) -> float | None:
        """Tuples out for each tuple in; None before any came.

        >>> MeasuredBox("slow", tuples_in=8, tuples_out=2).selectivity
        0.25
        """
        return self.tuples_out / self.tuples_in if self.tuples_in else None


@dataclass(frozen=True)
class MeasuredSubnetwork:
    """One sub-network: `wall` and `cpu` of its trains by their tuples; `around` is the CPU outside of boxes.

    `around` covers what the boxes in stages do not: reading and decoding, native boxes, Spark's own work,
    writing. `alone`: the CPU comes from trains during which no other sub-network ran. `spread`: the time of a
    train by its CPU-seconds, whatever was shed in it; where it rises by half a second for each, two cores
    worked. `by_parts`: some trains may have shed, so lines through whole trains mislead; those of the parts
    do not. `fixed_known`: there are enough trains, of lengths that differ enough, to tell what a train takes
    without tuples.
    """

    subnetwork: str
    trains: int = 0
    tuples: int = 0
    wall: Line | None = None
    cpu: Line | None = None
    around: Line | None = None
    alone: bool = True
    spread: Line | None = None
    by_parts: bool = False
    fixed_known: bool = True


@dataclass(frozen=True)
class MeasuredCosts:
    """All that is known about costs, by box and by sub-network."""

    boxes: Mapping[str, MeasuredBox] = field(default_factory=dict)
    subnetworks: Mapping[str, MeasuredSubnetwork] = field(default_factory=dict)

    def fixed_cpu(self, subnetwork: str) -> float:
        """CPU-seconds of a train without tuples: around its boxes and in them.

        A line through whole trains would not tell: while more and more is shed, longer trains may well cost
        less than shorter ones did before. The lines of single boxes know what came to each of them.
        """
        measured = self.subnetworks.get(subnetwork)
        if measured is None:
            return 0.0
        if measured.around is None:
            return 0.0 if measured.cpu is None else measured.cpu.fixed
        boxes = [box.cpu for box in self.boxes.values() if box.subnetwork == subnetwork]
        return measured.around.fixed + sum(line.fixed for line in boxes if line is not None)

    def fixed_seconds(self, subnetwork: str) -> float:
        """How long a train without tuples takes.

        >>> sub = MeasuredSubnetwork("main", around=Line(0.1), spread=Line(0.02, 0.5), by_parts=True)
        >>> boxes = {"score": MeasuredBox("score", "main", cpu=Line(0.06, 1e-6))}
        >>> round(MeasuredCosts(boxes, {"main": sub}).fixed_seconds("main"), 3)
        0.1
        """
        measured = self.subnetworks.get(subnetwork)
        if measured is None:
            return 0.0
        if not measured.by_parts or measured.around is None or measured.spread is None:
            return 0.0 if measured.wall is None else measured.wall.fixed
        return measured.spread.at(self.fixed_cpu(subnetwork))
