"""Standing queries on a running network: register once, invoke any time, over old and new data.

PSoup, Sect. 1; P01, P08.

    service = StandingQueries(runtime)
    slow = service.register("SELECT vid, spd FROM reports WHERE spd < 20 BEGIN now - 10 minutes END now")
    slow.invoke()        # a pyarrow Table, now and at any later time
    slow.unregister()

There is one streaming query for each stream that queries name, never one for each query, and an invocation
starts no Spark job. Handles and results survive a restart on the same checkpoint (P09): queries are in the
registry, tuples in the connection points.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, TypedDict

import pyarrow as pa

from penstock.model.durations import parse_duration
from penstock.model.errors import PenstockError
from penstock.runtime import Runtime
from penstock.standing.answers.changes import Change, changes
from penstock.standing.answers.query_engine import QueryEngine, unknown_handle
from penstock.standing.answers.registered_query import QueryDescription, RegisteredQuery
from penstock.standing.answers.window_gather import compile_loops
from penstock.standing.deadline import time_limit
from penstock.standing.errors import QueryError, UnknownHandleError
from penstock.standing.language.language import parse
from penstock.standing.language.query import StandingQuery
from penstock.standing.language.windows import moment
from penstock.standing.limits import Limits
from penstock.standing.serving.freshness import Freshness, Sign, sign_of
from penstock.standing.serving.points_only_runtime import PointsOnlyRuntime, sign_elsewhere
from penstock.standing.serving.registry import Registry, RegistryEntry
from penstock.standing.serving.stream_feeds import StreamFeeds
from penstock.standing.stems.data_stem import NEVER
from penstock.store.durable import make_directory
from penstock.store.ownership import own

_LOG = logging.getLogger("penstock")
DEFAULT_BUDGET = 2 << 30
STALE_AFTER = "2 minutes"
_FAR = 4e12  # seconds that fit into 64 bits as microseconds, with room for windows around them

Moment = str | float | datetime
"""An event time: ISO text, seconds since 1970, or a datetime."""


Queries = list[QueryDescription]
"""`StandingQueries.list` hides the builtin inside its class."""

_AnyQueries = list["RegisteredQuery | BrokenQuery"]

Streams = list["StreamDescription"]


class StreamDescription(TypedDict):
    """A stream that queries may name, and how far it is visible."""

    stream: str
    columns: str
    keep: float  # seconds
    fed: bool
    tuples: int
    now: str | None


@dataclass(frozen=True)
class Handle:
    """A client's hold on a standing query; `service.handle(id)` gives it again after any disconnection."""

    service: StandingQueries
    id: str

    def invoke(self, *, at: Moment | None = None) -> pa.Table:
        """The current answer.

        `at` moves `now` back to an earlier event time, as far as tuples are retained (P41).
        """
        return self.service.invoke(self.id, at=at)

    def changes(self, timeout: float | None = None) -> Iterator[Change]:
        """Rows that enter and leave the answer, train by train.

        The first change brings the whole answer.
        """
        return self.service.changes(self.id, timeout)

    def unregister(self) -> None:
        """End the query; the handle is invalid afterwards."""
        self.service.unregister(self.id)

    def describe(self) -> QueryDescription:
        """Text, mode, windows, and how often it was invoked."""
        return self.service.engine.registered(self.id).describe()


@dataclass(frozen=True)
class BrokenQuery:
    """A query of an earlier run that no longer fits the network or its limits, and why.

    It stays until it is unregistered.
    """

    entry: RegistryEntry
    why: str

    @property
    def owner(self) -> str:
        return self.entry.owner

    @property
    def client(self) -> str:
        return self.entry.client

    def describe(self) -> QueryDescription:
        """Describe it like a registered query, with `broken`: why it has no answer."""
        entry = self.entry
        return QueryDescription(
            handle=entry.handle,
            owner=entry.owner,
            client=entry.client,
            query=entry.text,
            mode=entry.mode or "",
            streams=[],
            windows=[],
            kinds=[],
            created=entry.created,
            invocations=0,
            broken=self.why,
        )


class StandingQueries:
    """The service on one runtime, which it starts if it is not running; `with` or `stop()` ends it.

    `memory`: bytes for tuples and results. Beyond that, older tuples are read from the connection points'
    files when a window needs them. `keep`: how long tuples of sources without a connection point are
    retained. `limits`: what one client may have. `stale_after`: when the network makes no progress for so
    long, answers are refused instead of growing old (None: never).
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        limits: Limits | None = None,
        memory: int | None = DEFAULT_BUDGET,
        keep: str = "2 hours",
        stale_after: str | None = STALE_AFTER,
    ) -> None:
        self.runtime = runtime
        # First what can be refused: a runtime that has begun would have to be stopped again.
        patience = None if stale_after is None else parse_duration(stale_after) / 1e6
        with ExitStack() as undo:
            # One service has the registry and the feeds, beside whoever runs the network.
            folder = runtime.checkpoint / "standing"
            make_directory(folder)  # the texts in it are clients' own
            self._ownership = own(folder, take_over=runtime.settings.take_over)
            undo.callback(self._ownership.release)
            self.registry = Registry(folder / "registry.db")
            self._owns = runtime.records is None
            if self._owns:
                runtime.start()
            self.freshness = Freshness(self._signs, runtime.check, patience)
            self.freshness.start()
            self._feeds = StreamFeeds(runtime, parse_duration(keep))
            self.engine = QueryEngine(
                self._feeds.infos(), limits=limits, budget=memory, archive=self._feeds.archive
            )
            self.broken: dict[str, BrokenQuery] = {}
            compile_loops()
            self._restore()
            undo.pop_all()

    # -- the interface

    def parse(self, text: str) -> StandingQuery:
        """Read a query without registering it; changes nothing."""
        return parse(text, self.engine.streams, self.engine.limits)

    def register(
        self, query: str | StandingQuery, *, owner: str = "", client: str = "", mode: str | None = None
    ) -> Handle:
        """Register a query; it is on disk when this returns.

        `owner`: whose limit it counts for. `client`: a label. `mode`: P, C or NoMat, see docs/standing.md.
        """
        return self.register_all([query], owner=owner, client=client, mode=mode)[0]

    def register_all(
        self,
        texts: Sequence[str | StandingQuery],
        *,
        owner: str = "",
        client: str = "",
        mode: str | None = None,
    ) -> list[Handle]:
        """Register several at once, all or none, with one write to disk."""
        self.add_streams()
        queries = [self.parse(text) if isinstance(text, str) else text for text in texts]
        self._need(_streams_of(queries))
        registered: list[RegisteredQuery] = []
        try:
            for query in queries:
                # A query that meets its data for longer does not keep results, but finds them when invoked.
                with time_limit(self.engine.limits.seconds):
                    one = self.engine.register(query, owner=owner, client=client, mode=mode)
                registered.append(one)
            self.registry.add(
                RegistryEntry(each.handle, owner, client, each.query.text, mode, each.created)
                for each in registered
            )
        except BaseException:
            for each in registered:
                self.engine.unregister(each.handle)
            raise
        return [Handle(self, each.handle) for each in registered]

    def add_streams(self) -> None:
        """Let queries name the views that were attached since."""
        self._feeds.add_new(self.engine)

    def handle(self, id: str, owner: str | None = None) -> Handle:  # noqa: A002 - the client's word
        """The handle of a query registered earlier, by this process or one before it.

        `owner`: only if the query is that owner's; None: whoever registered it.
        """
        self._must_know(id, owner)
        return Handle(self, id)

    def invoke(self, id: str, *, at: Moment | None = None) -> pa.Table:  # noqa: A002 - the client's word
        """The current answer of a query.

        Its schema metadata say `as_of`, the event time up to which it counts tuples, and `age`, for how many
        seconds the network may have had newer ones. Raises StaleError if the network has failed or lags.
        """
        self._must_know(id)
        age = self.freshness.check()
        table, now = self.engine.answered(id, at=None if at is None else _microseconds(at))
        metadata = {"as_of": _iso(now) if now > NEVER else "", "age": f"{age:.3f}"}
        return table.replace_schema_metadata(metadata)

    def changes(self, id: str, timeout: float | None = None) -> Iterator[Change]:  # noqa: A002 - as above
        """The changes of an answer, see `Handle.changes`."""
        self._must_know(id)
        return changes(self.engine, id, timeout)

    def unregister(self, id: str, owner: str | None = None) -> None:  # noqa: A002 - the client's word
        """End a query, only if it is the given owner's."""
        if id not in self.broken or owner not in (None, self.broken[id].owner):
            self._must_know(id, owner)
        if id in self.broken:
            del self.broken[id]
        else:
            self.engine.unregister(id)
        self.registry.remove(id)

    def list(self, client: str | None = None, owner: str | None = None) -> Queries:
        """All queries, or those of one label or owner."""
        every: _AnyQueries = [
            *self.engine.queries.copy().values(),
            *self.broken.copy().values(),
        ]
        mine = [query for query in every if owner is None or query.owner == owner]
        return [query.describe() for query in mine if client is None or query.client == client]

    def streams(self) -> Streams:
        """The streams that queries may name, and how far each is visible."""
        return [self._described(name) for name in self.engine.streams]

    def _described(self, name: str) -> StreamDescription:
        info, prefix = self.engine.streams[name], self.engine.view.prefixes[name]
        return StreamDescription(
            stream=name,
            columns=info.schema.ddl(),
            keep=info.keep / 1e6,
            fed=self._feeds.fed(name),
            tuples=prefix.count,
            now=_iso(prefix.newest) if prefix.count else None,
        )

    def feed(self, stream: str) -> None:
        """Load and follow a stream in advance, so that the first query that names it need not wait."""
        if stream not in self.engine.streams:
            parse(f"SELECT * FROM `{stream}`", self.engine.streams)  # raises the error, if any
        self._need((stream,))

    def stop(self) -> None:
        """End the feeds, and the runtime if this started it. Queries stay in the registry."""
        self.freshness.stop()
        self._feeds.stop()
        self.registry.close()
        if self._owns:
            self.runtime.stop()
        self._ownership.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _signs(self) -> dict[str, Sign]:
        """The signs of all parts of the network, here and elsewhere."""
        signs = {name: sign_of(query) for name, query in self.runtime.queries.copy().items()}
        if isinstance(self.runtime, PointsOnlyRuntime):
            signs["the network"] = sign_elsewhere(self.runtime.checkpoint)
        return signs

    def _need(self, streams: Sequence[str]) -> None:
        self._feeds.need(self.engine, streams)

    # -- after a restart

    def _restore(self) -> None:
        """Restore the last run: first the tuples that queries read, then the queries in their old order."""
        parsed: list[tuple[RegistryEntry, StandingQuery]] = []
        for entry in self.registry.entries():
            with self._set_aside_if_refused(entry):
                parsed.append((entry, self.parse(entry.text)))
        self._need(_streams_of([query for _, query in parsed]))
        for entry, query in parsed:
            with self._set_aside_if_refused(entry):
                registered = self.engine.register(
                    query,
                    owner=entry.owner,
                    client=entry.client,
                    mode=entry.mode,
                    handle=entry.handle,
                    restored=True,
                )
                registered.created = entry.created

    @contextmanager
    def _set_aside_if_refused(self, entry: RegistryEntry) -> Iterator[None]:
        """Set aside a query that cannot be loaded, so that all others can come back."""
        try:
            yield
        except (PenstockError, MemoryError) as error:
            self.broken[entry.handle] = BrokenQuery(entry, str(error) or "it needs too much memory")
            _LOG.warning("standing query %s cannot be loaded: %s", entry.handle, error)

    def _must_know(self, id: str, owner: str | None = None) -> None:  # noqa: A002 - the client's word
        broken = self.broken.get(id)
        query = self.engine.registered(id) if broken is None else broken
        if owner is not None and query.owner != owner:
            raise unknown_handle(id)  # as if there were none: a handle of others is not confirmed
        if broken is not None:
            raise UnknownHandleError(
                f"standing query '{id}' does not fit the network any more",
                found=broken.why.splitlines()[0],
                hint="unregister it, or bring back the stream it reads",
            )


def _streams_of(queries: Sequence[StandingQuery]) -> tuple[str, ...]:
    """The streams that some queries name, each once."""
    return tuple(dict.fromkeys(stream for query in queries for stream in query.streams))


def _microseconds(at: Moment) -> int:
    if isinstance(at, str):
        return moment(at)
    if isinstance(at, datetime):
        return moment(at.isoformat())
    if not math.isfinite(at) or abs(at) > _FAR:
        raise QueryError(f"'{at}' is not a time", expected="seconds since 1970, or ISO form")
    return round(at * 1_000_000)


def _iso(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="microseconds")
