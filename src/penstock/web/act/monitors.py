"""Monitors that pages open on arrows (A37): sampled while somebody looks, gone ten seconds later.

The tuples on an arrow are those that leave its tail. Those of a connection point are read from its table, so
they cost the trains nothing, and can be seen where the network does not run in this process.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from penstock.engine.arrow.samples import sample
from penstock.engine.contract.steering import Monitor
from penstock.engine.contract.train_done import TrainDone
from penstock.model.boxes import Filter
from penstock.model.checks.stream_types import output_type
from penstock.model.errors import did_you_mean
from penstock.model.json_types import JsonObject
from penstock.model.types import StreamType
from penstock.model.writing.network import Network
from penstock.runtime import Runtime
from penstock.store.errors import StoreError
from penstock.store.points.point import PointReader
from penstock.web.act.named import must_be_shallow
from penstock.web.errors import LookingOnlyError, RefusedChangeError, UnknownNameError
from penstock.web.look.rows_json import json_rows

Tell = Callable[[str, JsonObject, str], None]
"""Sends an event to pages: its name, its body, and the key of which the newest counts."""

MOST = 50
_KEPT = 500  # tuples that are kept for a page to read
_LEASE = 10.0  # seconds
_OPEN = 20  # monitors at once
_NAME = "page "  # before the names of our monitors in a ticket


@dataclass
class Opened:
    """An arrow that somebody looks at, and what has passed."""

    arrow: str
    monitor: Monitor
    subnetwork: str
    until: float
    rows: deque[JsonObject] = field(default_factory=lambda: deque(maxlen=_KEPT))
    next: int = 0


class PageMonitors:
    """All monitors that pages have opened on a runtime."""

    def __init__(
        self, runtime: Runtime | None, tell: Tell, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime, self._tell, self._clock = runtime, tell, clock
        self._opened: dict[str, Opened] = {}
        self._lock = threading.Lock()
        if runtime is not None:
            runtime.on_train(self._train_done)

    def tuples(
        self, arrow: str, tail: str, subnetwork: str, condition: str, after: int, limit: int
    ) -> JsonObject:
        """What has passed on an arrow since a page last asked; asking keeps the monitor open."""
        assert self._runtime is not None
        type_ = self._runtime.network.types.get(tail) or _attached_type(self._runtime, tail)
        check_condition(type_, condition)
        with self._lock:
            opened = self._open(arrow, tail, subnetwork, condition)
            rows = [row for row in opened.rows if row["n"] >= after][-limit:]
            return {
                "arrow": arrow,
                "columns": list(type_.schema.names),
                "rows": rows,
                "next": opened.next,
                "watched": True,
                "sampled": f"at most {MOST} tuples of a train",
            }

    def _open(self, arrow: str, tail: str, subnetwork: str, condition: str) -> Opened:
        key = f"{_NAME}{tail} {condition}"
        if key not in self._opened:
            if len(self._opened) >= _OPEN:
                raise RefusedChangeError(f"{_OPEN} arrows are watched already", hint="close some monitors")
            self._opened[key] = Opened(arrow, Monitor(tail, MOST, condition), subnetwork, 0.0)
            self._install(subnetwork)
        opened = self._opened[key]
        opened.until, opened.arrow = self._clock() + _LEASE, arrow
        return opened

    def _install(self, subnetwork: str) -> None:
        """Give the next ticket our monitors, beside those of others."""
        query = None if self._runtime is None else self._runtime.queries.get(subnetwork)
        if query is None:
            return
        others = {n: m for n, m in query.steering.monitors.items() if not n.startswith(_NAME)}
        mine = {n: o.monitor for n, o in self._opened.items() if o.subnetwork == subnetwork}
        query.steering.monitors = {**others, **mine}

    def _train_done(self, done: TrainDone) -> None:
        """Keep what a train has shown. It runs in the train's thread, so it only copies a few rows."""
        if not done.samples:
            return
        with self._lock:
            for name, table in done.samples.items():
                opened = self._opened.get(name)
                if opened is not None:
                    self._keep(opened, done.ticket.train, table)

    def _keep(self, opened: Opened, train: int, table: pa.Table) -> None:
        now = time.time()
        for row in json_rows(table.slice(max(0, table.num_rows - MOST))):
            opened.rows.append({"n": opened.next, "train": train, "at": now, "tuple": row})
            opened.next += 1
        body = {"arrow": opened.arrow, "next": opened.next}
        self._tell("tuples", body, f"tuples {opened.arrow}")

    def expire(self) -> None:
        """Close the monitors that nobody looks at any more."""
        with self._lock:
            now = self._clock()
            gone = [name for name, opened in self._opened.items() if opened.until <= now]
            for subnetwork in {self._opened.pop(name).subnetwork for name in gone}:
                self._install(subnetwork)

    def watching(self) -> list[str]:
        """The arrows that somebody looks at."""
        with self._lock:
            return sorted({opened.arrow for opened in self._opened.values()})


def _attached_type(runtime: Runtime, node: str) -> StreamType:
    for query in list(runtime.queries.values()):
        if node in query.sub.network.types:
            return query.sub.network.types[node]
    raise UnknownNameError(f"no node '{node}'", hint=did_you_mean(node, runtime.network.nodes))


def check_condition(type_: StreamType, condition: str) -> None:
    """Refuse a condition that does not fit the columns."""
    if condition:
        must_be_shallow(condition)
        output_type(Filter(name="condition", inputs=("arrow",), predicate=condition), [type_])


def point_tuples(
    checkpoint: Path, network: Network | None, arrow: str, point: str, condition: str, after: int
) -> JsonObject:
    """The newest tuples of the connection point at the tail of an arrow; `n` is the entry they came with."""
    if network is not None and point not in network.points:
        raise LookingOnlyError(
            f"the tuples behind '{point}' cannot be seen here",
            found="a checkpoint: only connection points and views keep tuples",
            hint="run the network with --console to watch any arrow",
        )
    try:
        reader = PointReader(checkpoint, point)
    except (StoreError, OSError):
        raise UnknownNameError(f"'{point}' holds no tuples yet") from None
    type_ = network.types[point] if network is not None else StreamType(reader.schema)
    check_condition(type_, condition)
    rows, newest = _newest_rows(reader, Monitor(point, MOST, condition), type_, after)
    answer = {"arrow": arrow, "columns": list(reader.schema.names), "rows": rows, "next": newest + 1}
    return {**answer, "watched": False, "sampled": f"the last {MOST} tuples of the point"}


def _newest_rows(
    reader: PointReader, monitor: Monitor, type_: StreamType, after: int
) -> tuple[list[JsonObject], int]:
    entries = [entry for entry in reader.entries() if entry.rows and entry.number >= after]
    rows: list[JsonObject] = []
    for entry in reversed(entries):
        if len(rows) >= monitor.most:
            break
        table = sample(reader.read(entry.number, entry.number), monitor, type_)
        of_entry = [
            {"n": entry.number, "train": entry.number, "at": entry.arrival, "tuple": row}
            for row in json_rows(table)
        ]
        rows = [*of_entry, *rows]
    latest = reader.latest()
    return rows[-monitor.most :], -1 if latest is None else latest.number
