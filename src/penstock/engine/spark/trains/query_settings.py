"""How one sub-network's query runs, and what it is connected to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.connectors.contract import Input
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.jobs.forms import Form, form_of
from penstock.engine.spark.layout.plan import Layout
from penstock.engine.spark.recovery.state_versions import DELTAS, Recovery
from penstock.engine.spark.trains.train import Trains, TrainSettings


def _always() -> bool:
    return True


@dataclass(frozen=True)
class QuerySettings:
    """What a query needs to know beside its sub-network. The defaults suit tests.

    `lease`: seconds that its claim on a point's history outlives its process; None: for ever. `epoch` and
    `follows_dead`: of the checkpoint's owner, see `store/ownership.py`. `sync`: what it writes survives a
    power cut. `recovery`: how state is kept. `inputs` and `make_trains`: parts of another kind than its own.
    `upstream_done`: whether the writers of the points it reads have finished. `form`: which way a train runs.
    """

    partitions: int = 2
    once: bool = False
    close: bool = False
    fuse: bool = True
    lease: float | None = None
    epoch: int = 0
    follows_dead: bool = False
    sync: bool = False
    recovery: Recovery = DELTAS
    inputs: Mapping[str, Input[Any]] = field(default_factory=dict)
    make_trains: type[Trains] = Trains
    upstream_done: Callable[[], bool] = _always
    listen: Callable[[TrainDone], None] | None = None
    form: Callable[[Ticket, Layout], Form] = form_of

    @property
    def usual(self) -> bool:
        """Whether trains and inputs are those of every network, not of a test or an application."""
        return self.make_trains is Trains and not self.inputs

    @property
    def trains(self) -> TrainSettings:
        """The part that concerns trains."""
        return TrainSettings(
            self.partitions, self.fuse, self.epoch, self.follows_dead, self.sync, self.recovery, self.form
        )
