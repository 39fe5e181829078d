"""The catalog's records: one plain type for each kind of thing it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any


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
class TrainRecord:
    """A committed train of a sub-network: when, how much, how long, and what each box did."""

    subnetwork: str
    train: int
    start: float  # wall time, seconds
    end: float
    rows_in: int
    boxes: tuple[BoxCount, ...] = ()
    accounts: tuple[SourceAccount, ...] = ()

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
    detail: Mapping[str, Any] = field(default_factory=dict)
