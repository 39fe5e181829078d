"""What the catalog records about a running network: trains, counts, latencies, events (A53). And its status.

There are two feeds. The engine reports each committed train. A StreamingQueryListener adds what only Spark
knows: the floor of a micro-batch, which is the time a trigger took around the train itself.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.cost import BoxCost
from penstock.engine.contract.train_done import TrainDone
from penstock.model.errors import PenstockError
from penstock.model.text.yaml_form import to_yaml
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime.records import left_out
from penstock.runtime.records.output_delays import OutputDelays
from penstock.runtime.records.progress_listener import TriggerListener
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import (
    BoxCount,
    InputLoad,
    Latency,
    OutputSecond,
    Shed,
    SourceAccount,
    TrainRecord,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRAINS = 32  # rates cover this many trains
_WINDOW = 512  # latency samples kept for each output
_LATENCY_EVERY = 2.0  # seconds between two latency records of an output


@dataclass(frozen=True)
class SubnetworkStatus:
    """The current state of one sub-network.

    `train`: seconds of work in its last train. `trigger`: the same plus what Spark added
    around its last micro-batch, which the trains of ten seconds share.
    """

    name: str
    trains: int
    rows: int
    rate: float
    length: int
    train: float
    trigger: float
    idle: tuple[str, ...]


@dataclass(frozen=True)
class RunTotals:
    """What this run has done so far, whatever earlier ones did: tuples offered and refused.

    `passed`: some tuple reached an output or a connection point.
    """

    offered: int = 0
    dead: int = 0
    passed: bool = False

    @property
    def all_refused(self) -> bool:
        """Whether there was input, and nothing came of it but dead letters.

        >>> RunTotals(offered=5, dead=5).all_refused, RunTotals(offered=5, dead=5, passed=True).all_refused
        (True, False)
        """
        return 0 < self.offered <= self.dead and not self.passed


@dataclass(frozen=True)
class Status:
    """The network now: sub-networks, tuples by box, latency by output in seconds, dead letters so far."""

    subnetworks: tuple[SubnetworkStatus, ...]
    boxes: dict[str, BoxCount]
    latency: dict[str, Latency]
    dead: int
    flows: dict[str, BoxFlow] = field(default_factory=dict)
    accounts: dict[str, SourceAccount] = field(default_factory=dict)  # over all time, by source
    inputs: tuple[InputLoad, ...] = ()  # what waits, as of the last second
    seconds: dict[str, tuple[OutputSecond, ...]] = field(default_factory=dict)  # the last minute, by output
    this_run: RunTotals = RunTotals()


@dataclass(frozen=True)
class BoxFlow:
    """The current flow into and out of a box: tuples a second, and in its last train with tuples."""

    rate_in: float = 0.0
    rate_out: float = 0.0
    train_in: int = 0
    train_out: int = 0


@dataclass(frozen=True)
class _BoxTrain:
    """What a box did in one train."""

    time: float
    count: BoxCount


@dataclass
class _Running:
    """What is remembered about a sub-network between trains."""

    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_TRAINS))  # (time, rows)
    rows: int = 0
    trains: int = 0
    train: float = 0.0
    length: int = 0
    idle: tuple[str, ...] = ()


class TrainRecords:
    """Feeds the catalog; all methods may be called from any thread."""

    def __init__(
        self, checkpoint: Path, network: Network, subs: tuple[SubNetwork, ...], spark: SparkSession
    ) -> None:
        self.catalog = Catalog(checkpoint / "catalog.db")
        self.dead = 0
        self.network(network, subs)
        self.newest: dict[str, TrainRecord] = {}  # the last train of each sub-network
        self._running: dict[str, _Running] = {}
        self._boxes: dict[str, BoxCount] = dict(self.catalog.counts())
        self.dead = sum(count.dead for count in self._boxes.values())
        self._accounts: dict[str, SourceAccount] = dict(self.catalog.accounts())
        self._this_run = RunTotals()
        self._flows: dict[str, deque[_BoxTrain]] = {}
        self._latency: dict[str, deque[float]] = {}
        self._recorded: dict[str, float] = {}  # when, on the monotonic clock
        self._epochs: dict[str, int] = {}  # of diffused joins
        self._left_out: dict[str, left_out.Groups] | None = None  # by source; None: the catalog knows
        self._trigger: dict[str, float] = {}
        self._loads: tuple[InputLoad, ...] = ()
        self._delays = OutputDelays()
        self._lock = threading.Lock()
        self._spark, self._listener = spark, TriggerListener(self._trigger)
        spark.streams.addListener(self._listener)

    def network(self, network: Network, subs: tuple[SubNetwork, ...]) -> None:
        """Record this version of the network."""
        homes = {
            name: sub.name
            for sub in subs
            for name in sub.network.nodes
            if name not in sub.inputs or name in network.sources
        }
        try:
            text, form = to_yaml(network), "yaml"
        except PenstockError:
            # Python iterables, memory sinks and the like have no text form, so keep a description in words
            # instead.
            text, form = network.explain(), "explain"
        self.catalog.record_network(network.name, text, network.nodes.values(), form=form, subnetworks=homes)

    def location(self, name: str, path: Path) -> None:
        """Note where a sub-network keeps its checkpoint."""
        self.catalog.record_location(name, "query", path)

    def event(self, kind: str, subject: str, **detail: Any) -> None:
        """Record a change made while running."""
        self.catalog.record_event(kind, subject, **detail)

    def forget(self, sub: SubNetwork) -> None:
        """Forget the figures of a sub-network that is gone; its dead letters and events stay."""
        boxes = [name for name in sub.network.nodes if name not in sub.inputs]
        self.catalog.forget_subnetwork(sub.name)
        with self._lock:
            self._running.pop(sub.name, None)
            for figures in (self._boxes, self._flows, self._latency):
                for name in boxes:
                    figures.pop(name, None)

    def train_done(self, done: TrainDone) -> None:
        """Record a committed train."""
        now, wall = time.monotonic(), time.time()
        boxes = tuple(_box_count(done.commit, name) for name in done.commit.counts)
        accounts = tuple(
            SourceAccount(name, *astuple(account)) for name, account in done.commit.accounts.items()
        )
        train, rows = done.ticket.train, done.ticket.rows
        cpu, alone = (None, True) if done.cpu is None else (done.cpu.seconds, done.cpu.alone)
        sheds = tuple(Shed(at, flow.offered, flow.shed) for at, flow in done.commit.valves.items())
        record = TrainRecord(
            subnetwork=done.subnetwork,
            train=train,
            start=done.started,
            end=wall,
            rows_in=rows,
            boxes=boxes,
            accounts=accounts,
            cpu=cpu,
            alone=alone,
            sheds=sheds,
            decoded=_decoded(done),
        )
        self.newest[done.subnetwork] = record
        with self._lock:
            again = self._published_again(record)
            self._note(done, now)
            for count in () if again else boxes:
                self._boxes[count.box] = _sum(self._boxes.get(count.box, BoxCount(count.box)), count)
                if not done.ticket.empty:
                    self._flows.setdefault(count.box, deque(maxlen=_TRAINS)).append(_BoxTrain(now, count))
            for account in () if again else accounts:
                source = account.source
                self._accounts[source] = self._accounts.get(source, SourceAccount(source)) + account
            self.dead += 0 if again else done.commit.dead
            self._this_run = _with_train(self._this_run, done) if not again else self._this_run
            self._outputs(done, now, wall)
        if not again:
            self._delays.take(done, wall)
        self.catalog.record_train(record)
        self._spread(done)
        self._leave_out(done)

    def _published_again(self, record: TrainRecord) -> bool:
        """Whether the catalog has this train already: a crash cut it off after its commit."""
        if record.subnetwork in self._running:
            return False
        last = self.catalog.trains(record.subnetwork, last=1)
        known = [(train.train, train.accounts, sorted(train.boxes, key=_name)) for train in last]
        return known == [(record.train, record.accounts, sorted(record.boxes, key=_name))]

    def _spread(self, done: TrainDone) -> None:
        """Record when a diffused join changed its scheme, and what was measured before."""
        for name, roles in done.ticket.joins.items():
            chosen = {key: getattr(roles, key) for key in ("epoch", "scheme", "servers", "rates", "share")}
            if name not in self._epochs:
                known = self.catalog.events("diffusion", name, last=1)
                self._epochs[name] = known[0].detail["epoch"] if known else -1
            if roles.epoch > self._epochs[name]:
                self._epochs[name] = roles.epoch
                self.event("diffusion", name, train=done.ticket.train, **chosen)

    def _leave_out(self, done: TrainDone) -> None:
        """Record which groups of feeds are left out, when that changes."""
        if self._left_out is None:
            known = {event.subject: event for event in self.catalog.events(left_out.EVENT)}
            self._left_out = {name: frozenset(e.detail["groups"]) for name, e in known.items()}
        for source, (begin, groups) in left_out.changes(done.ticket, self._left_out).items():
            self._left_out[source] = groups
            self.event(left_out.EVENT, source, train=done.ticket.train, **left_out.detail(begin, groups))

    def _note(self, done: TrainDone, now: float) -> None:
        mine = self._running.setdefault(done.subnetwork, _Running())
        mine.recent.append((now, done.ticket.rows))
        mine.rows, mine.trains = mine.rows + done.ticket.rows, done.ticket.train + 1
        mine.train, mine.length = done.seconds, done.ticket.rows
        if set(done.ticket.idle) - set(mine.idle):
            self.event("idle", done.subnetwork, inputs=done.ticket.idle)
        mine.idle = tuple(done.ticket.idle)

    def _outputs(self, done: TrainDone, now: float, wall: float) -> None:
        """Latency from arrival to sink of the oldest tuple behind those that left now.

        It includes the way through the points above and the time spent in a backlog.
        """
        since = done.ticket.since
        if since is None:
            return
        for name in done.delivered:
            samples = self._latency.setdefault(name, deque(maxlen=_WINDOW))
            samples.append(max(0.0, wall - since))
            if now - self._recorded.get(name, -_LATENCY_EVERY) >= _LATENCY_EVERY:
                self._recorded[name] = now
                latency = Latency.of(name, wall, samples)
                if latency is not None:
                    self.catalog.record_latency(latency)

    def output_seconds(self) -> dict[str, tuple[OutputSecond, ...]]:
        """The seconds of the last minute in which anything was due, by output, oldest first."""
        return self._delays.latest(time.time())

    def accounts(self) -> dict[str, SourceAccount]:
        """What became of the tuples that each source offered, over all time."""
        with self._lock:
            return dict(self._accounts)

    def second_over(self, second: int, loads: Iterable[InputLoad], ages: Mapping[str, float | None]) -> None:
        """Record a second: what waits at inputs, and what outputs delivered."""
        self._loads = tuple(loads)
        self.catalog.record_second(second, self._loads, self._delays.end_second(second, ages))

    def status(self, queries: Iterable[str]) -> Status:
        """The current status, with that of these sub-networks."""
        with self._lock:
            subs = tuple(self._status(name) for name in queries)
            now, wall = time.monotonic(), time.time()
            latency = {name: Latency.of(name, wall, samples) for name, samples in self._latency.items()}
            return Status(
                subnetworks=subs,
                boxes=dict(self._boxes),
                latency={name: figures for name, figures in latency.items() if figures is not None},
                dead=self.dead,
                flows={name: _flow(passed, now) for name, passed in self._flows.items()},
                accounts=dict(self._accounts),
                inputs=self._loads,
                seconds=self._delays.latest(wall),
                this_run=self._this_run,
            )

    def _status(self, name: str) -> SubnetworkStatus:
        mine = self._running.get(name, _Running())
        rows = sum(count for _, count in list(mine.recent)[1:])
        span = mine.recent[-1][0] - mine.recent[0][0] if len(mine.recent) > 1 else 0.0
        rate = rows / span if span > 0 else 0.0
        return SubnetworkStatus(
            name,
            mine.trains,
            mine.rows,
            rate,
            mine.length,
            mine.train,
            mine.train + self._trigger.get(name, 0.0),
            mine.idle,
        )

    def close(self) -> None:
        """Write what is still pending and detach from Spark."""
        for name, samples in self._latency.items():
            latency = Latency.of(name, time.time(), samples)
            if latency is not None:
                self.catalog.record_latency(latency)
        with contextlib.suppress(Exception):  # the session may be gone already
            self._spark.streams.removeListener(self._listener)
        self.catalog.close()


def _decoded(done: TrainDone) -> int:
    """Tuples that valves at sources have dropped by value, time or key, so they had to be read first."""
    late = {valve.at for valve in done.ticket.valves if not valve.early}
    return sum(account.shed for source, account in done.commit.accounts.items() if source in late)


def _name(count: BoxCount) -> str:
    return count.box


def _with_train(totals: RunTotals, done: TrainDone) -> RunTotals:
    commit = done.commit
    offered = sum(account.offered for account in commit.accounts.values())
    passed = bool(done.delivered) or any(part.files for part in commit.points.values())
    return RunTotals(totals.offered + offered, totals.dead + commit.dead, totals.passed or passed)


def _sum(one: BoxCount, other: BoxCount) -> BoxCount:
    return BoxCount(
        one.box,
        one.rows_in + other.rows_in,
        one.rows_out + other.rows_out,
        one.dead + other.dead,
        one.dropped + other.dropped,
        one.estimated or other.estimated,
        one.wall + other.wall,
        one.cpu + other.cpu,
    )


def _box_count(commit: Commit, name: str) -> BoxCount:
    counts, cost = commit.counts[name], commit.costs.get(name, BoxCost())
    return BoxCount(
        name,
        counts.get("in", 0),
        counts.get("out", 0),
        counts.get("dead", 0),
        counts.get("dropped", 0),
        "estimated" in counts,
        cost.wall,
        cost.cpu,
    )


def _flow(passed: deque[_BoxTrain], now: float) -> BoxFlow:
    """Rates from the first remembered train until now, so that they fall when nothing comes."""
    last, later = passed[-1].count, list(passed)[1:]
    span = now - passed[0].time
    rates = [
        sum(rows) / span if later and span > 0 else 0.0
        for rows in zip(*((p.count.rows_in, p.count.rows_out) for p in later), strict=True)
    ] or [0.0, 0.0]
    return BoxFlow(rates[0], rates[1], last.rows_in, last.rows_out)
