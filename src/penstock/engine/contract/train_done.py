"""What the engine tells its listeners when a train is committed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket


@dataclass(frozen=True)
class TrainDone:
    """A committed train. Counts and costs of its boxes are in the commit.

    A train that a crash cut off after its commit is only published again. It then reports no `left`, `shown`
    and `state_bytes`: nothing ran.
    """

    subnetwork: str
    ticket: Ticket
    commit: Commit
    started: float  # wall time, seconds
    outputs: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()  # outputs that tuples have left by
    shown: tuple[str, ...] = ()  # files that their tasks made visible before the commit
    state_bytes: int = 0  # written for the state of boxes
    seconds: float = 0.0  # that the train took, by a clock that is never set
    again: bool = False  # committed by an earlier run, and only published now
