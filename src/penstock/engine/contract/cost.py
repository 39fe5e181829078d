"""What a box costs: measured around its logic in every task, summed over the tasks of a train."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoxCost:
    """Seconds that one box took in one train, over all tasks.

    `cpu` counts every thread of the worker process: Arrow and numba may use several. In trains of DataFrames
    native boxes have no cost of their own, because Spark compiles them into one loop with their neighbours.
    """

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: BoxCost) -> BoxCost:
        """Both together.

        >>> BoxCost(1.0, 0.5) + BoxCost(2.0, 0.25)
        BoxCost(wall=3.0, cpu=0.75)
        """
        return BoxCost(self.wall + other.wall, self.cpu + other.cpu)
