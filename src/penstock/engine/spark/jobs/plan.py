"""What the tasks of a job know about their sub-network. It is pickled once, and does not change with trains.

A job has phases. In the first, tasks read the train's slices. A stage runs in the phase after the last one
that it gets tuples from. Boxes without state run wherever their tuples are, phase by phase: it makes no
difference to them how tuples are divided among tasks.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
from pyspark import cloudpickle

from penstock.engine.arrow.logic import Logic
from penstock.engine.spark.tasks.stage import StageTask
from penstock.model.boxes import Keys, Source


@dataclass(frozen=True)
class Route:
    """An arrow into a stage: its tuples, the stage and entry it leads to, and how they find their partition.

    `by`: "keys" and "common keys" as Spark's hash partitioning does, "packed keys" as packed trains always
    did, "packed doubles" where whole numbers meet fractions, "one": all to the first partition, "none": they
    stay where they are.
    """

    tail: str
    stage: str
    entry: int
    keys: Keys
    by: str


@dataclass(frozen=True)
class Phase:
    """The stages of one phase, the stateless boxes that run on what is there, and what goes on from it.

    `stateless` also writes what leaves the network directly behind inputs.
    """

    stages: tuple[StageTask, ...] = ()
    stateless: StageTask | None = None
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True)
class JobPlan:
    """A sub-network as a job. `schemas`: of the tuples after each node that a box may read."""

    partitions: int
    phases: tuple[Phase, ...]
    sources: Mapping[str, Source]
    points: tuple[str, ...]
    schemas: Mapping[str, pa.Schema]
    rooted: bool = False  # slices come in groups, each to its own partition, and the first stage takes them
    logics: dict[str, dict[str, Logic]] = field(default_factory=dict)  # of stages without state, in a worker


@dataclass(frozen=True)
class PickledPlan:
    """A plan on its way to the tasks; a worker that knows it already does not read it again."""

    digest: str
    data: bytes

    @classmethod
    def of(cls, plan: JobPlan) -> PickledPlan:
        """Pickle it, functions of the user included."""
        data: bytes = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]  # it has no types
        return cls(hashlib.blake2b(data, digest_size=16).hexdigest(), data)

    def load(self) -> JobPlan:
        """The plan, as this worker keeps it."""
        return _loaded(self)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PickledPlan) and other.digest == self.digest


@lru_cache(maxsize=32)
def _loaded(plan: PickledPlan) -> JobPlan:
    loaded: JobPlan = pickle.loads(plan.data)  # noqa: S301 - written by our own driver
    return loaded
