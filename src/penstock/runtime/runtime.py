"""A running network (Aurora, Sect. 2.2, 3 and 4): start, stop, attach, detach, replace, steer.

Every sub-network is one streaming query with a checkpoint of its own; connection points between them hold what the next
one has not read. So one can be stopped, changed and started again while the others go on (A42, A43).
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.engine.contract.policy import AsSoonAsPossible, TrainPolicy
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.session import for_trains, local_session, one_runs
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.model.boxes import Drop, Join
from penstock.model.errors import NetworkError, PenstockError, caller, did_you_mean
from penstock.model.formats.description import SinkFormat
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream
from penstock.rewrite.check import check
from penstock.rewrite.subnetworks import SubNetwork, at_point, split
from penstock.runtime.attached_views import at_free_names, give_up_point, must_not_be_read, with_views
from penstock.runtime.checkpoint_identity import (
    claim,
    claim_attached,
    facts,
    forget_home,
    homes,
    same,
    settled,
)
from penstock.runtime.idle import Progress, any_train, is_idle, progress_of
from penstock.runtime.point_maintenance import PointMaintenance
from penstock.runtime.train_records import Status, TrainRecords
from penstock.store.catalog.join_choices import join_choices_text
from penstock.store.dead_letters import DeadLetters

Prepare = Callable[[SubnetworkQuery], None]
_LEASE = 60.0  # seconds that an attached query's claim on history outlives its process


class Runtime:
    """Runs a network on Spark, on the session given or one of its own; `with` starts and stops it.

    `once` reads what is there, closes all windows and ends (use `wait`). `dead_letter_limit` fails the run when more
    than so many tuples had to be refused. `policy` decides the length of trains, see `penstock.engine.contract.policy`.
    `nice`: how much lower the priority of a session of our own is than that of this process.
    """

    def __init__(
        self,
        network: Network,
        spark: Any = None,
        checkpoint: str | Path = "checkpoint",
        *,
        once: bool = False,
        policy: TrainPolicy | None = None,
        partitions: int | None = None,
        fuse: bool = True,
        dead_letter_limit: int | None = None,
        clock: Callable[[], float] = time.time,
        master: str | None = None,
        nice: int = 0,
    ) -> None:
        check(network)
        self.network, self.checkpoint, self.once, self.fuse = network, Path(checkpoint).resolve(), once, fuse
        self.policy = policy or AsSoonAsPossible()
        self.partitions = partitions or max(2, os.cpu_count() or 2)
        self.dead_letter_limit = dead_letter_limit
        self._clock, self._master, self._nice = clock, master, nice
        self._spark = spark
        self._ours = False  # the session is ended by whoever made it
        self._steering: dict[str, Steering] = {}
        self._attached: dict[str, SubNetwork] = {}
        self._lock = threading.RLock()
        self._maintenance: PointMaintenance | None = None
        self._told: list[Callable[[TrainDone], None]] = []
        self.queries: dict[str, SubnetworkQuery] = {}
        self.drop_rates: dict[str, float] = {}
        self.subs = split(network)
        self.records: TrainRecords | None = None

    # -- life

    def start(self) -> Self:
        """Start all sub-networks; the first train runs as soon as there is input."""
        self.subs = settled(self.checkpoint, split(self.network))
        claim(self.checkpoint, self.network, self.subs, self._facts(self.subs))
        self._take_session()
        self.records = TrainRecords(self.checkpoint, self.network, self.subs, self._spark)
        self._restore_rates()
        for sub in self.subs:
            self._begin(sub)
        self._maintenance = PointMaintenance(self).start()
        return self

    def _take_session(self) -> None:
        """The session that was given, the one that runs already, or one of our own, which we end."""
        self._ours = self._spark is None and not one_runs()
        self._spark = for_trains(self._spark or local_session(self._master, nice=self._nice))

    def _facts(self, subs: tuple[SubNetwork, ...]) -> dict[str, dict[str, Any]]:
        return facts(subs, self.partitions, fuse=self.fuse)

    def _begin(
        self, sub: SubNetwork, *, lease: float | None = None, prepare: Prepare | None = None, **given: Any
    ) -> SubnetworkQuery:
        assert self.records is not None
        steering = self._steering.setdefault(sub.name, Steering(self.policy, self.drop_rates, self._clock))
        query = SubnetworkQuery(
            sub, self._spark, self.checkpoint, steering, partitions=self.partitions, once=self.once, fuse=self.fuse,
            listen=self._train_done, lease=lease, upstream_done=lambda: self._upstream_done(sub), **given,
        )  # fmt: skip
        if prepare is not None:
            prepare(query)
        self.queries[sub.name] = query
        self.records.place(sub.name, query.trains.place)
        return query.start()

    def _train_done(self, done: TrainDone) -> None:
        assert self.records is not None
        self.records.train_done(done)
        for told in self._told:
            told(done)
        if self.dead_letter_limit is not None and self.records.dead > self.dead_letter_limit:
            # no further train: whoever asks (check, wait, status) is told why
            for steering in self._steering.values():
                steering.held = True

    def _upstream_done(self, sub: SubNetwork) -> bool:
        """Whether all writers of the points it reads have finished: only then has a `once` run seen everything."""
        writers = [q for q in self.queries.values() if set(q.sub.points) & set(sub.inputs)]
        return all(q.finished.is_set() for q in writers)

    def stop(self) -> None:
        """Finish the trains in hand, leave windows open, end what this runtime started."""
        try:
            for query in list(self.queries.values()):
                query.stop()
        finally:
            if self._maintenance is not None:
                self._maintenance.stop()  # its last round sees the last trains
        if self.records is not None:
            self.records.close()
        if self._ours and self._spark is not None:
            self._spark.stop()
            self._spark, self._ours = None, False

    def finish(self) -> None:
        """No more input will come: take what is there, close all windows and end, as `once` does; `wait` for it."""
        with self._lock:
            self.once = True
            for query in self.queries.values():
                query.once = True

    def on_train(self, told: Callable[[TrainDone], None]) -> None:
        """Have `told` called after each committed train, in the thread that ran it: be quick."""
        self._told.append(told)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a `once` run is through, or the time is up (False). Raises what went wrong."""
        until = None if timeout is None else time.monotonic() + timeout
        while not all(query.finished.is_set() and query.drained() for query in self.queries.values()):
            self.check()
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(0.02)
        self.check()
        return True

    def wait_idle(self, timeout: float = 60.0) -> bool:
        """Wait until every sub-network has read all that is there, or the time is up (False).

        What is put into a source before the call has then left by the outputs, as far as windows are closed.
        """
        until, before = time.monotonic() + timeout, self._progress()
        while time.monotonic() < until:
            self.check()
            now = self._progress()
            if is_idle(before, now):
                return True
            if any_train(before, now):
                before = now
            time.sleep(0.02)
        return False

    def _progress(self) -> dict[str, Progress]:
        return {name: progress_of(query) for name, query in list(self.queries.items())}

    def check(self) -> None:
        """Raise what went wrong in any sub-network, or when too many tuples were refused."""
        for query in list(self.queries.values()):
            query.check()
        limit = self.dead_letter_limit
        if limit is not None and self.records is not None and self.records.dead > limit:
            letters = DeadLetters(self.checkpoint)
            most = next(iter(letters.counts().items()), ("", 0))
            raise PenstockError(
                f"{self.records.dead} tuples went to the dead letters, the limit is {limit}; most often: {most[0]} ({most[1]})\n"
                f"  hint:     look at them with: penstock dead-letters {self.checkpoint}"
            )

    def explain(self) -> str:
        """The network as text, and what its diffused joins have chosen so far."""
        return f"{self.network.explain()}\n\n{join_choices_text(self.network, self.checkpoint)}"

    def status(self) -> Status:
        """What each sub-network is doing: trains, rates, latencies, dead letters."""
        assert self.records is not None, "not started"
        return self.records.status(self.queries)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- while it runs

    def attach(
        self,
        name: str,
        point: str,
        build: Callable[[Stream], Stream],
        *,
        to: SinkFormat,
        qos: QoS | None = None,
        resume: bool = False,
    ) -> SubnetworkQuery:
        """An ad-hoc query at a connection point: all that is retained there, then what comes (A30), until detached.

        It may join other points in: `lambda s: s.join(s.network.stream("other"), on="k", within="1 minute")`.
        `resume` goes on instead where a query of this name was when the runtime was last stopped.
        """
        with self._lock:
            self._must_be_free(name)
            sub = at_point(self.network, point, name, build, to=to, qos=qos)
            return self._attach(at_free_names(sub, self.network), point, resume=resume)

    def attach_view(
        self,
        name: str,
        point: str,
        build: Callable[[Stream], Stream],
        *,
        keep: str = "2 hours",
        qos: QoS | None = None,
        resume: bool = False,
    ) -> SubnetworkQuery:
        """A view at a connection point (A28): kept up to date without an application; attach queries to it under its name."""
        with self._lock:
            self._must_be_free(name)
            sub = at_point(self.network, point, name, lambda s: build(s).view(name, keep=keep, qos=qos))
            sub = at_free_names(sub, self.network)
            grown = with_views(self.network, {name: sub})
            query = self._attach(sub, point, resume=resume)
            self.network = grown
            return query

    def _attach(self, sub: SubNetwork, point: str, *, resume: bool) -> SubnetworkQuery:
        assert self.records is not None, "not started"
        check(sub.network)
        place = self.checkpoint / "queries" / sub.name
        if not resume:
            self._give_up(sub)
        claim_attached(place, sub, self._facts((sub,)))
        self._attached[sub.name] = sub
        query = self._begin(sub, lease=_LEASE)
        self.records.event("attach", sub.name, point=point, inputs=list(sub.inputs), resume=resume)
        return query

    def _give_up(self, sub: SubNetwork) -> None:
        """What a sub-network has left in the checkpoint: how far it has read, its state, and the points that only it wrote."""
        shutil.rmtree(self.checkpoint / "queries" / sub.name, ignore_errors=True)
        for point in sub.points:
            give_up_point(self.checkpoint, point)

    def attach_subnetwork(
        self, sub: SubNetwork, *, lease: float | None = None, prepare: Prepare | None = None, **given: Any
    ) -> SubnetworkQuery:
        """Run one more sub-network beside the others, with trains or inputs of its own kind (`given`, see SubnetworkQuery).

        For rooms above: `prepare` is called before the first train. `detach` ends it.
        """
        with self._lock:
            self._must_be_free(sub.name)
            assert self.records is not None, "not started"
            query = self._begin(sub, lease=lease, prepare=prepare, **given)
            self.records.event("attach", sub.name, inputs=list(sub.inputs))
            return query

    def _must_be_free(self, name: str) -> None:
        if name in self.queries or name in self.network.nodes or name in homes(self.checkpoint):
            raise NetworkError(
                f"the name '{name}' is taken", where=caller(), hint="detach it first, or choose another name"
            )

    def detach(self, name: str) -> None:
        """End an ad-hoc query, a view or an output; others do not notice. Its place is given up, so it may be attached anew."""
        with self._lock:
            query = self._running(name)
            must_not_be_read(query.sub, [q.sub for q in self.queries.values()])
            query.stop()
            query.release()
            del self.queries[name]
            self._give_up(query.sub)
            forget_home(self.checkpoint, name)
            gone = self._attached.pop(name, None)
            if gone is not None and gone.points:
                left = [
                    n
                    for n in self.network.nodes.values()
                    if n.name not in set(gone.network.nodes) - set(gone.inputs)
                ]
                self.network = Network.of(self.network.name, left, groups=self.network.groups)
            assert self.records is not None
            self.records.event("detach", name)

    def replace(self, network: Network, *, fresh_state: bool = False) -> dict[str, float]:
        """Change sub-networks while the others run on: hold, drain, change, release (A42). Returns each one's blip in seconds.

        A changed stateful box needs `fresh_state=True`: it starts anew from where its input stands.
        """
        with self._lock:
            check(network)
            subs = settled(self.checkpoint, split(network), moved=fresh_state)
            grown = with_views(network, self._attached)
            changed = [sub for sub in subs if not self._same(sub)]
            gone = [sub for sub in self.subs if sub.name not in {s.name for s in subs}]
            claim(self.checkpoint, network, subs, self._facts(subs), fresh=fresh_state)
            blips = {}
            for sub in reversed(gone):  # readers before what they read
                self.detach(sub.name)
            self.network, self.subs = grown, subs
            for sub in changed:
                blips[sub.name] = self._swap(sub, fresh_state=fresh_state)
            assert self.records is not None
            self.records.network(network, subs)
            return blips

    def _same(self, sub: SubNetwork) -> bool:
        running = self.queries.get(sub.name)
        return running is not None and same(running.sub.network, sub.network)

    def _swap(self, sub: SubNetwork, *, fresh_state: bool) -> float:
        assert self.records is not None
        begun = time.monotonic()
        old = self.queries.pop(sub.name, None)
        if old is not None:
            old.stop()
            if fresh_state:
                old.forget_state()
        query = self._begin(sub)
        query.wait_ready()
        blip = time.monotonic() - begun
        self.records.event("replace", sub.name, blip=round(blip, 3))
        return blip

    def _running(self, name: str) -> SubnetworkQuery:
        if name not in self.queries:
            raise PenstockError(f"nothing named '{name}' is running; {did_you_mean(name, self.queries)}")
        return self.queries[name]

    # -- steering

    def set_drop_rate(self, box: str, rate: float) -> None:
        """Change the rate of a Drop box from the next train on (a shedder will do this)."""
        drops = [
            n.name for q in self.queries.values() for n in q.sub.network.nodes.values() if isinstance(n, Drop)
        ]
        if box not in drops:
            raise PenstockError(f"no drop box '{box}'; {did_you_mean(box, drops)}")
        if not 0 <= rate <= 1:
            raise PenstockError(f"a drop rate of {rate} is out of range; expected 0 to 1")
        self.drop_rates[box] = float(rate)
        if self.records is not None:
            self.records.event("drop_rate", box, rate=rate)

    def set_master(self, join: str, scheme: str | None) -> None:
        """Who is master of a diffused join from the next train on: 'left', 'right', 'hash'; None: as measured."""
        joins = {n.name: n for n in self.network.nodes.values() if isinstance(n, Join) and n.spread}
        if join not in joins:
            raise PenstockError(f"no diffused join '{join}'; {did_you_mean(join, joins)}")
        schemes = ("left", "right", *(["hash"] if joins[join].on else []))
        if scheme is not None and scheme not in schemes:
            raise PenstockError(
                f"join '{join}' cannot be spread by '{scheme}'; expected one of: {', '.join(schemes)}"
            )
        for steering in self._steering.values():
            if scheme is None:
                steering.schemes.pop(join, None)
            else:
                steering.schemes[join] = scheme
        if self.records is not None:
            self.records.event("master", join, scheme=scheme)

    def set_train(
        self,
        length: int | None = None,
        interval: float | None = None,
        *,
        policy: TrainPolicy | None = None,
        subnetwork: str | None = None,
    ) -> None:
        """Change the length of trains, the time between them, or the whole policy, from the next train on."""
        targets = [subnetwork] if subnetwork is not None else list(self._steering)
        for name in targets:
            steering = self._steering[self._running(name).sub.name]
            now = steering.policy
            if policy is not None:
                steering.policy = policy
            elif isinstance(now, AsSoonAsPossible):
                steering.policy = AsSoonAsPossible(
                    length or now.length, now.interval if interval is None else interval
                )
            if self.records is not None:
                self.records.event("train_length", name, length=length, interval=interval)

    def _restore_rates(self) -> None:
        """Drop rates that were in force when the last run ended hold on."""
        for sub in self.subs:
            log = TrainLog(self.checkpoint / "queries" / sub.name)
            last = log.ticket(log.last())
            if last is not None:
                for box, rate in last.drop_rates.items():
                    self.drop_rates.setdefault(box, rate)
