"""A sub-network as one streaming query, and the conductor that writes its tickets.

For each train the conductor asks the policy how many tuples it takes (A76), and finds which horizons hold,
which inputs are idle, and at which rates boxes drop. It writes that to disk before Spark sees it, and writes
the next one only when the train is done.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.connectors.contract import Input, TicketPart
from penstock.connectors.loading import input_for
from penstock.connectors.paths import is_resource_shortage
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.situation import Situation, TrainCost
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_cpu import CpuUsed
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.entry.points import PointInput
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.trains.attempts import doing, run_train
from penstock.engine.spark.trains.failures import ATTEMPTS, Kind, kind_of, message_of
from penstock.engine.spark.trains.own_records import note_published
from penstock.engine.spark.trains.pauses import pause
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.engine.spark.trains.source_memory import source_memory, sync_tree
from penstock.engine.spark.trains.ticket_planner import TicketPlanner
from penstock.engine.spark.trains.ticks import fresh_ticks, ticks
from penstock.engine.spark.trains.train_report import TrainReports
from penstock.model.boxes import Source
from penstock.model.errors import one_line
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.crash import crash_point
from penstock.store.errors import FencedError

_LOG = logging.getLogger("penstock")
_QUIET = 1.0  # seconds after the last train, before it is noted as published
_TICK = 0.1  # seconds between a waiting micro-batch's checks that it is still needed
_MICRO_BATCH = 10.0  # seconds after which a micro-batch takes no further train


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
        settings: QuerySettings | None = None,
    ) -> None:
        self.sub, self.spark, self.steering = sub, spark, steering
        self.settings = settings or QuerySettings()
        self.once, self.close = self.settings.once, self.settings.close
        self.trains = self.settings.make_trains(sub, spark, checkpoint, self.settings.trains, self._done)
        self.log = self.trains.log
        self._memories = self._source_memories()
        self.inputs = {name: self._input(name, checkpoint) for name in sub.inputs}
        self._released_to: int | None = None  # the train up to which inputs know that nobody asks again
        self._keep_input()
        self.trains.here = self._here
        self._planner = TicketPlanner(sub, self.inputs, steering, self.settings.partitions)
        self._reports = TrainReports(sub)
        self.finished = threading.Event()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._waiting = threading.Event()  # a micro-batch waits for its ticket
        self._ticketed = threading.Event()
        self._released = threading.Event()  # told to stop: it need not wait any longer
        self._conductor: threading.Thread | None = None
        self.looks = 0  # looks at the inputs that found nothing to do
        self.query: Any = None
        self._since: float | None = None  # when the oldest tuple of the last ticket came
        self.attempts = ATTEMPTS  # of a train, before the run ends
        self._refused = False  # the policy has said None, and will wake us
        self._short = False  # the input could not be read for want of descriptors or memory
        self._unwritten: Ticket | None = None  # the write of this ticket failed, or has not ended yet
        self._restarts = 0  # of the streaming query, since the last train
        self.failure: BaseException | None = None
        self._told = False  # somebody has asked and knows of the failure
        self._recover()

    @property
    def rated_points(self) -> tuple[str, ...]:
        """The views and points with a QoS that it writes, at this moment."""
        return self._reports.rated_points

    def _source_memories(self) -> dict[str, Path]:
        """The directory in which each source remembers what it has seen."""
        sources = [name for name in self.sub.inputs if name in self.sub.network.sources]
        folder = self.trains.directory / "sources"
        return source_memory(folder, sources, self.settings.epoch, sync=self.settings.sync)

    def _input(self, name: str, checkpoint: Path) -> Input[Any]:
        given = self.settings.inputs.get(name)
        if given is not None:
            return given
        node = self.sub.network.nodes[name]
        if isinstance(node, Source):
            return input_for(node, self._memories[name])
        return PointInput(checkpoint, name, self.sub.name, seconds=self.settings.lease)

    def _here(self, ticket: Ticket) -> Ticket:
        """The ticket with its slices where they are now."""
        slices: dict[str, Sequence[TicketPart]] = {
            name: [self.inputs[name].here(piece) for piece in parts] for name, parts in ticket.slices.items()
        }
        return replace(ticket, slices=slices)

    def _recover(self) -> None:
        """Resume where the last ticket ended."""
        self._last = self.log.last()
        self._committed = self.log.last_commit()
        self._noted, self._done_at = -1, time.monotonic()
        ticket = self.log.ticket(self._last) if self._last >= 0 else None
        if ticket is not None:
            self._planner.resume(ticket)
        commit = self.log.commit(self._last) if self._committed == self._last >= 0 else None
        if commit is not None:
            self._planner.learn(commit)
        self._closed_earlier = self._planner.final

    def start(self) -> SubnetworkQuery:
        """Start the streaming query and its conductor."""
        try:
            self.publish_again()
            self._start_ticks()
        except BaseException as error:
            self.failure = error  # who stops it must not note as published what is not
            raise
        self._conductor = threading.Thread(
            target=self._conduct, name=f"conductor-{self.sub.name}", daemon=True
        )
        self._conductor.start()
        return self

    def publish_again(self) -> None:
        """Publish the last committed train once more, if a crash may have come in between."""
        self._began, self._began_at = time.monotonic(), time.time()
        again = self.trains.publish_again(self._committed) if self._committed >= 0 else None
        if again is not None and self.settings.listen is not None:
            self.settings.listen(replace(self._report(*again, Outcome()), again=True))

    def _start_ticks(self) -> None:
        folder = fresh_ticks(self.trains.directory / "ticks", self.settings.epoch)
        self._run_query(ticks(self.spark), self._micro_batch, folder)

    def _run_query(self, frame: DataFrame, body: Callable[[DataFrame, int], None], folder: Path) -> None:
        writer = frame.writeStream.queryName(f"penstock-{self.sub.name}").foreachBatch(body)
        self.query = writer.option("checkpointLocation", str(folder)).start()

    def _micro_batch(self, _nothing: DataFrame, _batch: int) -> None:
        """The body of foreachBatch: trains one after the other, so that few pay for Spark's log."""
        until = time.monotonic() + _MICRO_BATCH
        try:
            while self._tick() and time.monotonic() < until:
                pass
        except Exception:
            # `failure` has it. Spark takes the text of what a callback raises apart with a pattern that
            # overflows its stack on long traces.
            raise RuntimeError("the train failed") from None

    def _tick(self) -> bool:
        """Wait for the ticket of the next train, then run it; False: the query need not wait any longer."""
        train = self._committed + 1
        self._waiting.set()
        while self._last < train:
            if self._released.is_set():
                return False
            self._ticketed.wait(_TICK)
            self._ticketed.clear()
        self._waiting.clear()
        self.run_train(train)
        return True

    def situation(self) -> Situation:
        """What is known now about the next train, for those who watch."""
        return self._planner.situation(self._last + 1, self.steering.clock())

    def wake(self) -> None:
        """Let the conductor ask its policy again now."""
        self._wake.set()

    @property
    def running_since(self) -> float | None:
        """When the oldest tuple of the train that runs now came, in wall time; None if none runs."""
        return self._since if self._committed < self._last else None

    @property
    def last(self) -> int:
        """The number of the newest ticket."""
        return self._last

    def run_train(self, train: int) -> None:
        """Run a train whose ticket is written."""
        self._began, self._began_at = time.monotonic(), time.time()
        if self.steering.cpu is not None:
            self.steering.cpu.begin(self.sub.name)
        try:
            run_train(self.trains, train, self.attempts)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._cpu_used()  # of a train that failed; nobody wants it

    def _cpu_used(self) -> CpuUsed | None:
        return None if self.steering.cpu is None else self.steering.cpu.end(self.sub.name)

    def _done(self, ticket: Ticket, commit: Commit, outcome: Outcome) -> None:
        self._planner.learn(commit)
        used = self._cpu_used()
        cpu = sum(cost.cpu for cost in commit.costs.values()) if used is None else used.seconds
        done = ticket.rows - sum(account.shed for account in commit.accounts.values())
        self._planner.note_cost(TrainCost(done, time.monotonic() - self._began, cpu))
        self.trains.versions.committed(ticket.train, commit.state, time.monotonic() - self._began)
        self._release_input(ticket)
        if ticket.train % 50 == 0:
            self.log.forget(min(ticket.train - 100, self._needed(ticket)))
        if self.settings.listen is not None:
            self.settings.listen(replace(self._report(ticket, commit, outcome), cpu=used))
        self._restarts, self._done_at = 0, time.monotonic()
        self._committed = ticket.train  # after the listeners: waiters then find the train in the records
        self._wake.set()

    def _needed(self, ticket: Ticket) -> int:
        """The train after which all may have to be run again: the newest, or that of a snapshot."""
        needed = self.trains.versions.needed
        return ticket.train if needed is None else needed

    def _keep_input(self) -> None:
        """Tell the inputs, before they are asked, from where on trains may have to be run again."""
        needed = self.trains.versions.needed
        if needed is None or self.log.last_commit() < 0:
            return
        ticket = self.log.ticket(needed) if needed >= 0 else None
        for name, source in self.inputs.items():
            source.keep_from(None if ticket is None else ticket.positions.get(name))
        self._released_to = needed

    def _release_input(self, ticket: Ticket) -> None:
        """Tell the inputs which of what they gave no train will ask for again."""
        needed = self._needed(ticket)
        if needed == self._released_to or needed < 0:
            return
        kept = ticket if needed == ticket.train else self.log.ticket(needed)
        for name, source in self.inputs.items():
            source.committed(None if kept is None else kept.positions.get(name))
        self._released_to = needed

    def _report(self, ticket: Ticket, commit: Commit, outcome: Outcome) -> TrainDone:
        seconds, needed = time.monotonic() - self._began, self._needed(ticket)
        return self._reports.report(
            ticket, commit, outcome, started=self._began_at, seconds=seconds, needed=needed
        )

    # -- the conductor

    def _conduct(self) -> None:
        try:
            while not self._stop.is_set():
                if not self._ticket_written():
                    self._wake.wait(pause(time.monotonic() - self._done_at, refused=self._refused))
                    self._wake.clear()
                if self.finished.is_set():
                    return
        except BaseException as error:
            _LOG.info("conductor of %s", self.sub.name, exc_info=error)  # `check` tells it in one message
            self.failure = error
            self.finished.set()

    def _ticket_written(self) -> bool:
        """Whether the next train leaves; a shortage of descriptors or memory is waited out."""
        try:
            written = self.drained() and self.steering.may_depart and self.next_ticket()
            if not written:
                self._planner.look_ahead()
                self._note_published()
        except OSError as error:
            if not is_resource_shortage(error):
                raise
            if not self._short:
                _LOG.warning("%s cannot read its input for now: %s; it tries again", self.sub.name, error)
            self._short = True
            return False
        self._short = False
        return written

    def _note_published(self) -> None:
        """Note it once nothing has come for a while: a consumer may then take the files of the last train."""
        quiet = time.monotonic() - self._done_at >= _QUIET
        if quiet and self._noted < self._committed == self._last:
            self._write_published()
            self._noted = self._committed

    def _write_published(self) -> None:
        self.log.must_own()  # the record has no owner in its name: a follower's must stay
        note_published(self.trains.directory, self._committed, sync=self.settings.sync)

    def next_ticket(self) -> bool:
        """Write the next ticket if there is a reason for one; False: nothing to do now."""
        now = self.steering.clock()
        if self._unwritten is not None:
            self._write(self._unwritten, now)  # the very same: a write that failed at its end has left it
            return True
        self._planner.look_ahead()
        policy = self.steering.policy
        length = policy.next_train(self._planner.situation(self._last + 1, now))
        self._refused = length is None and getattr(policy, "wakes", False)
        if length is None:
            return False
        leaves = self._next_ticket(length, now)
        if not leaves and hasattr(policy, "declined"):
            policy.declined(self.sub.name)
        return leaves

    def _next_ticket(self, length: int, now: float) -> bool:
        """Write the next ticket, of at most so many tuples of each input, if there is a reason for one."""
        if self._planner.final and not self._closed_earlier:
            self.finished.set()  # closed by this run: whatever has come since belongs to nobody
            return False
        upstream_done = self.settings.upstream_done()  # ask before looking, or the last entry could be missed
        looked = self._planner.look(self.steering.length(length), now)
        # The final train brings no tuples. Its horizons then cover all of them, however trains were cut, and
        # count windows that it cuts short are stamped with these.
        exhausted = self.once and not looked.fresh and not looked.waiting and upstream_done
        closing = exhausted and self.close
        if self._planner.final or not (self._planner.must_run(looked) or closing):
            self._planner.passed()
            if exhausted:
                self.finished.set()
            self.looks += not looked.waiting  # a file that is still being written is input to come
            return False
        # Skip horizon-only trains while input flows: the next data train moves the horizon anyway.
        self._write(self._planner.ticket(self._last + 1, looked, final=closing, epoch=self.log.epoch), now)
        return True

    def _write(self, ticket: Ticket, now: float) -> None:
        self._unwritten = ticket
        if self.settings.sync:
            self._sync_memories()
        crash_point("ticket-before-write")
        self.log.write_ticket(ticket)
        crash_point("ticket-after-write")
        self._unwritten = None
        self._planner.written(ticket, now)
        self._since = None if ticket.empty else ticket.since
        self._last = ticket.train
        self.steering.departed()
        self._ticketed.set()

    def _sync_memories(self) -> None:
        """Flush what sources remember, before a ticket builds on it."""
        for directory in self._memories.values():
            sync_tree(directory)

    # -- stopping

    def drain(self, timeout: float) -> bool:
        """Let no further train leave, and wait for the one that runs; False: it still does."""
        self._stop.set()
        until = time.monotonic() + timeout
        if self._conductor is not None:
            self._conductor.join(timeout)
        while self._runs() and time.monotonic() < until:
            time.sleep(0.005)
        return not self._runs()

    def _runs(self) -> bool:
        """Whether anything of it may still write: its conductor, or a train, also of one that has failed."""
        conducting = self._conductor is not None and self._conductor.is_alive()
        return conducting or (not self.drained() and self._is_active())

    def stop(self, timeout: float = 60.0) -> bool:
        """Finish the current train and leave windows open; False: it did not end in time."""
        until = time.monotonic() + timeout
        self.drain(timeout)
        self._end_query(until)
        if self.drained() and self.failure is None and self._committed >= 0:
            with suppress(FencedError):
                self._write_published()
            self._close_state()
        for source in self.inputs.values():
            source.close()
        self.trains.places.leave()
        if self.failure is not None and not self._told:
            _LOG.warning("sub-network '%s' had failed: %s", self.sub.name, one_line(self.failure))
        if self._runs():
            _LOG.warning("sub-network '%s': its train %d still runs", self.sub.name, self._last)
        return not self._runs()

    def _close_state(self) -> None:
        if self.trains.close_state() and (ticket := self.log.ticket(self._committed)) is not None:
            self._release_input(ticket)

    def _end_query(self, until: float) -> None:
        if self.query is None:
            return
        while (
            not self._waiting.is_set()
            and self._is_active()
            and self.failure is None
            and time.monotonic() < until
        ):
            time.sleep(0.002)  # until Spark has recorded the last train as committed
        # Spark interrupts the micro-batch but waits for it. Release it while it still waits: only then does
        # no further one begin.
        stopping = threading.Thread(target=self._stop_query, daemon=True)
        stopping.start()
        while self._is_active() and time.monotonic() < until:
            time.sleep(0.002)
        self._released.set()
        stopping.join(max(0.0, until - time.monotonic()))

    def _stop_query(self) -> None:
        with suppress(Exception):  # Spark itself may be gone
            self.query.stop()

    def _is_active(self) -> bool:
        """Whether the streaming query runs; it does not if Spark itself is gone."""
        with suppress(Exception):
            return self.query is not None and bool(self.query.isActive)
        return False

    def release(self) -> None:
        """Give up the claim on history: the query will not come back."""
        for source in self.inputs.values():
            if isinstance(source, PointInput):
                source.release()

    def forget_state(self) -> None:
        """Discard the state of boxes, but keep the position in the input."""
        self.trains.forget_state()

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Wait until the streaming query waits for tickets."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and self._is_active() and not self._waiting.is_set():
            time.sleep(0.002)

    def drained(self) -> bool:
        """Whether no train is running."""
        return self._committed >= self._last

    def check(self) -> None:
        """Raise what went wrong, if anything did, as one message."""
        if self.failure is None:
            self._keep_ticking()
        error = self.failure
        self._told = error is not None
        if isinstance(error, FencedError):
            raise error
        if error is not None:
            raise message_of(error, doing(self.trains, self._last)) from error

    def _keep_ticking(self) -> None:
        """Start the streaming query again if it ended outside of a train.

        For its log Spark runs small programs such as `chmod`. If one of them is killed, the query ends.
        """
        if self.query is None or self._stop.is_set():
            return
        ended_by = self._end_of_query()
        if ended_by is None or self.failure is not None:
            return
        if self._restarts >= self.attempts or kind_of(ended_by) is Kind.JVM:
            self.failure = ended_by
            return
        self._restarts += 1
        _LOG.warning("sub-network '%s': its streaming query ended; it starts again", self.sub.name)
        self._waiting.clear()
        try:
            self._start_ticks()
        except Exception as error:  # the JVM itself is dying
            self.failure = error

    def _end_of_query(self) -> BaseException | None:
        """What ended the streaming query; None while it runs."""
        try:
            if self.query.isActive:
                return None
            return self.query.exception() or RuntimeError("somebody stopped the streaming query")
        except Exception as error:  # Spark itself is gone
            return error
