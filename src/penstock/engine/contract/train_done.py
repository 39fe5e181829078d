"""What the engine tells its listeners when a train is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_cpu import CpuUsed


@dataclass(frozen=True)
class TrainDone:
    """A committed train. Counts and costs of its boxes are in the commit.

    A train that a crash cut off after its commit is only published again. It then reports no `delivered`,
    `shown` and `state_bytes`: nothing ran.
    """

    subnetwork: str
    ticket: Ticket
    commit: Commit
    started: float  # wall time, seconds
    outputs: tuple[str, ...] = ()
    delivered: Mapping[str, int] = field(default_factory=dict)  # tuples by output, and by rated view
    shown: tuple[str, ...] = ()  # files that their tasks made visible before the commit
    state_bytes: int = 0  # written for the state of boxes
    seconds: float = 0.0  # that the train took, by a clock that is never set
    # Where they went. `run`: until the last task had ended; `read`, `write`, `state`: of all tasks of a job.
    phases: Mapping[str, float] = field(default_factory=dict)
    needed: int = -1  # trains after this one may still be run again, so their input must stay
    again: bool = False  # committed by an earlier run, and only published now
    direct: frozenset[str] = frozenset()  # of `delivered`, those with no box with memory in front of them
    # By output and point: what valves kept of what was due; empty if nothing was shed.
    kept: Mapping[str, float] = field(default_factory=dict)
    # The same by what tuples are worth, for outputs with a value graph; empty if no valve drops by values.
    worth: Mapping[str, float] = field(default_factory=dict)
    # By node, for semantic shedding: a sample of its tuples, see `engine/arrow/value_samples.py`.
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    samples: Mapping[str, pa.Table] = field(default_factory=dict)  # what its monitors saw
    cpu: CpuUsed | None = None  # of everything that the train used; None if it was not measured
