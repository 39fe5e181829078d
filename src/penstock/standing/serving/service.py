"""Standing queries on a running network: register once, invoke any time, over old data and new (PSoup, Sect. 1; P01, P08, P09).

    service = StandingQueries(runtime)
    slow = service.register("SELECT vid, spd FROM reports WHERE spd < 20 BEGIN now - 10 minutes END now")
    slow.invoke()        # a pyarrow Table, now and whenever it is wanted
    slow.unregister()

There is one streaming query for each stream that queries name, never one for each query, and an invocation starts no Spark job. Handles and results
survive a restart on the same checkpoint: queries are in the registry, tuples in the connection points.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from penstock.model.boxes import ConnectionPoint, Source, View
from penstock.model.durations import parse_duration
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, at_point
from penstock.runtime import Runtime
from penstock.standing.answers.changes import Change, changes
from penstock.standing.answers.query_engine import QueryEngine
from penstock.standing.answers.registered_query import Limits, RegisteredQuery
from penstock.standing.answers.window_gather import compile_loops
from penstock.standing.errors import QueryError, UnknownHandleError
from penstock.standing.language.language import parse
from penstock.standing.language.query import StreamInfo
from penstock.standing.serving.point_feed import InputAfterHistory, ProbeTrains, archived, load_history
from penstock.standing.serving.registry import Registry, RegistryEntry

_LOG = logging.getLogger("penstock")
DEFAULT_BUDGET = 2 << 30
_PREFIX = "standing-"
_FAR = 4e12  # seconds: what fits into 64 bits as microseconds, with room for windows around it
Listed = list[dict[str, Any]]


@dataclass(frozen=True)
class Handle:
    """A client's hold on a standing query; `service.handle(id)` gives it again after any disconnection."""

    service: StandingQueries
    id: str

    def invoke(self, *, at: str | float | datetime | None = None) -> pa.Table:
        """The current answer; `at` moves `now` back to an earlier event time, as far as tuples are retained (P41)."""
        return self.service.invoke(self.id, at=at)

    def changes(self, timeout: float | None = None) -> Iterator[Change]:
        """What comes into the answer and leaves it, train by train; the first change brings the whole answer."""
        return self.service.changes(self.id, timeout)

    def unregister(self) -> None:
        """End the query; the handle is of no use afterwards."""
        self.service.unregister(self.id)

    def describe(self) -> dict[str, Any]:
        """Text, mode, windows, and how often it was invoked."""
        return self.service.engine.registered(self.id).describe()


@dataclass(frozen=True)
class BrokenQuery:
    """A query of an earlier run that the network no longer fits, and why; it stays until it is unregistered."""

    entry: RegistryEntry
    why: str

    def describe(self) -> dict[str, Any]:
        """As a registered query is described, with `broken`: why it has no answer."""
        entry = self.entry
        return {
            "handle": entry.handle, "client": entry.client, "query": entry.text, "mode": entry.mode or "", "streams": [],
            "windows": [], "kinds": [], "created": entry.created, "invocations": 0, "broken": self.why,
        }  # fmt: skip


class StandingQueries:
    """The service on one runtime, which it starts if it is not running; `with` or `stop()` ends it.

    `memory`: bytes for tuples and results; older tuples are then read from the connection points' files when a window needs
    them. `keep`: how long tuples of sources without a connection point are retained. `limits`: what one client may have.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        limits: Limits | None = None,
        memory: int | None = DEFAULT_BUDGET,
        keep: str = "2 hours",
    ) -> None:
        self.runtime, self._keep = runtime, parse_duration(keep)
        self._owns = runtime.records is None
        if self._owns:
            runtime.start()
        self._tables = _tables(runtime.network)  # stream -> connection point that holds it, or None: not yet
        self.engine = QueryEngine(
            (self._info(name) for name in self._tables), limits=limits, budget=memory, archive=self._archive
        )
        self.registry = Registry(runtime.checkpoint / "standing" / "registry.db")
        self.broken: dict[str, BrokenQuery] = {}
        self._feeds: dict[str, str] = {}  # stream -> name of its query
        self._inputs: list[str] = []  # queries that read sources for us
        self._gate = threading.Lock()
        compile_loops()
        self._restore()

    # -- the interface

    def register(self, text: str, *, client: str = "", mode: str | None = None) -> Handle:
        """Register a query; on disk when this returns. `mode`: P, C or NoMat, see docs/standing.md."""
        return self.register_all([text], client=client, mode=mode)[0]

    def register_all(
        self, texts: Sequence[str], *, client: str = "", mode: str | None = None
    ) -> list[Handle]:
        """Register several at once, all or none: one write to disk."""
        self._look_again()
        queries = [parse(text, self.engine.streams) for text in texts]
        self._need(tuple(dict.fromkeys(stream for query in queries for stream in query.streams)))
        made: list[RegisteredQuery] = []
        try:
            made.extend(self.engine.register(query, client=client, mode=mode) for query in queries)
            self.registry.add(RegistryEntry(m.handle, client, m.query.text, mode, m.created) for m in made)
        except BaseException:
            for each in made:
                self.engine.unregister(each.handle)
            raise
        return [Handle(self, each.handle) for each in made]

    def handle(self, id: str) -> Handle:  # noqa: A002 - the client's word
        """The handle of a query registered earlier, by this process or one before it."""
        self._must_know(id)
        return Handle(self, id)

    def invoke(self, id: str, *, at: str | float | datetime | None = None) -> pa.Table:  # noqa: A002
        """The current answer of a query."""
        self._must_know(id)
        return self.engine.invoke(id, at=None if at is None else _micros(at))

    def changes(self, id: str, timeout: float | None = None) -> Iterator[Change]:  # noqa: A002
        """The changes of an answer, see `Handle.changes`."""
        self._must_know(id)
        return changes(self.engine, id, timeout)

    def unregister(self, id: str) -> None:  # noqa: A002
        """End a query."""
        if id in self.broken:
            del self.broken[id]
        else:
            self.engine.unregister(id)
        self.registry.remove(id)

    def list(self, client: str | None = None) -> Listed:
        """All queries, or one client's."""
        found = [made.describe() for made in list(self.engine.queries.values())]
        found += [each.describe() for each in list(self.broken.values())]
        return [each for each in found if client is None or each["client"] == client]

    def streams(self) -> Listed:
        """What queries may name, and how far each is visible."""
        found = []
        for name, info in self.engine.streams.items():
            prefix = self.engine.view.prefixes[name]
            found.append({
                "stream": name, "columns": info.schema.ddl(), "keep": info.keep / 1e6, "fed": name in self._feeds,
                "tuples": prefix.count, "now": None if not prefix.count else _text(prefix.newest),
            })  # fmt: skip
        return found

    def feed(self, stream: str) -> None:
        """Load a stream and follow it, before the first query names it; else that query waits for it."""
        if stream not in self.engine.streams:
            parse(f"SELECT * FROM `{stream}`", self.engine.streams)  # says what is wrong
        self._need((stream,))

    def stop(self) -> None:
        """End the feeds, and the runtime if this started it. Queries stay in the registry."""
        with self._gate:
            for name in [*self._feeds.values(), *self._inputs]:
                query = self.runtime.queries.pop(name, None)  # the name is free for the next service
                if query is not None:
                    query.stop()
                    query.release()
            self.registry.close()
        if self._owns:
            self.runtime.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- streams

    def _info(self, name: str) -> StreamInfo:
        net, point = self.runtime.network, self._tables[name]
        node = net.nodes[point] if point is not None else None
        keep = node.keep if isinstance(node, ConnectionPoint | View) else self._keep
        return StreamInfo(name, net.types[name].schema, net.types[name].timestamp is not None, keep)

    def _look_again(self) -> None:
        """Views may have been attached since."""
        for name, point in _tables(self.runtime.network).items():
            if name not in self._tables:
                self._tables[name] = point
                self.engine.add_stream(self._info(name))

    def _need(self, streams: Sequence[str]) -> None:
        """Make sure that streams are loaded and followed."""
        for stream in streams:
            if stream not in self._feeds:
                with self._gate:
                    if stream not in self._feeds:
                        self._feeds[stream] = self._follow(stream)

    def _follow(self, stream: str) -> str:
        point = self._tables[stream] or self._spool(stream)
        name = _PREFIX + stream
        start = load_history(self.engine, stream, self.runtime.checkpoint, point)
        # what the last run of this feed had done is of no interest: results are found again from the tuples
        shutil.rmtree(self.runtime.checkpoint / "queries" / name, ignore_errors=True)
        sub = at_point(self._with_point(stream, point), point, name, lambda s: s)
        given = {point: InputAfterHistory(self.runtime.checkpoint, point, name, start)}

        def prepare(query: Any) -> None:
            query.trains.feeding(self.engine, stream, point)

        self.runtime.attach_subnetwork(sub, prepare=prepare, make_trains=ProbeTrains, inputs=given)
        threading.Thread(target=self._rebuild, args=(stream,), name=f"rebuild-{stream}", daemon=True).start()
        return name

    def _rebuild(self, stream: str) -> None:
        try:
            self.engine.rebuild(stream)
        except Exception:
            _LOG.exception("standing queries: old blocks of %s", stream)

    def _spool(self, source: str) -> str:
        """A connection point of our own for a source that has none: it reads the source beside the network."""
        node = self.runtime.network.nodes[source]
        assert isinstance(node, Source)
        if node.format.read_once:
            raise QueryError(
                f"source '{source}' is an iterator, which only one can read",
                hint="put a connection point behind it, and name that",
            )
        point = _own_point(source)
        net = self._with_point(source, point)
        sub = SubNetwork(f"{point}-input", net, (source,), (point,), ())
        self.runtime.attach_subnetwork(sub)
        self._inputs.append(sub.name)
        return point

    def _with_point(self, stream: str, point: str) -> Network:
        network = self.runtime.network
        if point in network.nodes:
            return network
        made = Network.of(point, [network.nodes[stream]])
        made.stream(stream).connection_point(point, keep=f"{self._keep / 1e6} seconds")
        return made

    def _archive(self, stream: str, through: int, begin: int, end: int) -> pa.Table:
        point = self._tables[stream] or _own_point(stream)
        return archived(self.runtime.checkpoint, point, through, begin, end)

    # -- coming back

    def _restore(self) -> None:
        """Queries of the last run: first the tuples they read, then themselves, in their old order."""
        parsed = []
        for entry in self.registry.entries():
            with self._set_aside_if_refused(entry):
                parsed.append((entry, parse(entry.text, self.engine.streams)))
        self._need(tuple(dict.fromkeys(s for _, query in parsed for s in query.streams)))
        for entry, query in parsed:
            with self._set_aside_if_refused(entry):
                made = self.engine.register(
                    query, client=entry.client, mode=entry.mode, handle=entry.handle, restored=True
                )
                made.created = entry.created

    @contextmanager
    def _set_aside_if_refused(self, entry: RegistryEntry) -> Iterator[None]:
        """One query that does not fit any more must not keep all others from coming back."""
        try:
            yield
        except PenstockError as error:
            self.broken[entry.handle] = BrokenQuery(entry, str(error))
            _LOG.warning("standing query %s does not fit the network any more: %s", entry.handle, error)

    def _must_know(self, id: str) -> None:  # noqa: A002
        if id in self.broken:
            raise UnknownHandleError(
                f"standing query '{id}' does not fit the network any more", found=self.broken[id].why.splitlines()[0],
                hint="unregister it, or bring back the stream it reads",
            )  # fmt: skip
        self.engine.registered(id)


def _tables(network: Network) -> dict[str, str | None]:
    """Each stream that queries may name, and the connection point or view that holds its tuples."""
    found: dict[str, str | None] = {name: name for name in network.points}
    for source in network.sources:
        direct = [r for r in network.readers(source) if r in network.points]
        found.setdefault(source, direct[0] if direct else None)
    return found


def _own_point(source: str) -> str:
    """The name of the connection point that we keep for a source; names of tables are plainer than those of sources."""
    return re.sub(r"\W", "_", f"standing_{source}")


def _micros(at: str | float | datetime) -> int:
    from penstock.standing.language.windows import moment

    if isinstance(at, str):
        return moment(at)
    if isinstance(at, datetime):
        return moment(at.isoformat())
    if not math.isfinite(at) or abs(at) > _FAR:
        raise QueryError(f"'{at}' is not a time", expected="seconds since 1970, or ISO form")
    return round(at * 1_000_000)


def _text(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="microseconds")
