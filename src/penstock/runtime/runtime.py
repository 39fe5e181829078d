"""A running network (Aurora, Sect. 2.2, 3 and 4): start, stop, wait, status.

A runtime is put together by topic: `running_queries` starts the streaming queries, `attaching` changes which
of them run, `steering` changes how they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JError

from penstock.connectors.loading import check_sources
from penstock.engine.contract.policy import AsSoonAsPossible, TrainPolicy
from penstock.engine.contract.recovery import parse_recovery, state_texts
from penstock.engine.spark.session import cores_of, for_trains, local_session, one_runs, runs_here
from penstock.engine.spark.trains.failures import ATTEMPTS
from penstock.model.boxes import Source
from penstock.model.control_settings import ControlSettings
from penstock.model.errors import PenstockError, shown
from penstock.model.writing.network import Network
from penstock.process.cores import usable_cores
from penstock.rewrite.subnetworks import split
from penstock.runtime.attaching import Attaching
from penstock.runtime.checkpoint_identity import claim, settled
from penstock.runtime.forms import forms_texts
from penstock.runtime.idle import Progress, any_train, is_idle, progress_of
from penstock.runtime.measuring import Measuring
from penstock.runtime.point_maintenance import PointMaintenance
from penstock.runtime.records.spark_cpu import train_cpu
from penstock.runtime.records.train_records import Status, TrainRecords
from penstock.runtime.running_queries import RunSettings
from penstock.runtime.steering import Controller, Steered
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.join_choices import join_choices_text
from penstock.store.dead_letters import DeadLetters
from penstock.store.durable import Durability, known_durability, make_directory
from penstock.store.ownership import own

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK = 0.02  # seconds between two looks while waiting


class Runtime(Attaching, Steered):
    """Runs a network on Spark, on the given session or one of its own; `with` starts and stops it.

    `once` reads what is there and ends (use `wait`). Windows stay open, and the next run goes on with them.
    With `close` too the input is complete: all windows are closed, and the checkpoint takes no more tuples.
    `dead_letter_limit` fails the run when more tuples than that are refused. `policy` decides the length of
    trains, see `penstock.engine.contract.policy`. `nice` lowers the priority of a session of our own below
    that of this process.

    One process owns a checkpoint; a second one is refused unless the first is dead or it is told to
    `take_over`. With `durability="power"` whatever counts is flushed to disk, so it survives a power cut;
    with "process" it survives the death of any process.

    A train that loses a worker or an executor runs again, up to `attempts` times; then the run ends.

    With `recovery`, say "10 seconds", state is not written with every train but in snapshots, in the
    background, where the input of a sub-network stays readable. If the machine fails, trains of up to that
    length run again to rebuild it.

    `control`, say `penstock.Control()`, schedules and sheds by the QoS of the outputs.
    """

    def __init__(  # noqa: PLR0913 - the settings of a run, each with its default
        self,
        network: Network,
        spark: SparkSession | None = None,
        checkpoint: str | Path = "checkpoint",
        *,
        once: bool = False,
        close: bool = False,
        policy: TrainPolicy | None = None,
        partitions: int | None = None,
        fuse: bool = True,
        dead_letter_limit: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        master: str | None = None,
        nice: int = 0,
        durability: Durability = "process",
        take_over: bool = False,
        attempts: int = ATTEMPTS,
        recovery: str | float | None = None,
        control: Controller | None = None,
    ) -> None:
        width = partitions or max(2, usable_cores())
        settings = RunSettings(
            policy=policy or AsSoonAsPossible(),
            partitions=width,
            fuse=fuse,
            dead_letter_limit=dead_letter_limit,
            clock=clock,
            durability=known_durability(durability),
            take_over=take_over,
            attempts=attempts,
            recovery=parse_recovery(recovery),
        )
        _check_control(control)
        if close and not once:
            raise PenstockError(
                "`close` needs `once`: a run that goes on has no end to close windows at",
                hint="Runtime(..., once=True, close=True), or call finish() when the input is complete",
            )
        super().__init__(network, Path(checkpoint).resolve(), settings, once=once, close=close)
        self._master, self._nice = master, nice
        self._spark = spark
        self._ours = False  # whoever made the session ends it
        self._maintenance: PointMaintenance | None = None
        self._measuring: Measuring | None = None
        self.control = control
        self._under_control = False  # it has begun with this run, so it ends with it

    # -- start and stop

    def start(self) -> Self:
        """Start all sub-networks; the first train runs as soon as there is input.

        Refuses if another process owns the checkpoint.
        """
        check_sources(n for n in self.network.nodes.values() if isinstance(n, Source))
        make_directory(self.checkpoint)
        self._owner = own(self.checkpoint, take_over=self.settings.take_over)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self) -> None:
        self.subs = settled(self.checkpoint, split(self.network))
        prepare = getattr(self.control, "prepare", None)
        if prepare is not None:
            prepare(self)  # forms of sub-networks without state
        claim(self.checkpoint, self.network, self.subs, self.box_facts(self.subs))
        self._take_session()
        self.records = TrainRecords(self.checkpoint, self.network, self.subs, self.session)
        self.restore_drop_rates()
        if not getattr(self.control, "rates_outputs", False):
            # Valves open and trains leave as they come, whatever an earlier run has decided.
            Decisions(self.records.catalog).end_all(time.time())
        if self.control is not None:
            self.control.begin(self)
            self._under_control = True
        for sub in self.subs:
            self.begin(sub)
        self._maintenance = PointMaintenance(self).start()
        self._measuring = Measuring(self).start()

    def _take_session(self) -> None:
        """Use the given session, the one already running, or one of our own, which we end."""
        self._ours = self._spark is None and not one_runs()
        self._spark = for_trains(self._spark or local_session(self._master, nice=self._nice))
        self._cpu = train_cpu(self._spark)

    def stop(self) -> None:
        """Finish the current trains, leave windows open, and end what this runtime started."""
        try:
            if self.control is not None and self._under_control:
                self.control.end()
            for query in list(self.queries.values()):
                query.stop()
        finally:
            self._end()

    def _stop_measuring(self) -> None:
        if self._measuring is not None:
            self._measuring.stop()  # the last look sees the last trains
            self._measuring = None

    def _end(self) -> None:
        self._stop_measuring()
        try:
            if self._maintenance is not None:
                followed = self._owner is not None and self._owner.followed
                self._maintenance.stop(last_round=not followed)  # the last round sees the last trains
                self._maintenance = None
            if self.records is not None:
                self.records.close()
            if self._ours and self._spark is not None:
                with suppress(ConnectionError, Py4JError):  # Spark itself may be gone
                    self._spark.stop()
                self._spark, self._ours = None, False
        finally:
            if self._owner is not None:
                self._owner.release()

    def finish(self) -> None:
        """Declare the input complete: read what is there, close all windows and end.

        The same as `once` with `close`. Call `wait` afterwards.
        """
        with self._lock:
            self.once = self.close = True
            for query in list(self.queries.values()):
                query.close = True  # before `once`: the conductor must not end with windows open
                query.once = True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- wait

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a `once` run has finished; False on timeout. Raises what went wrong."""
        until = None if timeout is None else time.monotonic() + timeout
        while not all(query.finished.is_set() and query.drained() for query in list(self.queries.values())):
            self.check()
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(_LOOK)
        self.check()
        return True

    def wait_idle(self, timeout: float = 60.0) -> bool:
        """Wait until every sub-network has read all its input; False on timeout.

        Whatever was put into a source before the call has then left through the outputs, as far as windows
        are closed.
        """
        until, before = time.monotonic() + timeout, self._progress()
        while time.monotonic() < until:
            self.check()
            now = self._progress()
            if is_idle(before, now):
                self.check()  # one that is held or done may have failed since
                return True
            if any_train(before, now):
                before = now
            time.sleep(_LOOK)
        return False

    def _progress(self) -> dict[str, Progress]:
        return {name: progress_of(query) for name, query in list(self.queries.items())}

    # -- status

    def check(self) -> None:
        """Raise what went wrong in any sub-network, or if too many tuples were refused."""
        if self._owner is not None:
            self._owner.check()
        for query in list(self.queries.values()):
            query.check()
        if self.too_many_dead_letters():
            raise self._dead_letter_error()

    def _dead_letter_error(self) -> PenstockError:
        counts = DeadLetters(self.checkpoint).counts()
        reason, times = next(iter(counts.items()), ("", 0))
        refused, limit = self.running_records().dead, self.settings.dead_letter_limit
        most = f"most often: {reason} ({times})"
        return PenstockError(
            f"{refused} tuples went to the dead letters, the limit is {limit}; {most}",
            hint=f"look at them with: penstock dead-letters {self.checkpoint}",
        )

    def explain(self) -> str:
        """The network as text, how its state is kept, and what its diffused joins have chosen so far."""
        local = runs_here(self._spark, self._master)
        state = state_texts(self.subs, self.settings.durability, self.settings.recovery, local=local)
        joins = join_choices_text(self.network, self.checkpoint)
        return "\n\n".join([self.network.explain(), *forms_texts(self.subs, self.forms), state, joins])

    def qos(self) -> Any:
        """How outputs, sources, valves and sub-networks stand, as `penstock qos show` tells it."""
        if self.control is None:
            raise PenstockError(
                f"network '{self.network.name}' runs without control, so there is no QoS to report",
                hint="Runtime(..., control=penstock.Control()), or `penstock run --qos`",
            )
        self.running_records()  # before the start there is nothing to tell
        return self.control.qos()

    def cores(self) -> int:
        """How many cores of this machine trains can use."""
        return cores_of(self.session)

    def status(self) -> Status:
        """What each sub-network is doing: trains, rates, latencies, dead letters."""
        return self.running_records().status(list(self.queries))


def _check_control(control: object) -> None:
    """Refuse what cannot steer a run, such as settings, before Spark starts."""
    if control is None or (callable(getattr(control, "begin", None)) and not isinstance(control, type)):
        return
    raise PenstockError(
        "this cannot control a run",
        found=shown(control),
        expected="a penstock.Control, or an object with its methods",
        hint="control=penstock.Control.of(net.control)"
        if isinstance(control, ControlSettings)
        else "control=penstock.Control()",
    )
