"""What the console looks at: a network that runs in this process, or what a checkpoint's catalog tells."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from penstock.model.errors import PenstockError, one_line
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime import Runtime
from penstock.runtime.records.train_records import Status, SubnetworkStatus
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import Latency, NetworkVersion, TrainRecord
from penstock.store.ownership import SignOfLife, sign_of_life
from penstock.web.look.network_json import NetworkText

_RECENT = 32  # trains that a rate covers
_FRESH = 10.0  # seconds: a run that lives records something more often
LOOKING_ONLY = "this console only looks at a checkpoint: the network does not run in its process"


class Watched(Protocol):
    """What can be asked about a network, wherever it runs."""

    checkpoint: Path
    catalog: Catalog

    @property
    def runtime(self) -> Runtime | None:
        """The run itself, if it is in this process: only then can anything be changed."""

    def network(self) -> Network | None:
        """The network; None if only its topology is known."""

    def name(self) -> str:
        """The name of the network."""

    def text(self) -> NetworkText:
        """The current version, and its text."""

    def homes(self) -> dict[str, str]:
        """The sub-network in which each node runs."""

    def status(self) -> Status:
        """The figures now."""

    def state(self) -> tuple[str, str]:
        """Whether it runs, in one word; and what went wrong."""


class RunningNetwork:
    """A network that runs in this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.checkpoint = runtime.checkpoint
        self.catalog = Catalog(runtime.checkpoint / "catalog.db")

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    def network(self) -> Network:
        return self._runtime.network

    def name(self) -> str:
        return self._runtime.network.name

    def text(self) -> NetworkText:
        version = self.catalog.version()
        try:
            return NetworkText(version, to_yaml(self._runtime.written))
        except PenstockError as error:
            return NetworkText(version, None, f"it has no text form: {one_line(error)}")

    def homes(self) -> dict[str, str]:
        return homes_of(query.sub for query in list(self._runtime.queries.values()))

    def status(self) -> Status:
        return self._runtime.status()

    def state(self) -> tuple[str, str]:
        if self._runtime._measuring is None:  # it was stopped
            return "ended", ""
        try:
            self._runtime.check()
        except PenstockError as error:
            return "failed", str(error)
        queries = list(self._runtime.queries.values())
        done = bool(queries) and all(query.finished.is_set() for query in queries)
        return ("finished" if done else "running"), ""


class RecordedNetwork:
    """A network that runs elsewhere, or has run: what its checkpoint tells."""

    def __init__(self, checkpoint: Path) -> None:
        path = checkpoint / "catalog.db"
        if not path.exists():
            raise PenstockError(
                f"{checkpoint} is no checkpoint",
                found="no catalog.db",
                hint="give the directory of a run, such as .penstock/<network>",
            )
        self.checkpoint, self.catalog = checkpoint.resolve(), Catalog(path)
        self._read: tuple[int, Network | None, NetworkVersion] | None = None
        self._sign: SignOfLife | None = None
        self._moved = 0.0
        self._newest()

    @property
    def runtime(self) -> None:
        return None

    def network(self) -> Network | None:
        return self._newest()[1]

    def name(self) -> str:
        return self._newest()[2].name

    def text(self) -> NetworkText:
        version, _, record = self._newest()
        return NetworkText(version, record.text if record.form == "yaml" else None, LOOKING_ONLY)

    def _newest(self) -> tuple[int, Network | None, NetworkVersion]:
        version = self.catalog.version()
        if self._read is None or self._read[0] != version:
            record = self.catalog.network(version)
            if record is None:
                problem = f"{self.checkpoint} knows no network"
                raise PenstockError(problem, found="an empty catalog", hint="run a network first")
            self._read = version, _network(record), record
        return self._read

    def homes(self) -> dict[str, str]:
        topology = self.catalog.topology()
        nodes = () if topology is None else topology.nodes
        return {node.name: node.subnetwork for node in nodes if node.subnetwork}

    def status(self) -> Status:
        catalog, counts = self.catalog, self.catalog.counts()
        subs = tuple(_subnetwork(name, catalog.trains(name, last=_RECENT)) for name in catalog.totals())
        totals = catalog.totals()
        whole = tuple(_with_totals(sub, totals[sub.name].trains, totals[sub.name].rows_in) for sub in subs)
        return Status(
            whole,
            counts,
            self._latencies(),
            sum(count.dead for count in counts.values()),
            {},
            catalog.accounts(),
            tuple(catalog.loads()),
            {name: tuple(seconds) for name, seconds in catalog.output_seconds(60).items()},
        )

    def _latencies(self) -> dict[str, Latency]:
        topology = self.catalog.topology()
        outputs = [n.name for n in (topology.nodes if topology else ()) if n.kind in ("output", "view")]
        known = {name: self.catalog.latency(name) for name in outputs}
        return {name: latency for name, latency in known.items() if latency is not None}

    def state(self) -> tuple[str, str]:
        sign, now = sign_of_life(self.checkpoint), time.time()
        if self._sign is not None and sign is not None and sign != self._sign:
            self._moved = now
        self._sign = sign
        if sign is None or sign.ended:
            return "ended", ""
        loads = self.catalog.loads()
        newest = max((load.time for load in loads), default=0.0)
        return ("running elsewhere" if now - max(newest, self._moved) < _FRESH else "ended"), ""


def homes_of(subs: Iterable[SubNetwork]) -> dict[str, str]:
    """The sub-network of each node. A point belongs to its writer; its readers only start there."""
    homes: dict[str, str] = {}
    for sub in subs:
        for name in sub.network.nodes:
            if name not in sub.inputs or name in sub.network.sources:
                homes[name] = sub.name
    return homes


def _network(record: NetworkVersion) -> Network | None:
    """The network of a recorded text; None if there is none, or if its functions are not to be had here."""
    if record.form != "yaml":
        return None
    try:
        return from_yaml(record.text)
    except (PenstockError, ImportError):
        return None


def _subnetwork(name: str, trains: list[TrainRecord]) -> SubnetworkStatus:
    span = trains[-1].end - trains[0].end if len(trains) > 1 else 0.0
    rows = sum(train.rows_in for train in trains[1:])
    last = trains[-1] if trains else None
    length, seconds = (last.rows_in, last.duration) if last is not None else (0, 0.0)
    rate = rows / span if span > 0 else 0.0
    return SubnetworkStatus(name, 0, 0, rate, length, seconds, seconds, ())


def _with_totals(sub: SubnetworkStatus, trains: int, rows: int) -> SubnetworkStatus:
    return replace(sub, trains=trains, rows=rows)
