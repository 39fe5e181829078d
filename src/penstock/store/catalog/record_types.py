"""The catalog's records: one plain type for each kind of thing it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from functools import cached_property

from penstock.model.json_types import JsonMapping
from penstock.model.qos import QoS


@dataclass(frozen=True)
class NetworkVersion:
    """A version of a network: its text (YAML, or a pickle as text) and the hash of that text."""

    version: int
    name: str
    form: str
    text: str
    hash: str
    time: float


@dataclass(frozen=True)
class NodeRecord:
    """A node of the topology and the sub-network it runs in."""

    name: str
    kind: str
    subnetwork: str = ""
    tag: str = ""
    description: str = ""
    group: tuple[str, ...] = ()
    qos: QoS | None = None


@dataclass(frozen=True)
class ArrowRecord:
    """Tuples flow from `tail` to the `index`-th input of `head`."""

    tail: str
    head: str
    index: int = 0


@dataclass(frozen=True)
class Topology:
    """The nodes and arrows of one version of the network."""

    version: int
    nodes: tuple[NodeRecord, ...]
    arrows: tuple[ArrowRecord, ...]


@dataclass(frozen=True)
class BoxCount:
    """What one box did in one train, or over many.

    `estimated`: in some trains the figure was estimated from others instead of counted. `wall`, `cpu`:
    seconds in the tasks; 0 for native boxes, whose cost Spark does not report.
    """

    box: str
    rows_in: int = 0
    rows_out: int = 0
    dead: int = 0
    dropped: int = 0
    estimated: bool = False
    wall: float = 0.0
    cpu: float = 0.0

    @property
    def selectivity(self) -> float | None:
        """Tuples out for each tuple in; None before any came.

        >>> BoxCount("slow", rows_in=8, rows_out=2).selectivity
        0.25
        """
        return self.rows_out / self.rows_in if self.rows_in else None


@dataclass(frozen=True)
class SourceAccount:
    """What became of the tuples that a source offered, in one train or over all time."""

    source: str
    offered: int = 0
    let_in: int = 0
    dead: int = 0  # refused at entry as malformed or without a time
    late: int = 0
    shed: int = 0

    def __add__(self, other: SourceAccount) -> SourceAccount:
        """Both together, under the name of the first."""
        pairs = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return SourceAccount(self.source, *(one + two for one, two in pairs))


@dataclass(frozen=True)
class Shed:
    """What one valve did in one train: tuples that came to it, and those it shed."""

    valve: str
    offered: int = 0
    shed: int = 0


@dataclass(frozen=True)
class TrainRecord:
    """A committed train of a sub-network: when, how much, how long, and what each box did."""

    subnetwork: str
    train: int
    start: float  # wall time, seconds
    end: float
    rows_in: int
    boxes: tuple[BoxCount, ...] = ()
    accounts: tuple[SourceAccount, ...] = ()
    cpu: float | None = None  # CPU-seconds of everything that the train used; None: not measured
    alone: bool = True  # no train of another sub-network ran meanwhile
    sheds: tuple[Shed, ...] = ()  # by valve
    decoded: int = 0  # of those shed at sources, the ones that were decoded first: see `Valve.early`

    @property
    def duration(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Totals:
    """All trains of a sub-network so far, including those whose own records are gone."""

    subnetwork: str
    trains: int
    rows_in: int
    duration: float


@dataclass(frozen=True)
class Latency:
    """Seconds from arrival to sink of an output's tuples, over the window that ended at `time`."""

    output: str
    time: float
    samples: int
    p50: float
    p95: float
    p99: float
    max: float

    @staticmethod
    def of(output: str, time: float, seconds: Iterable[float]) -> Latency | None:
        """The figures of a window's samples by nearest rank; None if there are none.

        >>> Latency.of("jams", 0.0, [3.0, 1.0, 2.0]).p50
        2.0
        """
        ordered = sorted(seconds)
        if not ordered:
            return None
        p50, p95, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95, 0.99))
        return Latency(output, time, len(ordered), p50, p95, p99, ordered[-1])


@dataclass(frozen=True)
class InputLoad:
    """What came to an input of a sub-network, and what waits there, at one moment. None means unknown.

    `taken`: tuples since the query started. `offered_rate`: tuples a second that come, taken or not. `age`:
    seconds that the oldest waiting tuple has waited.
    """

    input: str
    subnetwork: str
    time: float
    taken: int = 0
    offered_rate: float | None = None
    waiting: int | None = None
    waiting_bytes: int | None = None
    age: float | None = None


@dataclass(frozen=True)
class OutputSecond:
    """What one output did in one second.

    `delays`: (seconds from arrival to sink, tuples). `age`: of the oldest tuple that waits for it at the end
    of the second; None if none does. `share`: of what was due, as far as valves let it through.
    """

    output: str
    second: int
    delays: tuple[tuple[float, int], ...] = ()
    age: float | None = None
    share: float = 1.0

    @cached_property
    def tuples(self) -> int:
        """How many were delivered."""
        return sum(tuples for _, tuples in self.delays)

    @property
    def due(self) -> bool:
        """Whether anything was to be delivered. A second in which nothing was is skipped."""
        return bool(self.tuples) or self.age is not None or self.share < 1


@dataclass(frozen=True)
class StorageLocation:
    """Where something is kept: the checkpoint of a sub-network, the table of a connection point."""

    name: str
    kind: str
    path: str
    time: float


@dataclass(frozen=True)
class Event:
    """Something that happened to the running network: attach, detach, replace, idle, drop_rate and others."""

    kind: str
    subject: str  # the sub-network, output or box
    time: float
    detail: JsonMapping = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """Something that control decided: a sentence, its numbers, what it was to achieve and what it did.

    `outputs`: those it concerns. `expected` and `realised` have the same keys; `realised` is empty until it
    was measured, some seconds later. `until`: when another decision took its place; None while it holds.
    """

    time: float
    kind: str
    subject: str
    sentence: str
    outputs: tuple[str, ...] = ()
    numbers: JsonMapping = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    realised: Mapping[str, float] = field(default_factory=dict)
    until: float | None = None
    id: int = 0

    def in_force(self, at: float) -> bool:
        """Whether it held at this time.

        >>> Decision(5.0, "shed", "cars", "", until=9.0).in_force(9.0)
        False
        """
        return self.time <= at and (self.until is None or at < self.until)
