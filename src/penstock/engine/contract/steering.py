"""What others may set while trains run: policy, drop rates, a hold on the input, schemes of joins."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.engine.contract.policy import TrainPolicy


@dataclass
class Steering:
    """The levers of one sub-network. The conductor reads them anew for each ticket.

    `clock` measures intervals and never goes back; `wall` stamps what is shown.
    """

    policy: TrainPolicy
    drop_rates: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    held: bool = False  # hold the input: no new train (A42)
    schemes: dict[str, str] = field(default_factory=dict)  # of diffused joins: 'left', 'right', 'hash'
    wall: Callable[[], float] = time.time
