"""Queries and data are symmetric (PSoup, Sect. 3): a new query meets the data, new data meets the queries.

This is the whole engine without Spark, HTTP and disk. A train becomes visible all at once: its blocks, the
results kept of it, and `now` move in one step. So an invocation sees the exact answer for one prefix of the
streams and of the registrations (P21). Selections need no lock: they work on the prefix that was visible when
they began.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from penstock.standing.answers.budget import within_budget
from penstock.standing.answers.invocation import answer, current_of
from penstock.standing.answers.join_answers import pairs_of
from penstock.standing.answers.joins import JoinBounds
from penstock.standing.answers.kept_results import ArrivingTrain, keep_up
from penstock.standing.answers.ranked_tree import Summary
from penstock.standing.answers.registered_query import UNKEPT, RegisteredQuery, chosen_mode
from penstock.standing.answers.results import SharedTree
from penstock.standing.answers.visible_streams import VisibleStreams, check_retained
from penstock.standing.errors import LimitError, OutOfTimeError, QueryError, UnknownHandleError
from penstock.standing.language.language import parse
from penstock.standing.language.query import Conjunction, StandingQuery, StreamInfo
from penstock.standing.limits import Limits
from penstock.standing.stems.block import Block, make_blocks, probe_block
from penstock.standing.stems.data_stem import NEVER, DataSteM, StreamPrefix
from penstock.standing.stems.query_stem import PredicateIndex, QuerySteM


class Archived(NamedTuple):
    """Tuples that are no longer in memory. Every one from the time `lost` on is among them."""

    table: pa.Table
    lost: int = NEVER


Archive = Callable[[str, int, int, int, float], Archived]
"""Reads such tuples: stream, last entry, begin, end, the most tuples -> tuples."""

_TreeKey = tuple[str, tuple[int, ...], str | None]  # stream, slots, column
_LARGE = 64  # results above one part in this many of the budget are large
_SHARE = 4  # one invocation may take one part in this many of the budget for what it makes
_LEAST_ROOM = 16 << 20
_ARCHIVED = -(1 << 50)  # numbers of archived tuples: below all that arrived here


class QueryEngine:
    """Standing queries over some streams.

    >>> from penstock.model.types import Schema
    >>> engine = QueryEngine([StreamInfo("cars", Schema.parse("v INT"))])
    >>> query = engine.register("SELECT v FROM cars WHERE v > 1 BEGIN now - 1 second")
    >>> cars = {"v": pa.array([1, 2, 3], pa.int32()), "_ts": [0, 1, 2], "_seq": [0, 1, 2]}
    >>> engine.insert("cars", pa.table(cars))
    >>> engine.invoke(query.handle)["v"].to_pylist()
    [2, 3]
    """

    def __init__(
        self,
        streams: Iterable[StreamInfo],
        *,
        limits: Limits | None = None,
        budget: int | None = None,
        archive: Archive | None = None,
    ) -> None:
        self.streams: dict[str, StreamInfo] = {}
        self.limits, self.budget, self.archive = limits or Limits(), budget, archive
        self.queries: dict[str, RegisteredQuery] = {}
        self.query_stem = QuerySteM()
        self.view = VisibleStreams({})
        self.moves = 0  # trains that became visible, and queries that were unregistered
        self._stems: dict[str, DataSteM] = {}
        self._trees: dict[_TreeKey, SharedTree] = {}
        self._readers: dict[str, dict[str, RegisteredQuery]] = {}  # stream -> queries that keep results
        self._gate = threading.RLock()
        self._moved = threading.Condition()
        self._owned: Counter[str] = Counter()  # queries of each owner
        for stream in streams:
            self.add_stream(stream)
        self.view = VisibleStreams(self.view.prefixes)  # nothing has become visible yet

    def add_stream(self, stream: StreamInfo) -> None:
        """Add a stream that queries may name."""
        with self._gate:
            if stream.name in self.streams:
                return
            self._stems[stream.name] = DataSteM(stream.schema, stream.keep, stamped=stream.stamped)
            self.query_stem.add_stream(stream.name, stream.schema)
            self._readers[stream.name] = {}
            self.view = self.view.with_prefix(stream.name, StreamPrefix())
            self.streams = {**self.streams, stream.name: stream}

    # -- queries

    def register(
        self,
        text: str | StandingQuery,
        *,
        owner: str = "",
        client: str = "",
        mode: str | None = None,
        handle: str | None = None,
        restored: bool = False,
    ) -> RegisteredQuery:
        """Insert a query: it gets a handle and meets the existing data.

        `restored`: an earlier run admitted it. So neither a lower limit nor a window that retention has since
        overtaken may turn it away. What can no longer be answered is refused when it is invoked.
        """
        query = text if isinstance(text, StandingQuery) else parse(text, self.streams, self.limits)
        mode = chosen_mode(query, mode)
        with self._gate:
            if not restored:
                self._check_limit(owner)
                self._check_retained(query)
            registered = RegisteredQuery(handle or new_handle(), owner, client, query, mode)
            self._take_slots(registered)
            try:
                self._meet_old_data(registered)
            except (LimitError, OutOfTimeError):
                self._give_up_keeping(registered)
            self._admit(registered)
            self._keep_to_budget(registered)
            return registered

    def _keep_to_budget(self, newest: RegisteredQuery) -> None:
        """Make room for a new query's results at once, not at the next train, if they are large."""
        if self.budget is not None and newest.nbytes > self.budget // _LARGE:
            self._show(within_budget(self.budget, self.view, self._readers, self._give_up_keeping))

    @property
    def join_bounds(self) -> JoinBounds:
        """What one join may cost."""
        return JoinBounds(self.limits.pairs, self._room)

    @property
    def _room(self) -> float:
        """Bytes for what one invocation makes."""
        return math.inf if self.budget is None else max(self.budget / _SHARE, _LEAST_ROOM)

    def _check_retained(self, query: StandingQuery) -> None:
        now = self.view.now(query)
        for part, window in zip(query.parts, query.windows, strict=True):
            check_retained(part.stream, self.view.prefixes[part.stream], window, now)

    def _check_limit(self, owner: str) -> None:
        registered = self._owned[owner]
        if registered >= self.limits.queries:
            raise LimitError(
                f"there are {registered:,} standing queries{f' of {owner}' if owner else ''}",
                expected=f"at most {self.limits.queries:,}",
                hint="unregister some, or let the service be started with a higher limit",
            )

    def _take_slots(self, registered: RegisteredQuery) -> None:
        parts = registered.query.parts
        registered.slots = tuple(
            tuple(
                self._slot(registered, part.stream, conjunction)
                for part, conjunction in zip(parts, branch.parts, strict=True)
            )
            for branch in registered.query.branches
        )

    def _slot(self, registered: RegisteredQuery, stream: str, conjunction: Conjunction) -> int:
        if registered.mode == "NoMat":
            return UNKEPT
        return self.query_stem.insert(stream, conjunction, lasting=registered.lasting)

    def _meet_old_data(self, registered: RegisteredQuery) -> None:
        """Give a new query the existing data, for PSoup-C and joins.

        For PSoup-P, old blocks are probed when they are first needed.
        """
        if registered.mode == "C" and not registered.query.is_join:
            registered.current = current_of(registered, self.view)
        elif registered.mode in ("P", "C") and registered.query.is_join:
            registered.pairs = pairs_of(registered, self.view, self.streams, self.join_bounds)

    def _admit(self, registered: RegisteredQuery) -> None:
        self.queries[registered.handle] = registered
        self._owned[registered.owner] += 1
        if registered.keeps_results:
            for stream in registered.query.streams:
                self._readers[stream][registered.handle] = registered

    def _give_up_keeping(self, registered: RegisteredQuery) -> None:
        """Stop keeping results that are too large: from here on they are found at invocation."""
        self._drop_slots(registered)
        registered.mode, registered.pairs, registered.current = "NoMat", None, None
        registered.candidates.clear()
        self._take_slots(registered)
        for readers in self._readers.values():
            readers.pop(registered.handle, None)

    def _drop_slots(self, registered: RegisteredQuery) -> None:
        for stream, slot in registered.stream_slots():
            if slot != UNKEPT:
                self.query_stem.remove(stream, slot, lasting=registered.lasting)

    def unregister(self, handle: str) -> None:
        """Remove a query; its results go with the blocks that hold them (P29)."""
        with self._gate:
            registered = self.registered(handle)
            del self.queries[handle]
            self._owned[registered.owner] -= 1
            self._drop_slots(registered)
            for readers in self._readers.values():
                readers.pop(handle, None)
            self._trees = {key: tree for key, tree in self._trees.items() if self._in_use(key)}
            self._forget_late(registered)
        self._wake()

    def _forget_late(self, registered: RegisteredQuery) -> None:
        """Drop the matches that blocks remember for a slot that nobody uses any more."""
        for stream, slot in registered.stream_slots():
            if slot not in self.query_stem.live(stream):
                for block in self.view.prefixes[stream].blocks:
                    block.forget_late([slot])

    def _in_use(self, key: _TreeKey) -> bool:
        stream, slots, _ = key
        return all(slot in self.query_stem.live(stream) for slot in slots)

    def registered(self, handle: str) -> RegisteredQuery:
        """The query of a handle."""
        registered = self.queries.get(handle)
        if registered is None:
            raise unknown_handle(handle)
        return registered

    # -- data

    def index(self, stream: str) -> PredicateIndex:
        """The current predicate index of a stream, to be sent to where trains are probed."""
        with self._gate:
            return self.query_stem.index(stream)

    def insert(self, stream: str, tuples: pa.Table, *, horizon: int | None = None, entry: int = -1) -> None:
        """Insert a train here and now (the Spark feed probes in its tasks and calls `insert_blocks`)."""
        blocks = make_blocks(tuples, self.streams[stream].schema, self.index(stream), entry)
        self.insert_blocks(stream, blocks, horizon=horizon)

    def insert_blocks(self, stream: str, blocks: Sequence[Block], *, horizon: int | None = None) -> None:
        """Make a train visible whose blocks have met the queries of an earlier moment.

        Queries registered since then meet them now.
        """
        with self._gate:
            index = lambda: self.query_stem.index(stream)  # noqa: E731 - made only if small blocks are merged
            prefix = self._stems[stream].grown(blocks, index, horizon=horizon)
            train = ArrivingTrain(stream, blocks, self.view, self.view.with_prefix(stream, prefix))
            for registered in list(self._readers[stream].values()):
                self._keep_up(registered, train)
            for block in blocks:
                self._forget_passing(stream, block)
            self._show(within_budget(self.budget, train.after, self._readers, self._give_up_keeping))
        self._wake()

    def _keep_up(self, registered: RegisteredQuery, train: ArrivingTrain) -> None:
        try:
            keep_up(registered, train, self.streams, self.join_bounds)
        except LimitError:
            self._give_up_keeping(registered)

    def _show(self, view: VisibleStreams) -> None:
        for name, prefix in view.prefixes.items():
            self._stems[name].show(prefix)
        self.view = view

    def _wake(self) -> None:
        """Wake those who wait for a train, or for the end of a query."""
        with self._moved:
            self.moves += 1
            self._moved.notify_all()

    def _forget_passing(self, stream: str, block: Block) -> None:
        """Drop matches that PSoup-C has taken over: the data need not hold them as well."""
        block.matches = None if block.matches is None else block.matches.lasting()
        block.forget_late([slot for slot in block.late if not self.query_stem.lasting(stream, slot)])

    def set_lost(self, stream: str, lost: int) -> None:
        """Record that tuples before a time had been deleted before this process began."""
        with self._gate:
            before = self._stems[stream].prefix
            prefix = replace(before, lost=max(lost, before.lost), oldest=NEVER)
            self._stems[stream].show(prefix)
            self.view = self.view.with_prefix(stream, prefix)

    def rebuild(self, stream: str) -> None:
        """Probe blocks again that know few of the live queries.

        This runs after a restart, block by block, while others work.
        """
        index = self.index(stream)
        for block in self.view.prefixes[stream].blocks:
            if block.matches is None or len(block.late) > max(64, len(index.slots) // 8):
                block.matches = probe_block(block, index).lasting()
                block.forget_late(list(block.late))

    # -- answers

    def invoke(self, handle: str, *, at: int | None = None, view: VisibleStreams | None = None) -> pa.Table:
        """The current answer.

        `at` asks for the window as of an earlier `now` (microseconds), while retained (P41).
        """
        return self.answered(handle, at=at, view=view)[0]

    def answered(
        self, handle: str, *, at: int | None = None, view: VisibleStreams | None = None
    ) -> tuple[pa.Table, int]:
        """The answer, and the event time that `now` stood for in it (NEVER: no tuple was visible)."""
        registered = self.registered(handle)
        registered.invocations += 1
        if registered.keeps_results and at is None and view is None:
            with self._gate:  # what is kept belongs to the newest view
                return answer(self, registered, self.view), self.view.now(registered.query)
        view = view or self.view
        now = view.now(registered.query) if at is None else at
        return answer(self, registered, view, at=at, again=registered.keeps_results), now

    def tree_summary(
        self, registered: RegisteredQuery, column: str | None, view: VisibleStreams, now: int
    ) -> Summary:
        """An aggregate of a window from the ranked tree.

        Queries with the same conjunctions share one (P37).
        """
        selection, stream = registered.selection(), registered.query.parts[0].stream
        key = (stream, tuple(sorted(slot for slot, _ in selection)), column)
        with self._gate:
            if key not in self._trees:
                self._trees[key] = SharedTree(selection, column)
            begin, end = view.spans(registered.query, now)[0]
            return self._trees[key].over(view.prefixes[stream], begin, end)

    def extended(self, stream: str, prefix: StreamPrefix, begin: int, end: int) -> StreamPrefix:
        """The prefix with the evicted tuples between two times (P38)."""
        evicted = prefix.evicted
        if evicted is None or begin > evicted.newest:
            return prefix
        if self.archive is None:
            raise QueryError(f"stream '{stream}': the window needs tuples that are no longer in memory")
        table, lost = self.archive(stream, evicted.entry, begin, end, self._most_archived(prefix))
        blocks = make_blocks(table, self.streams[stream].schema, None) if table.num_rows else []
        first = _ARCHIVED
        for block in blocks:
            block.first, first = first, first + block.rows
        # Retention goes by the point's newest horizon, and may be ahead of what was seen here.
        lost = max(lost, prefix.lost)
        return StreamPrefix.of([*blocks, *prefix.blocks], None, lost, prefix.newest, prefix.oldest)

    def _most_archived(self, prefix: StreamPrefix) -> float:
        """How many tuples one answer may read from files, from what those in memory take."""
        each = sum(block.data_bytes for block in prefix.blocks) / max(1, prefix.rows)
        return self._room / max(1.0, each)

    # -- watching

    @property
    def version(self) -> int:
        """Counts the trains that became visible."""
        return self.view.version

    def wait(self, version: int, timeout: float | None = None, handle: str | None = None) -> bool:
        """Wait until something newer than `version` is visible, or the query of a handle is gone."""

        def done() -> bool:
            return self.view.version > version or (handle is not None and handle not in self.queries)

        with self._moved:
            return self._moved.wait_for(done, timeout)

    def wait_move(self, moves: int, timeout: float | None = None) -> bool:
        """Wait until `moves` exceeds a number; for a thread that wakes many others."""
        with self._moved:
            return self._moved.wait_for(lambda: self.moves > moves, timeout)

    def stored(self) -> dict[str, int]:
        """Bytes held (P32): base data, matches and current results, and the queries themselves."""
        with self._gate:
            blocks = [block for prefix in self.view.prefixes.values() for block in prefix.blocks]
            data = sum(block.data_bytes for block in blocks)
            matches = sum(block.nbytes for block in blocks) - data
            results = sum(registered.nbytes for registered in self.queries.values())
            factors = [f for name in self.streams for f in self.query_stem.index(name).factors]
            queries = sum(factor.constants.nbytes + factor.spans.nbytes for factor in factors)
            return {"data": int(data), "results": int(matches + results), "queries": int(queries)}


def unknown_handle(handle: str) -> UnknownHandleError:
    """The error for a handle; it names no other, since that may be another client's."""
    return UnknownHandleError(f"no standing query '{handle}'", hint="register it first")


def new_handle() -> str:
    """A name that nobody can guess."""
    return f"q-{uuid.uuid4().hex}"
