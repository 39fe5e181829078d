"""A sub-network as one streaming query, and the conductor that writes its tickets.

For each train the conductor decides how many tuples it takes (A76), which horizons hold, which inputs are
idle, and at which rates boxes drop. It writes the decision to disk before Spark sees it, and writes the next
one only when the train is done.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.connectors.contract import Input, Position, Taken
from penstock.connectors.loading import input_for
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.situation import InputSituation, RecentCost, Situation, TrainCost
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import UNKNOWN, Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.entry.points import PointInput, asleep
from penstock.engine.spark.trains.outcome import Outcome
from penstock.engine.spark.trains.ticks import first_train, ticks
from penstock.engine.spark.trains.train import Trains
from penstock.model.boxes import Join, Source, Trait
from penstock.model.diffused.roles import Report, Roles, first_roles, step
from penstock.model.errors import PenstockError
from penstock.model.qos import QoS
from penstock.rewrite.subnetworks import SubNetwork

_LOG = logging.getLogger("penstock")
_IDLE_WAIT = 0.01  # seconds between looks for new input
_RECENT_TRAINS = 32  # the cost of a sub-network covers this many trains
_TICK = 0.1  # seconds between a waiting micro-batch's checks that it is still needed


class SubnetworkQuery:
    """Runs one sub-network until told to stop or, with `once`, until its input is used up.

    `close`: the input is then complete, so a final train closes every window.
    """

    def __init__(
        self,
        sub: SubNetwork,
        spark: SparkSession,
        checkpoint: Path,
        steering: Steering,
        *,
        partitions: int,
        once: bool = False,
        fuse: bool = True,
        listen: Callable[[TrainDone], None] | None = None,
        inputs: dict[str, Input[Any]] | None = None,
        lease: float | None = None,
        close: bool = False,
        upstream_done: Callable[[], bool] = lambda: True,
        make_trains: type[Trains] = Trains,
    ) -> None:
        self.sub, self.spark, self.steering, self.once, self.listen = sub, spark, steering, once, listen
        self.trains = make_trains(sub, spark, checkpoint, partitions=partitions, fuse=fuse, done=self._done)
        self.log = self.trains.log
        self.upstream_done, self.lease, self.close = upstream_done, lease, close
        given = inputs or {}
        self.inputs = {name: given.get(name) or self._input(name, checkpoint) for name in sub.inputs}
        self._spread = [n for n in sub.network.nodes.values() if isinstance(n, Join) and n.spread]
        self.stateful = any(Trait.STATEFUL in n.traits for n in sub.network.nodes.values())
        self._qos = _qos(sub)
        self.finished = threading.Event()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._waiting = threading.Event()  # a micro-batch waits for its ticket
        self._ticketed = threading.Event()
        self._released = threading.Event()  # told to stop: it need not wait any longer
        self._conductor: threading.Thread | None = None
        self.looks = 0  # looks at the inputs that found nothing to do
        self.query: Any = None
        self._difference = 0  # between the number of a micro-batch and that of its train
        self.failure: BaseException | None = None
        self._recover()

    def _input(self, name: str, checkpoint: Path) -> Input[Any]:
        node = self.sub.network.nodes[name]
        if isinstance(node, Source):
            return input_for(node, self.trains.place / "sources" / name)
        return PointInput(checkpoint, name, self.sub.name, seconds=self.lease)

    def _recover(self) -> None:
        """Resume where the last ticket ended."""
        last = self.log.last()
        self._last = last
        self._newest: dict[str, int] = {}
        self._horizons: dict[str, int] = {}
        self._positions: dict[str, Position | None] = {}
        self._seen: dict[str, float] = {}
        self._idle: list[str] = []
        self._since: float | None = None
        self._final = False
        self._departed: float | None = None
        self._taken_tuples: dict[str, int] = {}
        self._used_up: dict[str, bool] = {}  # nothing waited at the last look
        self._costs: deque[TrainCost] = deque(maxlen=_RECENT_TRAINS)
        self._recent = RecentCost()
        self._joins: dict[str, Roles] = {}
        self._reports: dict[str, tuple[Report, ...]] = {}
        ticket = self.log.ticket(last) if last >= 0 else None
        if ticket is not None:
            self._positions, self._horizons, self._final = (
                dict(ticket.positions),
                dict(ticket.horizons),
                ticket.final,
            )
            self._newest, self._idle, self._since = dict(ticket.newest), list(ticket.idle), ticket.since
            self._joins = dict(ticket.joins)
            commit = self.log.commit(last)
            self._committed = last if commit is not None else last - 1
            if commit is not None:
                self._learn(commit)
        else:
            self._committed = -1
        self._quiet = self._committed == last
        self._closed_earlier = self._final

    def start(self) -> SubnetworkQuery:
        """Start the streaming query and its conductor."""
        self._start_ticks()
        self._conductor = threading.Thread(
            target=self._conduct, name=f"conductor-{self.sub.name}", daemon=True
        )
        self._conductor.start()
        return self

    def _start_ticks(self) -> None:
        place = self.trains.place / "ticks"
        committed = self._committed == self._last
        _, self._difference = first_train(place, self._last, committed=committed)
        self._run_query(ticks(self.spark), self.tick, place)

    def _run_query(self, frame: Any, body: Callable[[Any, int], None], place: Path) -> None:
        writer = frame.writeStream.queryName(f"penstock-{self.sub.name}").foreachBatch(body)
        self.query = writer.option("checkpointLocation", str(place)).start()

    def tick(self, _nothing: Any, batch: int) -> None:
        """The body of foreachBatch: wait for the ticket of this micro-batch's train, then run it."""
        train = batch - self._difference
        self._waiting.set()
        while self._last < train:
            if self._released.is_set():
                return
            self._ticketed.wait(_TICK)
            self._ticketed.clear()
        self._waiting.clear()
        self._run_train(train)

    @property
    def last(self) -> int:
        """The number of the newest ticket."""
        return self._last

    def _run_train(self, train: int) -> None:
        self._began = time.time()
        try:
            self.trains(train)
        except BaseException as error:
            self.failure = error
            raise

    def _done(self, ticket: Ticket, commit: Commit, outcome: Outcome) -> None:
        self._learn(commit)
        self._note_cost(ticket, commit)
        for name, source in self.inputs.items():
            source.committed(ticket.positions[name])
        if ticket.train % 50 == 0:
            self.log.forget(ticket.train - 100)
        if self.listen is not None:
            self.listen(self._train_done(ticket, commit, outcome))
        self._committed = ticket.train  # after the listeners: waiters then find the train in the records
        self._wake.set()

    def _note_cost(self, ticket: Ticket, commit: Commit) -> None:
        cpu = sum(cost.cpu for cost in commit.costs.values())
        self._costs.append(TrainCost(ticket.rows, time.time() - self._began, cpu))
        self._recent = RecentCost.of(self._costs)

    def _train_done(self, ticket: Ticket, commit: Commit, outcome: Outcome) -> TrainDone:
        return TrainDone(
            self.sub.name,
            ticket,
            commit,
            self._began,
            self.sub.outputs,
            frozenset(outcome.left),
            tuple(outcome.shown),
            outcome.state_bytes,
        )

    def _learn(self, commit: Commit) -> None:
        for name, newest in commit.newest.items():
            self._newest[name] = max(newest, self._newest.get(name, UNKNOWN))
        self._reports = commit.joins

    # -- the conductor

    def _conduct(self) -> None:
        try:
            while not self._stop.is_set():
                if self._committed < self._last or self.steering.held or not self.next_ticket():
                    self._wake.wait(_IDLE_WAIT)
                    self._wake.clear()
                if self.finished.is_set():
                    return
        except BaseException as error:
            if not isinstance(error, PenstockError):
                _LOG.exception("conductor of %s", self.sub.name)
            self.failure = error
            self.finished.set()

    def next_ticket(self) -> bool:
        """Write the next ticket if there is a reason for one; False: nothing to do now."""
        now = self.steering.clock()
        length = self.steering.policy.next_train(self._situation(now))
        if length is None:
            return False
        if self._final and not self._closed_earlier:
            self.finished.set()  # closed by this run: whatever has come since belongs to nobody
            return False
        upstream_done = self.upstream_done()  # ask before looking, or the last entry could be missed
        taken = {name: self.inputs[name].take(self._positions.get(name), length) for name in self.inputs}
        for name, part in taken.items():
            self._positions[name] = part.position
            self._taken_tuples[name] = self._taken_tuples.get(name, 0) + part.rows
            self._used_up[name] = not (part.slices or part.more or part.waiting)
            if part.slices:
                self._seen[name] = now
            else:
                self._seen.setdefault(name, now)
        fresh = any(part.slices or part.more or part.refused for part in taken.values())
        if self._final:
            self._must_be_used_up(taken)
        horizons, idle = self._current(taken, now)
        waiting = any(part.waiting for part in taken.values())
        # The final train brings no tuples. Its horizons then cover all of them, however trains were cut, and
        # count windows that it cuts short are stamped with these.
        exhausted = self.once and not fresh and not waiting and upstream_done
        moved = self.stateful and horizons != self._horizons
        passing = bool(self.sub.points) and (horizons != self._horizons or self._dozing(idle))
        closing = exhausted and self.close
        if self._final or not (fresh or moved or passing or closing):
            if exhausted:
                self.finished.set()
            self.looks += not waiting  # a file that is still being written is input to come
            return False
        # Skip horizon-only trains while input flows: the next data train moves the horizon anyway.
        self._write(taken, horizons, idle, final=closing, now=now)
        return True

    def _must_be_used_up(self, taken: dict[str, Taken]) -> None:
        """Refuse new tuples: every window is closed, and one more tuple would open it a second time."""
        for name, part in taken.items():
            if part.slices or part.more or part.refused:
                raise PenstockError(
                    f"this checkpoint is closed: a run with `close` ended its windows, "
                    f"and '{name}' has new input",
                    hint="use another checkpoint, or leave out `close` (`--close`) when more input will come",
                )

    def _situation(self, now: float) -> Situation:
        """What the policy may look at."""
        return Situation(
            self.sub.name,
            self._last + 1,
            now,
            self._departed,
            {name: self._input_situation(name) for name in self.inputs},
            self._recent,
            self._qos,
        )

    def _input_situation(self, name: str) -> InputSituation:
        # What waits is not known yet, because an input is only asked for what a train takes. An input that
        # gave nothing at the last look, and had no more, had nothing waiting.
        return InputSituation(
            self._taken_tuples.get(name, 0), waiting_tuples=0 if self._used_up.get(name, False) else None
        )

    def _dozing(self, idle: list[str]) -> bool:
        """Whether to tell readers of a point that nothing comes for now.

        When it wakes up, its tuples tell them.
        """
        if not idle:
            return False
        newly = asleep(self.sub.network, idle) - asleep(self.sub.network, self._idle)
        return not newly.isdisjoint(self.sub.points)

    def _roles(self, horizons: dict[str, int]) -> dict[str, Roles]:
        """The roles of diffused joins in the coming train.

        They follow from the train before and from what its servers reported.
        """
        if not self._spread:
            return {}
        behind, made = self.trains.horizon_plan.behind(horizons), {}
        for node in self._spread:
            before, forced = self._joins.get(node.name), self.steering.schemes.get(node.name)
            left, right = (behind[up] for up in node.inputs)
            made[node.name] = (
                step(node, before, self._reports.get(node.name, ()), (left, right), forced)
                if before is not None
                else first_roles(node, self.trains.partitions)
            )
        return made

    def _write(
        self, taken: dict[str, Taken], horizons: dict[str, int], idle: list[str], *, final: bool, now: float
    ) -> None:
        refused = {name: part.refused for name, part in taken.items() if part.refused}
        self._joins = self._roles(horizons)
        ticket = Ticket(
            train=self._last + 1,
            arrival=now,
            slices={name: part.slices for name, part in taken.items()},
            positions={name: part.position for name, part in taken.items()},
            horizons=horizons,
            newest=dict(self._newest),
            drop_rates=dict(self.steering.drop_rates),
            joins=self._joins,
            idle=idle,
            final=final,
            rows=sum(part.rows for part in taken.values()),
            since=self._oldest(taken, now),
            refused=refused,
        )
        self.log.write_ticket(ticket)
        self._horizons, self._idle, self._final, self._since = horizons, idle, final, ticket.since
        self._last, self._departed = ticket.train, now
        self._ticketed.set()

    def _oldest(self, taken: dict[str, Taken], now: float) -> float | None:
        """Since when the oldest tuple of this train has been waiting.

        If there are no tuples, use those that have moved the horizons.
        """
        full = [part for part in taken.values() if part.slices]
        known = [part.arrived for part in full or taken.values() if part.arrived is not None]
        if known:
            return min(known)
        return now if full else self._since

    def _current(self, taken: dict[str, Taken], now: float) -> tuple[dict[str, int], list[str]]:
        """What is promised about each input before this train, and which inputs nobody waits for."""
        found, idle = {}, []
        for name, part in taken.items():
            node = self.sub.network.nodes[name]
            if isinstance(node, Source):
                newest = self._newest.get(name, UNKNOWN)
                if node.format.in_order and part.newest is not None:
                    newest = max(newest, part.newest)  # deliveries tell their time before they are read
                found[name] = (
                    newest - node.lateness + (1 if node.whole else 0) if newest != UNKNOWN else UNKNOWN
                )
                silent = node.idle is not None and now - self._seen.get(name, now) >= node.idle / 1e6
            else:
                found[name] = UNKNOWN if part.horizon is None else part.horizon
                # The writer says so: it knows the sources, however far up they are.
                silent = part.idle and not part.more
            if silent and not part.slices:
                idle.append(name)
        live = [h for n, h in found.items() if n not in idle]
        if live:
            found |= {n: max(found[n], min(live)) for n in idle}
        # A horizon never goes back, even when an idle input wakes up. What then comes behind it is late.
        return {n: max(h, self._horizons.get(n, UNKNOWN)) for n, h in found.items()}, idle

    # -- stopping

    def stop(self, timeout: float = 60.0) -> None:
        """Finish the current train and leave windows open."""
        self._stop.set()
        if self._conductor is not None:
            self._conductor.join(timeout)
        until = time.monotonic() + timeout
        while (
            self._committed < self._last
            and self.failure is None
            and self.query is not None
            and self.query.isActive
            and time.monotonic() < until
        ):
            time.sleep(0.005)
        self._end_query(until)
        for source in self.inputs.values():
            source.close()

    def _end_query(self, until: float) -> None:
        if self.query is None:
            return
        while (
            not self._waiting.is_set()
            and self.query.isActive
            and self.failure is None
            and time.monotonic() < until
        ):
            time.sleep(0.002)  # until Spark has recorded the last train as committed
        # Spark interrupts the micro-batch but waits for it. Release it while it still waits: only then does
        # no further one begin.
        stopping = threading.Thread(target=self.query.stop, daemon=True)
        stopping.start()
        while self.query.isActive and time.monotonic() < until:
            time.sleep(0.002)
        self._released.set()
        stopping.join(max(0.0, until - time.monotonic()))

    def release(self) -> None:
        """Give up the claim on history: the query will not come back."""
        for source in self.inputs.values():
            if isinstance(source, PointInput):
                source.release()

    def forget_state(self) -> None:
        """Discard the state of boxes but keep the position in the input.

        The next train starts with fresh state.
        """
        shutil.rmtree(self.trains.place / "state", ignore_errors=True)

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Wait until the streaming query waits for tickets."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and self.query.isActive and not self._waiting.is_set():
            time.sleep(0.002)

    def drained(self) -> bool:
        """Whether no train is running."""
        return self._committed >= self._last

    def check(self) -> None:
        """Raise what went wrong, if anything did."""
        error = self.failure or (
            self.query.exception() if self.query is not None and not self.query.isActive else None
        )
        if error is None:
            return
        raise PenstockError(f"sub-network '{self.sub.name}' failed: {error}") from error


def _qos(sub: SubNetwork) -> dict[str, QoS]:
    """The QoS of the outputs and views that have one."""
    found = {name: getattr(node, "qos", None) for name, node in sub.network.nodes.items()}
    return {name: qos for name, qos in found.items() if qos is not None}
