"""What is known when the next train could leave.

What waits, what recent trains cost, what the outputs are worth: a policy (`policy.py`) decides from
this and nothing else. None always means unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.model.qos import QoS


@dataclass(frozen=True)
class InputSituation:
    """One input of a sub-network, as it looked when the conductor last asked it."""

    taken_tuples: int = 0  # by all trains since this query started
    waiting_tuples: int | None = None
    waiting_bytes: int | None = None
    oldest_age: float | None = None  # seconds that the oldest waiting tuple has waited
    offered_rate: float | None = None  # tuples a second that come, whether they are taken or not

    @property
    def offered_tuples(self) -> int | None:
        """All tuples that came since this query started, taken or waiting.

        >>> InputSituation(taken_tuples=70, waiting_tuples=30).offered_tuples
        100
        """
        return None if self.waiting_tuples is None else self.taken_tuples + self.waiting_tuples


@dataclass(frozen=True)
class TrainCost:
    """What one train took. `cpu`: of all it used; only of its boxes in tasks where that is not measured."""

    tuples: int
    wall: float
    cpu: float


@dataclass(frozen=True)
class RecentCost:
    """The cost of the last trains of a sub-network, summed."""

    trains: int = 0
    tuples: int = 0
    wall: float = 0.0
    cpu: float = 0.0

    @classmethod
    def of(cls, trains: Iterable[TrainCost]) -> RecentCost:
        """Sum up."""
        costs = list(trains)
        return cls(
            len(costs),
            sum(cost.tuples for cost in costs),
            sum(cost.wall for cost in costs),
            sum(cost.cpu for cost in costs),
        )

    @property
    def wall_per_tuple(self) -> float | None:
        """Seconds for each tuple; None before any came.

        >>> RecentCost.of([TrainCost(100, 0.5, 0.1), TrainCost(300, 0.5, 0.2)]).wall_per_tuple
        0.0025
        """
        return self.wall / self.tuples if self.tuples else None


@dataclass(frozen=True)
class Situation:
    """What is known when the next train of a sub-network could leave."""

    subnetwork: str
    train: int
    now: float  # seconds, on the runtime's clock
    departed: float | None = None  # when the train before this one left
    inputs: Mapping[str, InputSituation] = field(default_factory=dict)
    recent: RecentCost = field(default=RecentCost())
    qos: Mapping[str, QoS] = field(default_factory=dict)  # of the outputs and views that have one
