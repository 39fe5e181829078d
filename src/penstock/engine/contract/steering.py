"""What others may set while trains run: policy, drop rates, valves, a hold on the input, schemes of joins."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from penstock.engine.contract.policy import DEFAULT_BYTES, TrainPolicy
from penstock.engine.contract.train_cpu import TrainCpu
from penstock.engine.contract.valve import Valve
from penstock.model.json_types import JsonMapping, JsonObject


@dataclass(frozen=True)
class Monitor:
    """A monitor on arrows (A37): at most so many tuples of each train that leave `node`, the last ones.

    It changes nothing. With a condition it shows only tuples that fulfil it. A breakpoint (A38) is such a
    monitor, and whoever finds it hit holds the sub-network.
    """

    node: str
    most: int = 50
    condition: str = ""

    def plain(self) -> JsonObject:
        """For the disk."""
        return asdict(self)

    @classmethod
    def of(cls, plain: JsonMapping) -> Monitor:
        """From the disk.

        >>> Monitor.of(Monitor("slow", 5, "spd < 9").plain()) == Monitor("slow", 5, "spd < 9")
        True
        """
        return cls(**plain)


@dataclass
class Steering:
    """The levers of one sub-network. The conductor reads them anew for each ticket.

    `clock` measures intervals and never goes back; `wall` stamps what is shown.
    """

    policy: TrainPolicy
    drop_rates: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    held: bool = False  # hold the input: no new train (A42)
    steps: int = 0  # trains that leave although the input is held (A38)
    step_length: int | None = None  # tuples of each input in such a train; None: as the policy says
    schemes: dict[str, str] = field(default_factory=dict)  # of diffused joins: 'left', 'right', 'hash'
    monitors: Mapping[str, Monitor] = field(default_factory=dict)  # replaced as a whole
    wall: Callable[[], float] = time.time
    cpu: TrainCpu | None = None  # measures the CPU of trains, for all sub-networks together
    valves: tuple[Valve, ...] = ()  # replaced as a whole; see `valve.py`

    @property
    def max_bytes(self) -> int:
        """The most bytes of each input in a train. A policy that says nothing about it gets the default."""
        return int(getattr(self.policy, "max_bytes", DEFAULT_BYTES))

    @property
    def job_tuples(self) -> int:
        """Up to so many tuples trains are jobs; 0 if the policy leaves that to the engine."""
        return int(getattr(self.policy, "job_tuples", 0))

    @property
    def one_task_tuples(self) -> int:
        """Up to so many tuples trains are one task; 0 if the policy leaves that to the engine."""
        return int(getattr(self.policy, "one_task_tuples", 0))

    @property
    def may_depart(self) -> bool:
        """Whether a train may leave now."""
        return not self.held or self.steps > 0

    def length(self, planned: int) -> int:
        """The tuples of each input in the next train, of which the policy has planned so many.

        >>> Steering(policy=None, held=True, steps=1, step_length=1).length(500)
        1
        """
        return planned if not self.held or self.step_length is None else min(planned, self.step_length)

    def departed(self) -> None:
        """Note that a train has left."""
        self.steps = max(0, self.steps - 1)
