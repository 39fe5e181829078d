"""Phases of a job whose tasks run in the same Python worker each time: one for each partition.

A worker holds the state of the partition that it ran last. Spark gives a task whichever worker is idle. So
partitions would change places at random, and the state would be read anew. Idea: Spark keeps the idle workers
of different environments apart. So each partition has a function and an environment of its own, and what
Spark runs is the union of them.

This helps only where all tasks run in one JVM: elsewhere Spark chooses the machine of a task, too. A place
is a process more, and two jobs at one place would change workers again. So a session has as many places as
cores, and the sub-networks that come first get them.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import RDD, SparkContext
from pyspark.core.rdd import _prepare_for_python_RDD
from pyspark.serializers import CPickleSerializer, NoOpSerializer, pack_long
from pyspark.sql import SparkSession

from penstock.engine.spark.session import cores_of

_PLACE = "PENSTOCK_WORKER"
PhaseFunction = Callable[[int, Iterable[Any]], Iterator[tuple[int, Any]]]
"""A phase in one partition: records in, records out, each with the partition that it goes to."""


_LOCK = threading.Lock()
_TAKEN: WeakKeyDictionary[SparkContext, set[int]] = WeakKeyDictionary()
"""The places that are taken, of each Spark."""


class Places:
    """The places of a sub-network's partitions, from the first job to `leave`."""

    def __init__(self, spark: SparkSession | None, partitions: int, *, stateful: bool) -> None:
        self._spark, self._partitions = spark, partitions
        self._wanted = stateful and partitions > 1
        self._mine: tuple[int, ...] = ()

    def take(self) -> tuple[int, ...]:
        """A place for each partition that nobody else has; none if there are too few of them."""
        if self._wanted and not self._mine and self._spark is not None:
            context = self._spark.sparkContext
            one_jvm = str(context.master).partition("[")[0] == "local"
            if one_jvm and context.getConf().get("spark.python.worker.reuse") != "false":
                self._mine = _taken(context, self._partitions, max(2, cores_of(self._spark)))
            self._wanted = bool(self._mine)
        return self._mine

    def leave(self) -> None:
        """Let others have them."""
        if self._mine and self._spark is not None:
            with _LOCK:
                _TAKEN[self._spark.sparkContext].difference_update(self._mine)
        self._mine = ()


def _taken(context: SparkContext, partitions: int, most: int) -> tuple[int, ...]:
    with _LOCK:
        taken = _TAKEN.setdefault(context, set())
        free = [place for place in range(most) if place not in taken]
        places = tuple(free[:partitions]) if len(free) >= partitions else ()
        taken.update(places)
    return places


@dataclass
class PinnedJob:
    """A job of a partition at each place, phase by phase. `release` it when it is over."""

    context: SparkContext
    places: Sequence[int]
    _shuffles: list[int] = field(default_factory=list)

    @property
    def _jvm(self) -> Any:
        return self.context._jvm

    def run(self, phases: Sequence[PhaseFunction]) -> list[tuple[int, Any]]:
        """Run the phases; what the last one gives out."""
        nothing: RDD[Any] = self.context.parallelize([], 1)
        parents = [nothing._jrdd] * len(self.places)
        reader = nothing._jrdd_deserializer
        for phase in phases[:-1]:
            sent = self._union(phase, parents, reader, NoOpSerializer(), sends=True)
            parents, reader = self._shuffled(sent), CPickleSerializer()
        last = self._union(phases[-1], parents, reader, self.context.serializer, sends=False)
        return last.collect()

    def release(self) -> None:
        """Delete the shuffles' files. Otherwise they stay until the JVM happens to collect the job."""
        if not self._shuffles or self.context._jsc is None:
            return  # there is nothing to delete, or Spark was stopped meanwhile
        cleaner = self.context._jsc.sc().cleaner()
        for shuffle in self._shuffles if cleaner.isDefined() else ():
            cleaner.get().doCleanupShuffle(shuffle, False)

    def _union(
        self, phase: PhaseFunction, parents: Sequence[Any], reader: Any, writer: Any, *, sends: bool
    ) -> RDD[Any]:
        tasks = [
            self._task(_Pinned(phase, partition, sends), parent, reader, writer)
            for partition, parent in enumerate(parents)
        ]
        return self.context.union([RDD(task, self.context, writer) for task in tasks])

    def _task(self, function: _Pinned, parent: Any, reader: Any, writer: Any) -> Any:
        """The only task of an RDD with one partition, in the workers of its place."""
        context, jvm = self.context, self._jvm
        command, broadcasts, environment, includes = _prepare_for_python_RDD(
            context, (function, None, reader, writer)
        )
        number = self.places[function.partition]
        # The first place is Spark's own: tasks of other jobs run there, too.
        place = {_PLACE: str(number)} if number else {}
        python = jvm.SimplePythonFunction(
            bytearray(command),
            {**environment, **place},
            includes,
            context.pythonExec,
            context.pythonVer,
            broadcasts,
            context._javaAccumulator,
        )
        return jvm.PythonRDD(parent.rdd(), python, False, False).asJavaRDD()

    def _shuffled(self, sent: RDD[Any]) -> list[Any]:
        """Each record in the partition that it goes to; an RDD for each partition."""
        jvm = self._jvm
        pairs = jvm.PairwiseRDD(sent._jrdd.rdd()).asJavaPairRDD()
        shuffled = pairs.partitionBy(jvm.PythonPartitioner(len(self.places), 0))
        self._shuffles.append(shuffled.rdd().dependencies().head().shuffleId())
        bodies = jvm.PythonRDD.valueOfPair(shuffled).rdd()
        prune = jvm.org.apache.spark.rdd.PartitionPruningRDD
        # Scala's set of one number is a function too: whether a number is that one.
        only = getattr(jvm.scala.collection.immutable, "Set$Set1")
        return [prune.create(bodies, only(number)).toJavaRDD() for number in range(len(self.places))]


@dataclass(frozen=True)
class _Pinned:
    """A phase in its partition. `sends`: what it gives out is for Spark's shuffle."""

    phase: PhaseFunction
    partition: int
    sends: bool

    def __call__(self, _index: int, records: Iterable[Any]) -> Iterator[Any]:
        for record in self.phase(self.partition, records):
            if self.sends:
                yield pack_long(record[0])  # type: ignore[no-untyped-call]  # it has no types
                yield pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL)
            else:
                yield record
        for _ in records:
            pass  # Spark ends a worker that has not read all of its input
