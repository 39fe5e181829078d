"""When a train runs and how many tuples it takes (A75, A76): the one small interface a scheduler drives.

The engine asks before every train; the answer is written into the train's ticket, so a replay does not ask
again.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

from penstock.connectors.contract import MAX_TRAIN_BYTES
from penstock.engine.contract.situation import Situation
from penstock.model.errors import PenstockError

DEFAULT_LENGTH = 500_000
DEFAULT_BYTES = MAX_TRAIN_BYTES


class TrainPolicy(Protocol):
    """Decides about the next train: at most so many tuples of each input, or None: not now.

    Without QoS control it is `AsSoonAsPossible`; with it, `control/loop/dispatcher.py`.

    A policy may also have attributes. `max_bytes`: the most bytes of each input in a train. `job_tuples`:
    trains up to this length are jobs of tasks, not DataFrames. `one_task_tuples`: trains up to this length
    are one task. One with `wakes = True` wakes a conductor to which it has said None, so that it need not ask
    all the time. One with a method `declined(subnetwork)` is told that a train it has granted does not leave,
    for lack of input.
    """

    def next_train(self, situation: Situation) -> int | None:
        """Called before every train; while it says None or nothing has come, every few milliseconds."""


@dataclass
class AsSoonAsPossible:
    """The default: a train leaves when there is anything to take, capped in tuples and bytes of each input.

    All may be changed at any time.

    >>> policy = AsSoonAsPossible(length=1000, interval=1.0)
    >>> policy.next_train(Situation("tolls", 0, now=10.0))
    1000
    >>> policy.next_train(Situation("tolls", 1, now=10.5, departed=10.0)) is None
    True
    """

    length: int = DEFAULT_LENGTH
    interval: float = 0.0  # seconds between the departures of two trains
    max_bytes: int = DEFAULT_BYTES
    job_tuples: int = 0
    one_task_tuples: int = 0
    full_at_once: bool = False  # a train that would be full does not wait for the interval

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise PenstockError(f"max_bytes {self.max_bytes} is too few", expected="1 or more")

    def next_train(self, situation: Situation) -> int | None:
        """The cap, unless the last train left less than `interval` ago."""
        early = situation.departed is not None and situation.now - situation.departed < self.interval
        return None if early and not self._full(situation) else self.length

    def _full(self, situation: Situation) -> bool:
        return self.full_at_once and any(
            (waits.waiting_tuples or 0) >= self.length or (waits.waiting_bytes or 0) >= self.max_bytes
            for waits in situation.inputs.values()
        )


# -- the form of a train


@dataclass(frozen=True)
class FormLimits:
    """Up to so many tuples and bytes a train is one task; up to so many it is a job of tasks.

    The ticket may ask for more: for one task (`Ticket.one_task_tuples`) where boxes are known to be quick.
    Longer ones are DataFrames, unless it asks for a job (`Ticket.job_tuples`). Control does so where outputs
    have a QoS: a train of DataFrames is planned and compiled anew, and the first ones take many seconds. That
    is longer than a strict output can wait, and comes just when an overload begins.
    """

    one_task_tuples: int = 2_000
    one_task_bytes: int = 512 << 10
    job_tuples: int = 20_000
    job_bytes: int = 8 << 20
    frame_stages: int = 8  # of a sub-network; with more of them no train is one of DataFrames


LIMITS = FormLimits()
LONG_TASK_BYTES = 4 << 20
"""The longest train that a ticket may ask to be one task."""
LONG_JOB_TUPLES, LONG_JOB_BYTES = 500_000, 64 << 20
"""The longest job of tasks that a ticket may ask for."""
_ENDS = (LIMITS.one_task_tuples, LIMITS.job_tuples, LONG_JOB_TUPLES)


def form_group(tuples: int) -> int:
    """Trains of one group run in the same form, as far as their tuples tell.

    They cost the same without any tuple. A line through the costs of several groups would take the difference
    for the cost of tuples.

    >>> [form_group(tuples) for tuples in (2_000, 2_001, 20_000, 20_001, 500_000, 500_001)]
    [0, 1, 1, 2, 2, 3]
    """
    return bisect_left(_ENDS, tuples)
