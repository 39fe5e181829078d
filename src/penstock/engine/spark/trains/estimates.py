"""How many tuples native boxes let through in trains where they are not counted.

Counting after every native box breaks Spark's generated code into pieces, so only some trains are counted. In
the others the number of incoming tuples is exact. The number passed on is estimated from the selectivity seen
so far, and displays mark such totals.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Estimates:
    """Selectivities of the boxes of one sub-network.

    >>> known = Estimates()
    >>> known.learn("slow", 100, 30)
    >>> sum(known.guess("slow", 1) for _ in range(10))
    3
    """

    _seen: dict[str, tuple[float, float]] = field(default_factory=dict)
    _owed: dict[str, float] = field(
        default_factory=dict
    )  # fractions of a tuple, so that many short trains add up

    def learn(self, box: str, came: int, left: int) -> None:
        """Learn from a counted train; the weight of earlier ones halves each time."""
        before = self._seen.get(box, (0.0, 0.0))
        self._seen[box] = (before[0] / 2 + came, before[1] / 2 + left)

    def guess(self, box: str, came: int, share: float | None = None) -> int:
        """Estimate what the box let through; `share`: its selectivity, if known otherwise."""
        before, left = self._seen.get(box, (0.0, 0.0))
        ratio = share if share is not None else left / before if before else 0.0
        passed = came * ratio + self._owed.get(box, 0.0)
        whole = max(0, round(passed))
        self._owed[box] = passed - whole
        return whole
