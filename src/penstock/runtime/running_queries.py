"""The streaming queries of a running network, which all parts of a runtime work on.

Each sub-network is one query with a checkpoint of its own. Connection points between them hold what the next
one has not read. So one can be stopped, changed and restarted while the others go on (A42, A43).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.contract.policy import TrainPolicy
from penstock.engine.contract.recovery import state_plan
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.train_cpu import TrainCpu
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.recovery.state_versions import Recovery
from penstock.engine.spark.session import is_local
from penstock.engine.spark.trains.failures import ATTEMPTS
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.writing.network import Network
from penstock.rewrite.check import check
from penstock.rewrite.subnetworks import SubNetwork, split
from penstock.runtime.box_facts import BoxFacts, facts, made_by
from penstock.runtime.forms import Forms
from penstock.runtime.records.train_records import TrainRecords
from penstock.store.durable import Durability
from penstock.store.ownership import Ownership

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Prepare = Callable[[SubnetworkQuery], None]
TrainListener = Callable[[TrainDone], None]


@dataclass(frozen=True)
class RunSettings:
    """How the queries of a network run; the same for all of them."""

    policy: TrainPolicy
    partitions: int
    fuse: bool = True
    dead_letter_limit: int | None = None
    clock: Callable[[], float] = time.monotonic  # measures intervals; never set back
    durability: Durability = "process"
    take_over: bool = False  # from an owner of the checkpoint that lives
    attempts: int = ATTEMPTS  # of a train, before the run ends
    recovery: float | None = None  # seconds of trains that may run again; None: each writes its state


class RunningQueries:
    """Starts queries, listens to their trains, and knows them by name."""

    def __init__(
        self, network: Network, checkpoint: Path, settings: RunSettings, *, once: bool, close: bool
    ) -> None:
        check(network)
        self.network, self.checkpoint, self.settings = network, checkpoint, settings
        self.once, self.close = once, close
        self.queries: dict[str, SubnetworkQuery] = {}
        self.drop_rates: dict[str, float] = {}
        self.subs = split(network)
        self.records: TrainRecords | None = None
        self._spark: SparkSession | None = None
        self._steering: dict[str, Steering] = {}
        self.first_valves: dict[str, tuple[Valve, ...]] = {}  # of sub-networks that start, by name
        self._listeners: list[TrainListener] = []
        self._telling = threading.local()  # in a thread that calls them: of which query
        self._lock = threading.RLock()
        self._owner: Ownership | None = None  # while it runs
        self._cpu: TrainCpu | None = None  # where it can be measured
        self.forms = Forms(checkpoint)
        self.control: Any = None  # what steers the run, if anything does

    @property
    def session(self) -> SparkSession:
        """Spark's session; there is one from the start on."""
        assert self._spark is not None
        return self._spark

    @property
    def measures_cpu(self) -> bool:
        """Whether it is known what CPU trains use: not on a cluster, and on Linux only."""
        return self._cpu is not None

    def running_records(self) -> TrainRecords:
        """The records of the run; without a run, nothing can be attached or inspected."""
        if self.records is None:
            raise PenstockError(f"network '{self.network.name}' is not running", hint="start() it first")
        return self.records

    def running(self, name: str) -> SubnetworkQuery:
        """The query of a sub-network, by name."""
        if name not in self.queries:
            hint = did_you_mean(name, self.queries)
            raise PenstockError(f"nothing named '{name}' is running", hint=hint)
        return self.queries[name]

    def must_fit(self, network: Network, changed: Iterable[SubNetwork]) -> None:
        """Let what steers the run refuse a change before it takes effect: these sub-networks will run so.

        `network`: that which they are part of. Only some controllers ask for it, by a method `must_fit`.
        """
        refuses = getattr(self.control, "must_fit", None)
        if refuses is not None:
            running = {query.sub.name: query.sub for query in list(self.queries.values())}
            refuses(network, tuple({**running, **{sub.name: sub for sub in changed}}.values()))

    def forget(self, name: str) -> None:
        """Know nothing more of a query: who takes its name is neither held nor shed nor watched as it was."""
        self.queries.pop(name, None)
        self._steering.pop(name, None)
        self.first_valves.pop(name, None)

    def on_train(self, listener: TrainListener) -> None:
        """Call a function after each committed train, in the thread that ran it. It must be quick."""
        self._listeners.append(listener)

    def box_facts(self, subs: tuple[SubNetwork, ...]) -> BoxFacts:
        """What the state of the stateful boxes depends on, in the forms in which they run."""
        return self._facts(tuple(self.forms.running(sub) for sub in subs))

    def _facts(self, subs: tuple[SubNetwork, ...]) -> BoxFacts:
        return facts(subs, self.settings.partitions, fuse=self.settings.fuse)

    def begin(
        self, sub: SubNetwork, *, lease: float | None = None, prepare: Prepare | None = None, **given: Any
    ) -> SubnetworkQuery:
        """Start the query of a sub-network.

        It runs in the form that the optimizer has found, if it has (`forms`). `given` passes trains or inputs
        of its own kind, see QuerySettings.
        """
        sub = sub if given else self.forms.begin(sub)
        steering = Steering(
            self.settings.policy,
            self.drop_rates,
            self.settings.clock,
            cpu=self._cpu,
            valves=self.first_valves.get(sub.name, ()),
        )
        query = SubnetworkQuery(
            sub,
            self.session,
            self.checkpoint,
            self._steering.setdefault(sub.name, steering),
            replace(
                self._query_settings(sub), lease=lease, recovery=self._recovery(sub, lease, given), **given
            ),
        )
        query.attempts = self.settings.attempts
        if prepare is not None:
            prepare(query)
        self.queries[sub.name] = query
        self.running_records().location(sub.name, query.trains.directory)
        return query.start()

    def _query_settings(self, sub: SubNetwork) -> QuerySettings:
        owner, settings = self._owner, self.settings
        return QuerySettings(
            partitions=settings.partitions,
            once=self.once,
            close=self.close,
            fuse=settings.fuse,
            epoch=0 if owner is None else owner.epoch,
            follows_dead=owner is not None and owner.follows_dead,
            sync=settings.durability == "power",
            upstream_done=lambda: self._upstream_done(sub),
            listen=self._train_done,
        )

    def _recovery(self, sub: SubNetwork, lease: float | None, given: Mapping[str, Any]) -> Recovery:
        """How the query keeps its state.

        Only if its claims on points never expire: they must outlive a crash. Trains of another kind decide
        for themselves.
        """
        settings = self.settings
        plan = state_plan(sub, settings.durability, local=is_local(self.session))
        may = lease is None and not given and plan.snapshots
        return Recovery(settings.recovery if may else None, network=made_by(sub))

    def too_many_dead_letters(self) -> bool:
        """Whether more tuples were refused than the run allows."""
        limit = self.settings.dead_letter_limit
        return limit is not None and self.records is not None and self.records.dead > limit

    def _train_done(self, done: TrainDone) -> None:
        records = self.running_records()
        if done.again and records.catalog.has_train(done.subnetwork, done.ticket.train):
            return
        records.train_done(done)
        self._tell(done)
        self._wake_readers(done.subnetwork)
        if self.too_many_dead_letters():
            # No further train starts; check, wait and status say why.
            for steering in list(self._steering.values()):
                steering.held = True

    def _wake_readers(self, writer: str) -> None:
        """Let those look at once that read a point of this sub-network."""
        queries = dict(self.queries)
        points = set(queries[writer].sub.points) if writer in queries else set()
        for query in queries.values():
            if points.intersection(query.sub.inputs):
                query.wake()

    def _tell(self, done: TrainDone) -> None:
        self._telling.name = done.subnetwork
        try:
            for listener in self._listeners:
                listener(done)
        finally:
            self._telling.name = None

    def _upstream_done(self, sub: SubNetwork) -> bool:
        """Whether all writers of the points it reads have finished, and none of them has failed.

        Only then has a `once` run seen everything: what a failed writer still has comes with the next run.
        """
        queries = list(self.queries.values())  # other threads attach and detach
        writers = [query for query in queries if set(query.sub.points) & set(sub.inputs)]
        return all(query.finished.is_set() and query.failure is None for query in writers)
