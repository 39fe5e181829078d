"""`penstock lr run`: driver and pipeline together, from an input to answers, dead letters and a record.

Idea: the driver is a process of its own that fills a directory second by second, and the network follows the
directory. When the driver has finished, the network processes the rest and ends. A clean stop pauses the
clock, answers what was delivered, and leaves everything ready to resume. After a kill the clock has kept
running, and the driver catches up at once. Arasu et al., "Linear Road", VLDB 2004, section 3.3.
"""

from __future__ import annotations

import json
import math
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from penstock.control.control import Control
from penstock.control.options import control_of
from penstock.linear_road.drive.clock import Clock
from penstock.linear_road.drive.drive_report import DriveFigures
from penstock.linear_road.drive.driver import DrivePlan, Feed, feed_of
from penstock.linear_road.drive.driver_process import DriverProcess
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import Slices, is_slices, open_slices
from penstock.linear_road.errors import ClockError, InputError, RunError, RunStopped
from penstock.linear_road.network import (
    Session,
    answer_files,
    dead_letters,
    road_network,
    road_runtime,
    warm_up,
)
from penstock.linear_road.rows.copies import Copies, span_of
from penstock.linear_road.rows.inputs import Input, open_input
from penstock.linear_road.rows.progress import Progress as Bar
from penstock.linear_road.rows.progress import silent
from penstock.linear_road.run.collect_answers import Origins, count_answers, gather_answers, write_letters
from penstock.linear_road.run.left_out import left_out
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.progress import RunProgress
from penstock.linear_road.run.record import READ_BY, Cost, InputFigures, Rates, RunRecord, Series
from penstock.linear_road.run.resource_use import Sampler, machine, versions
from penstock.linear_road.run.response_times import ResponseTimes
from penstock.linear_road.run.run_folder import ANSWERS, LETTERS, RUN, RunFolder, open_run_folder
from penstock.model.writing.network import Network
from penstock.process.cores import usable_cores
from penstock.runtime import Runtime, local_session
from penstock.store.durable import make_directory, write_text
from penstock.store.ownership import owned

_LOOK_EVERY = 0.2
"""Seconds between two looks at a running network."""

_GROUPS = 48
"""Groups of expressways under control: the smallest part of them that can be left out."""

_DRAIN = 60.0
"""Most seconds that a stopped run takes to answer what was delivered."""


@dataclass(frozen=True)
class Watcher:
    """Callbacks that report the progress of a run; each may be left out."""

    preparing: Bar = silent
    say: Callable[[str], None] = lambda _sentence: None
    look: Callable[[RunProgress], None] = lambda _progress: None
    spark_started: Callable[[], None] = lambda: None
    """Called after Spark has set its own signal handlers, so that the caller can take the signals back."""
    beside: Callable[[Runtime], AbstractContextManager[object]] = nullcontext
    """What is served while the network runs, such as a console; it begins before the driver does."""


def run(
    plan: RunPlan,
    *,
    stop: threading.Event | None = None,
    watcher: Watcher | None = None,
    session: Session | None = None,
) -> RunRecord:
    """Run an input through the network and return the contents of `run.json`.

    `stop`, once set, ends the run cleanly. A run that is stopped before anything was driven has nothing to
    return and raises `RunStopped`. `session`: a Spark session to run on, which stays; by default one is made
    for the run.
    """
    folder = open_run_folder(plan)
    if folder.finished:
        return folder.record()
    watcher, stop = watcher or Watcher(), stop or threading.Event()
    # The whole folder has one owner: a second run would cut slices and deliver rows beside the first.
    with owned(folder.checkpoint / "run", take_over=plan.take_over) as ownership:
        try:
            slices = _slices(plan, folder, watcher.preparing, stop)
            drive, feed = whole_feed(_drive(plan, folder, slices), slices)
        except InputError:
            # A refused input must leave its --out free for another one.
            if not folder.resumed:
                ownership.release()  # an owner gives signs of life into the folder
                folder.discard()
            raise
        return _NetworkRun(plan, folder, drive, feed, stop, watcher).run(session)


def _slices(plan: RunPlan, folder: RunFolder, shown: Bar, stop: threading.Event) -> Slices:
    """The prepared input, or slices cut for this run.

    Rows that break the format are passed on to the pipeline.
    """
    if is_slices(plan.source):
        slices = open_slices(plan.source)
        if slices.format != "csv":
            raise InputError(
                f"the slices {plan.source} are {slices.format}, which the network does not read",
                hint="prepare them with --format csv",
            )
        return slices
    source = open_input(plan.source)
    span = span_of(source, lambda: raise_if_stopped(stop))
    groups = groups_of(plan, span.xways)
    cut = PreparePlan(source, groups, "csv", Copies(), span, plan.begin, plan.end, lenient=True)
    return prepare(cut, folder.slices, _stopping(shown, stop))


def raise_if_stopped(stop: threading.Event) -> None:
    """Raise if a stop was asked for; called between long steps, until something is driven."""
    if stop.is_set():
        raise RunStopped


def _stopping(shown: Bar, stop: threading.Event) -> Bar:
    """A progress bar that ends the work it shows once `stop` is set."""

    def progress(done: int, total: int) -> None:
        raise_if_stopped(stop)
        shown(done, total)

    return progress


def _drive(plan: RunPlan, folder: RunFolder, slices: Slices) -> DrivePlan:
    groups, expressways = None, plan.expressways
    if expressways is None and plan.qos and slices.halves and slices.span is not None:
        expressways = slices.span.expressways  # an expressway is in or out as a whole
    if expressways is not None:
        # No more groups than expressways: a half stays with its other half.
        groups = groups_of(plan, math.ceil(expressways))
    return DrivePlan(
        slices.path,
        to=str(folder.feed),
        speed=plan.speed,
        begin=plan.begin if is_slices(plan.source) else None,
        end=plan.end if is_slices(plan.source) else None,
        lenient=True,
        groups=groups,
        expressways=expressways,
        resume=folder.resumed,
        durability=plan.durability,
        delivery=plan.delivery,
    )


def whole_feed(drive: DrivePlan, slices: Slices) -> tuple[DrivePlan, Feed]:
    """What is delivered, in groups that keep certain expressways together.

    These are expressways from which one vehicle reports at nearly the same time.
    """
    feed = feed_of(drive, slices)
    while feed.torn:
        # With one group nothing is torn, so this ends.
        drive = replace(drive, groups=feed.groups - 1)
        feed = feed_of(drive, slices)
    return drive, feed


def clock_runs(feed: Path) -> bool:
    """Whether a killed run has left its clock running."""
    try:
        clock = Clock.load(feed)
    except ClockError:
        return False
    return clock.ticks and clock.paused_at is None


def groups_of(plan: RunPlan, expressways: int) -> int:
    """In how many groups expressways are delivered: one for each core; more if groups may be left out."""
    return max(1, min(max(_GROUPS, usable_cores()) if plan.qos else usable_cores(), expressways))


@dataclass
class _NetworkRun:
    """One call: from a session to the record of the run."""

    plan: RunPlan
    folder: RunFolder
    drive: DrivePlan
    feed: Feed
    stop: threading.Event
    watcher: Watcher
    driver: DriverProcess | None = None
    behind: bool = False
    """An earlier call was killed, and its clock has kept running."""
    warm_up_s: float = 0.0
    wall_s: float = 0.0
    stopped: bool = False
    gave_up_at: int | None = None
    _began: float = field(default_factory=time.time)

    def run(self, given: Session | None) -> RunRecord:
        make_directory(self.folder.feed)
        raise_if_stopped(self.stop)
        self.folder.note("started")
        self.behind = clock_runs(self.folder.feed)
        try:
            # The network is put together, and the past mapped, while Spark starts.
            with ThreadPoolExecutor(1, "road-network") as beside:
                net = beside.submit(self._network)
                session: Session = given or local_session(self.plan.master)
            try:
                return self._with_session(session, net.result)
            finally:
                if given is None:
                    session.stop()
        except RunStopped:
            self.folder.note("stopped")
            raise

    def _network(self) -> Network:
        return road_network(self.plan.past, self.folder.feed, self.folder.parts, speed=self.plan.speed)

    @property
    def _partitions(self) -> int:
        """Those of the network: each has a group, or several of those that may be left out."""
        return min(usable_cores(), self.feed.groups) if self.plan.qos else self.feed.groups

    def _control(self, net: Network) -> Control | None:
        return control_of(net, self.plan.headroom) if self.plan.qos else None

    def _stop_driver(self) -> None:
        if self.driver is not None:
            self.driver.stop()

    def _warm_up(self, session: Session) -> None:
        """Warm Spark up before the clock starts; if it runs already, the first train is the warm-up."""
        if self.behind:
            self.watcher.say("the clock has kept running: catching up at once, without a warm-up")
            return
        self.watcher.say("warming up: Spark, Python workers, compiled kernels")
        self.warm_up_s = warm_up(session, partitions=self._partitions, delivery=self.plan.delivery)

    def _with_session(self, session: Session, network: Callable[[], Network]) -> RunRecord:
        self.watcher.spark_started()
        raise_if_stopped(self.stop)
        self._say_if_joined()
        self._warm_up(session)
        raise_if_stopped(self.stop)
        # Raises here what went wrong beside the start of Spark.
        net = network()
        raise_if_stopped(self.stop)
        runtime = road_runtime(
            net,
            self.folder.checkpoint,
            spark=session,
            partitions=self._partitions,
            take_over=self.plan.take_over,
            durability=self.plan.durability,
            recovery=self.plan.recovery,
            interval=self.plan.interval,
            control=self._control(net),
        )
        progress = RunProgress(self.feed, self.folder.feed, self._partitions)
        runtime.on_train(progress.train_done)
        sampler = Sampler(progress.counts)
        try:
            # The network first: it must follow the directory when the first second comes.
            runtime.start()
            with self.watcher.beside(runtime):
                self.driver = DriverProcess.start(self.drive, self.folder.log)
                sampler.start()
                begun = time.monotonic()
                self._follow(runtime, self.driver, progress)
                self.wall_s = time.monotonic() - begun
                sampler.stop()
        finally:
            # The driver first: it pauses the clock, so that nothing falls due while the network stops.
            self._stop_driver()
            runtime.stop()
        return self._close(self.driver, progress, sampler)

    def _say_if_joined(self) -> None:
        span = self.feed.slices.span
        if span is not None and span.together:
            roads = ", ".join(f"{low} to {high}" for low, high in span.together)
            self.watcher.say(
                f"vehicles report from several expressways less than 30 s apart: {roads} stay in one "
                "partition"
            )

    def _follow(self, runtime: Runtime, driver: DriverProcess, progress: RunProgress) -> None:
        """Follow the run until all that the driver delivered is answered, or the run is stopped."""
        while driver.running and not self.stop.wait(_LOOK_EVERY):
            runtime.check()
            self._look(progress)
            self._give_up(progress)
        if self.stop.is_set():
            self.stopped = True
            driver.stop()
            # Answer what was delivered now: while the clock stands still, nothing can become late.
            # A hopeless trial has more to answer than it could in this time.
            if self.gave_up_at is None:
                runtime.wait_idle(timeout=_DRAIN)
            return
        # A driver that ended well must also have delivered the last second: a short run would look fast.
        failure = driver.failure()
        if failure is None and (reached := driver.note().get("next", 0)) < self.feed.end:
            failure = f"it got to second {reached}, not to {self.feed.end}"
        if failure is not None:
            raise RunError(f"the driver ended before its time: {failure}")
        runtime.finish()
        while not runtime.wait(timeout=_LOOK_EVERY):
            self._look(progress)
            if self.stop.is_set():
                self.stopped = True
                return

    def _give_up(self, progress: RunProgress) -> None:
        """Stop a trial that is hopelessly behind: it need not be driven to its end."""
        limit = self.plan.most_behind
        scored = progress.now() >= (self.plan.scored_from or 0)
        if limit is not None and scored and progress.backlog() > limit:
            self.gave_up_at = int(progress.now())
            # The way out is that of any stop. `gave_up_at` tells the two apart.
            self.stop.set()

    def _look(self, progress: RunProgress) -> None:
        self.watcher.look(progress)
        progress.sweep()

    def _close(self, driver: DriverProcess, progress: RunProgress, sampler: Sampler) -> RunRecord:
        self.watcher.say("gathering the answers")
        scored_from = self.plan.scored_from or 0
        responses = ResponseTimes(scored_from)
        size = self._gather(responses)
        letters = Origins(self.feed, self._source()).trace(dead_letters(self.folder.checkpoint))
        refused = write_letters(letters, self.folder.out / LETTERS)
        report = driver.note().get("report") or DriveFigures()
        record = self._record(report, progress, sampler, responses)
        record["dead_letters"], record["answer_bytes"] = refused, size
        if self.plan.qos:
            record["left_out"] = left_out(self.folder.checkpoint, self.feed)
        if self.plan.ticks and scored_from:
            record["warm_up_latency"] = responses.before_scored(self.feed.begin)
        # The record before the note: a run that counts as finished has its run.json.
        write_text(self.folder.out / RUN, json.dumps(record, indent=1) + "\n")
        self.folder.note("stopped" if self.stopped else "finished")
        if not self.stopped:
            # The finished files replace these working folders.
            replaced = (self.folder.parts,) if self.plan.one_file else ()
            for path in (self.folder.feed, self.folder.slices, *replaced):
                shutil.rmtree(path, ignore_errors=True)
        return record

    def _gather(self, responses: ResponseTimes) -> int:
        """Count response times, and join the answers if that is wanted; returns their bytes."""
        files = answer_files(self.folder.parts)
        if self.plan.one_file:
            return gather_answers(files, self.folder.out / ANSWERS, responses)
        return count_answers(files, responses)

    def _source(self) -> Input | None:
        stated = Path(str(self.feed.slices.manifest.get("source", "")))
        try:
            # The input may be gone by now. Then dead letters keep the file and line that were delivered.
            return open_input(stated)
        except InputError:
            return None

    def _record(
        self, report: DriveFigures, progress: RunProgress, sampler: Sampler, responses: ResponseTimes
    ) -> RunRecord:
        scored_from = max(self.plan.scored_from or 0, self.feed.begin)
        cost = sampler.between(scored_from, self.feed.end) if self.plan.ticks else sampler.whole()
        return {
            "kind": "linear-road-run",
            "started": datetime.fromtimestamp(self._began, UTC).isoformat(timespec="seconds"),
            "finished": not self.stopped,
            "gave_up_at": self.gave_up_at,
            "valid": not self.stopped and bool(report.get("valid")),
            "speed": self.plan.speed if self.plan.ticks else "max",
            "clock": "wall clock" if self.plan.ticks else "none: maximum speed, Emit = Time",
            "machine": machine(),
            "versions": versions(),
            "config": {**self.plan.as_json(), **self._settings()},
            "warm_up": {"seconds": round(self.warm_up_s, 2), "scored_from": scored_from},
            "input": self._input(report),
            "attempts": self.folder.attempts(),
            "format": self.plan.delivery,
            "read_by": READ_BY,
            "driver": report,
            "rates": self._rates(progress, cost, int(responses.all_answers.sum())),
            "latency": responses.figures() if self.plan.ticks else {},
            "answers": {str(kind): int(count) for kind, count in enumerate(responses.all_answers)},
            "cost": cost,
            "series": self._series(sampler, progress, responses),
        }

    def _settings(self) -> dict[str, str | float | None]:
        """What may differ between two calls of the same run."""
        plan = self.plan
        return {
            "partitions": self._partitions,
            "groups": self.feed.groups,
            "headroom": plan.headroom,
            "master": plan.master,
            "durability": plan.durability,
            "recovery": plan.recovery,
            "interval": plan.interval,
        }

    def _rates(self, progress: RunProgress, cost: Cost, answers: int) -> Rates:
        """Counts of this call (`answers`: of all calls), and rates.

        Rates cover the scored stretch, or the whole call if there is no clock or no sample.
        """
        wall = max(self.wall_s, 1e-3)
        sampled = cost if self.plan.ticks else Cost()
        return {
            "tuples_in": progress.rows_in,
            "answers": answers,
            "trains": progress.trains,
            "wall_s": round(wall, 3),
            "tuples_in_per_s": sampled.get("tuples_in_per_s") or round(progress.rows_in / wall, 1),
            "answers_per_s": sampled.get("tuples_out_per_s") or round(progress.rows_out / wall, 1),
        }

    def _input(self, report: DriveFigures) -> InputFigures:
        span = self.feed.slices.span
        return {
            "rows": self.feed.rows(),
            "xways": self.feed.expressways,
            "t0": self.feed.begin,
            "t1": self.feed.end,
            "copies": report.get("copies"),
            "stored_xways": None if span is None else span.expressways,
            "kept_together": [[low, high] for low, high in span.together] if span else [],
        }

    def _series(self, sampler: Sampler, progress: RunProgress, responses: ResponseTimes) -> Series:
        begin, end = self.feed.begin, self.feed.end
        series: Series = {"samples": sampler.as_json(), "trains": progress.spans}
        if self.plan.ticks:
            series |= {
                "second": list(range(begin, end)),
                "p50": responses.by_second(0.5, begin, end),
                "p99": responses.by_second(0.99, begin, end),
            }
        return series
