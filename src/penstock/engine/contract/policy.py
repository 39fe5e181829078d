"""When a train runs and how many tuples it takes (A75, A76): the one small interface a scheduler drives.

The engine asks before every train; the answer is written into the train's ticket, so a replay does not ask
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.engine.contract.situation import Situation

DEFAULT_LENGTH = 500_000


class TrainPolicy(Protocol):
    """Decides about the next train: at most so many tuples of each input, or None: not now."""

    def next_train(self, situation: Situation) -> int | None:
        """Called before every train; while it says None or nothing has come, every few milliseconds."""


@dataclass
class AsSoonAsPossible:
    """The default: a train leaves when there is anything to take, capped in length.

    Both may be changed at any time.

    >>> policy = AsSoonAsPossible(length=1000, interval=1.0)
    >>> policy.next_train(Situation("tolls", 0, now=10.0))
    1000
    >>> policy.next_train(Situation("tolls", 1, now=10.5, departed=10.0)) is None
    True
    """

    length: int = DEFAULT_LENGTH
    interval: float = 0.0  # seconds between the departures of two trains

    def next_train(self, situation: Situation) -> int | None:
        """The cap, unless the last train left less than `interval` ago."""
        early = situation.departed is not None and situation.now - situation.departed < self.interval
        return None if early else self.length
