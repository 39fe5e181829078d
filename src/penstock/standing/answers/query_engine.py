"""Queries and data as two sides of one thing (PSoup, Sect. 3): insert a query, it meets the data; insert data, it meets the queries.

This is the whole of it without Spark, HTTP and disk. A train becomes visible all at once: its blocks, the results kept of it, and `now`
move in one step, so an invocation sees the exact answer for one prefix of the streams and of the registrations (P21).
Answers of selections need no lock: they work on the prefix that was visible when they began.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.model.errors import did_you_mean
from penstock.standing.answers.budget import within
from penstock.standing.answers.invocation import VisibleStreams, answer, current_of, pairs_of, rebuilt
from penstock.standing.answers.joins import Candidates, JoinedPairs, join
from penstock.standing.answers.registered_query import UNKEPT, Limits, RegisteredQuery, chosen_mode
from penstock.standing.answers.results import SharedTree, kept
from penstock.standing.errors import LimitError, QueryError, UnknownHandleError
from penstock.standing.language.language import parse
from penstock.standing.language.query import StandingQuery, StreamInfo
from penstock.standing.language.select_clause import joined_schema
from penstock.standing.stems.block import Block, make_blocks
from penstock.standing.stems.data_stem import NEVER, BlockRange, DataSteM, StreamPrefix
from penstock.standing.stems.query_stem import PredicateIndex, QuerySteM

Archive = Callable[
    [str, int, int, int], pa.Table
]  # stream, last entry, begin, end -> tuples that are no longer in memory


class QueryEngine:
    """Standing queries over some streams.

    >>> from penstock.model.types import Schema
    >>> engine = QueryEngine([StreamInfo("cars", Schema.parse("v INT"))])
    >>> query = engine.register("SELECT v FROM cars WHERE v > 1 BEGIN now - 1 second")
    >>> engine.insert("cars", pa.table({"v": pa.array([1, 2, 3], pa.int32()), "_ts": [0, 1, 2], "_seq": [0, 1, 2]}))
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
        self.streams: dict[str, StreamInfo] = {s.name: s for s in streams}
        self.limits, self.budget, self.archive = limits or Limits(), budget, archive
        self.queries: dict[str, RegisteredQuery] = {}
        self.query_stem = QuerySteM({s.name: s.schema for s in self.streams.values()})
        self._stems = {
            s.name: DataSteM(s.name, s.schema, s.keep, stamped=s.stamped) for s in self.streams.values()
        }
        self.view = VisibleStreams({name: stem.prefix for name, stem in self._stems.items()})
        self._trees: dict[Any, SharedTree] = {}
        self._readers: dict[str, dict[str, RegisteredQuery]] = {
            name: {} for name in self.streams
        }  # to be told of each train
        self._gate = threading.RLock()
        self._moved = threading.Condition()
        self.moves = 0  # trains that became visible, and queries that were unregistered
        self._clients: dict[str, int] = {}

    # -- queries

    def register(
        self,
        text: str | StandingQuery,
        *,
        client: str = "",
        mode: str | None = None,
        handle: str | None = None,
        restored: bool = False,
    ) -> RegisteredQuery:
        """Insert a query: it gets a handle, and meets the data that is there.

        `restored`: it was admitted in an earlier run, so neither a lower limit nor a window that retention has
        overtaken since may turn it away; what can no longer be answered is refused when it is asked.
        """
        query = text if isinstance(text, StandingQuery) else parse(text, self.streams)
        kind = chosen_mode(query, mode)
        with self._gate:
            if not restored:
                self._check_limit(client)
                self._check_retained(query)
            made = RegisteredQuery(handle or f"q-{uuid.uuid4().hex[:12]}", client, query, kind)
            self._take_slots(made)
            try:
                self._meet_old_data(made)
            except LimitError:
                self._give_up_keeping(made)
            self.queries[made.handle] = made
            self._clients[client] = self._clients.get(client, 0) + 1
            if made.current is not None or made.pairs is not None:
                for stream in query.streams:
                    self._readers[stream][made.handle] = made
            return made

    def _check_retained(self, query: StandingQuery) -> None:
        now = self.view.now(query)
        for part, window in zip(query.parts, query.windows, strict=True):
            self.view.check_retained(part.stream, self.view.prefixes[part.stream], window, now)

    def _check_limit(self, client: str) -> None:
        have = self._clients.get(client, 0)
        if have >= self.limits.queries:
            raise LimitError(
                f"client '{client}' has {have} standing queries", expected=f"at most {self.limits.queries}",
                hint="unregister some, or let the service be started with a higher limit",
            )  # fmt: skip

    def _take_slots(self, made: RegisteredQuery) -> None:
        def slot(stream: str, conjunction: Any) -> int:
            if made.mode == "NoMat":
                return UNKEPT
            return self.query_stem.insert(stream, conjunction, lasting=made.lasting)

        parts = made.query.parts
        made.slots = tuple(
            tuple(
                slot(part.stream, conjunction) for part, conjunction in zip(parts, branch.parts, strict=True)
            )
            for branch in made.query.branches
        )

    def _meet_old_data(self, made: RegisteredQuery) -> None:
        """PSoup-C and joins take what is there; of PSoup-P, old blocks are probed when they are first asked for."""
        if made.mode == "C" and not made.query.is_join:
            made.current = current_of(made, self.view)
        elif made.mode in ("P", "C") and made.query.is_join:
            made.pairs = pairs_of(made, self.view, self.streams)

    def _give_up_keeping(self, made: RegisteredQuery) -> None:
        """Too many pairs to keep: from here on they are found at invocation."""
        self._drop_slots(made)
        made.mode, made.pairs, made.current = "NoMat", None, None
        made.candidates.clear()
        self._take_slots(made)
        for readers in self._readers.values():
            readers.pop(made.handle, None)

    def _drop_slots(self, made: RegisteredQuery) -> None:
        for slots in made.slots:
            for part, slot in zip(made.query.parts, slots, strict=True):
                if slot != UNKEPT:
                    self.query_stem.remove(part.stream, slot, lasting=made.lasting)

    def unregister(self, handle: str) -> None:
        """Remove a query; its results go with the blocks that hold them (P29)."""
        with self._gate:
            made = self.registered(handle)
            del self.queries[handle]
            self._clients[made.client] -= 1
            self._drop_slots(made)
            for readers in self._readers.values():
                readers.pop(handle, None)
            self._trees = {key: tree for key, tree in self._trees.items() if self._in_use(key)}
            self._forget_late(made)
        self._tell()

    def _forget_late(self, made: RegisteredQuery) -> None:
        for slots in made.slots:
            for part, slot in zip(made.query.parts, slots, strict=True):
                if slot not in self.query_stem.live(part.stream):
                    for block in self.view.prefixes[part.stream].blocks:
                        block.late.pop(slot, None)

    def _in_use(self, key: Any) -> bool:
        stream, slots, _ = key
        return all(slot in self.query_stem.live(stream) for slot in slots)

    def registered(self, handle: str) -> RegisteredQuery:
        """The query of a handle."""
        made = self.queries.get(handle)
        if made is None:
            near = did_you_mean(handle, self.queries) if len(self.queries) < 1000 else ""
            raise UnknownHandleError(f"no standing query '{handle}'", hint=near or "register it first")
        return made

    # -- data

    def add_stream(self, stream: StreamInfo) -> None:
        """One more stream that queries may name."""
        with self._gate:
            if stream.name in self.streams:
                return
            self._stems[stream.name] = DataSteM(
                stream.name, stream.schema, stream.keep, stamped=stream.stamped
            )
            self.query_stem.add_stream(stream.name, stream.schema)
            self._readers[stream.name] = {}
            self.view = self.view.with_prefix(stream.name, StreamPrefix())
            self.streams = {**self.streams, stream.name: stream}

    def index(self, stream: str) -> PredicateIndex:
        """The predicate index of a stream as of now, to be sent to where trains are probed."""
        with self._gate:
            return self.query_stem.index(stream)

    def insert(self, stream: str, tuples: pa.Table, *, horizon: int | None = None, entry: int = -1) -> None:
        """Insert a train here and now (the Spark feed probes in its tasks and calls `insert_blocks`)."""
        self.insert_blocks(
            stream,
            make_blocks(tuples, self.streams[stream].schema, self.index(stream), entry),
            horizon=horizon,
        )

    def insert_blocks(self, stream: str, blocks: Sequence[Block], *, horizon: int | None = None) -> None:
        """Make a train visible: blocks that have met the queries of some moment; queries registered since meet them now."""
        with self._gate:
            stem = self._stems[stream]
            before = self.view
            prefix = stem.grown(blocks, lambda: self.query_stem.index(stream), horizon=horizon)
            after = before.with_prefix(stream, prefix)
            for made in list(self._readers[stream].values()):
                self._keep_up(made, stream, blocks, before, after)
            for block in blocks:
                self._let_go(stream, block)
            self._show(within(self.budget, after, self._readers, self._give_up_keeping))
        self._tell()

    def _show(self, view: VisibleStreams) -> None:
        for name, prefix in view.prefixes.items():
            self._stems[name].show(prefix)
        self.view = view

    def _tell(self) -> None:
        """Wake those who wait for a train, or for the end of a query."""
        with self._moved:
            self.moves += 1
            self._moved.notify_all()

    def _let_go(self, stream: str, block: Block) -> None:
        """PSoup-C has taken over its matches: they need not lie with the data as well."""
        block.matches = None if block.matches is None else block.matches.lasting()
        for slot in [slot for slot in block.late if not self.query_stem.lasting(stream, slot)]:
            del block.late[slot]

    def set_lost(self, stream: str, lost: int) -> None:
        """Say that tuples before a time had been deleted before this process began."""
        with self._gate:
            prefix = replace(self._stems[stream].prefix, lost=lost, oldest=NEVER)
            self._stems[stream].show(prefix)
            self.view = self.view.with_prefix(stream, prefix)

    def _keep_up(
        self,
        made: RegisteredQuery,
        stream: str,
        blocks: Sequence[Block],
        before: VisibleStreams,
        after: VisibleStreams,
    ) -> None:
        query, now = made.query, after.now(made.query)
        if made.current is not None:
            pieces = [BlockRange(block, 0, block.rows) for block in blocks]
            begin = after.begin(query, 0, now)
            made.current = made.current.moved(kept(pieces, made.selection()), begin)
        elif made.pairs is not None:
            try:
                self._keep_joined(made, stream, blocks, before, after)
            except LimitError:
                self._give_up_keeping(made)

    def _keep_joined(
        self,
        made: RegisteredQuery,
        stream: str,
        blocks: Sequence[Block],
        before: VisibleStreams,
        after: VisibleStreams,
    ) -> None:
        """New tuples meet the others' old ones; where a stream stands twice in FROM, the new ones also meet each other."""
        query = made.query
        assert made.pairs is not None
        fresh = [BlockRange(block, 0, block.rows) for block in blocks]
        begins = after.begins(made)
        found = [made.pairs]
        for b, branch in enumerate(query.branches):
            for i, part in enumerate(query.parts):
                if part.stream != stream:
                    continue
                schema = self.streams[stream].schema
                new = Candidates.of(kept(fresh, [(made.slots[b][i], branch.parts[i])]), schema)
                if not len(new):
                    continue
                others = [
                    new if j == i else self._others(made, b, j, before if j < i else after, begins[j])
                    for j in range(len(query.parts))
                ]
                joined = joined_schema(query.parts, self.streams)
                composite = join(branch, query.parts, others, i, made.order, joined)
                if len(composite[i]):
                    found.append(JoinedPairs.of(composite, others))
        pairs = JoinedPairs.together(found) if len(found) > 1 else found[0]
        pairs = pairs.after(begins)
        made.pairs = pairs.once() if len(query.branches) > 1 and len(found) > 1 else pairs

    def _others(
        self, made: RegisteredQuery, branch: int, stream: int, view: VisibleStreams, begin: int
    ) -> Candidates:
        """What a stream has that may be joined; gathered anew only when the stream has moved."""
        part = made.query.parts[stream]
        prefix = view.prefixes[part.stream]
        held = made.candidates.get((branch, stream))
        if held is None or held[0] is not prefix:
            slots = [(made.slots[branch][stream], made.query.branches[branch].parts[stream])]
            found = kept(prefix.between(begin, 1 << 62), slots)
            held = prefix, Candidates.of(found, self.streams[part.stream].schema)
            made.candidates[branch, stream] = held
        return held[1]

    # -- answers

    def invoke(self, handle: str, *, at: int | None = None, view: VisibleStreams | None = None) -> pa.Table:
        """The current answer; `at` asks for the window as of an earlier `now` (microseconds), while it is retained (P41)."""
        made = self.registered(handle)
        made.invocations += 1
        kept_state = made.current is not None or made.pairs is not None
        if kept_state and at is None and view is None:
            with self._gate:
                return answer(self, made, self.view)
        return answer(self, made, view or self.view, at=at, again=kept_state)

    def tree(self, made: RegisteredQuery, column: str | None) -> SharedTree:
        """The ranked tree for an aggregate; queries with the same conjunctions share it (P37)."""
        selection = made.selection()
        key = (made.query.parts[0].stream, tuple(sorted(slot for slot, _ in selection)), column)
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = SharedTree(selection, column)
        return tree

    def extended(self, stream: str, prefix: StreamPrefix, begin: int, end: int) -> StreamPrefix:
        """The prefix with tuples between two times that memory has let go (P38)."""
        cold = prefix.cold
        if cold is None or begin > cold.newest:
            return prefix
        if self.archive is None:
            raise QueryError(f"stream '{stream}': the window needs tuples that are no longer in memory")
        table = self.archive(stream, cold.entry, begin, end)
        blocks = make_blocks(table, self.streams[stream].schema, None) if table.num_rows else []
        first = -(1 << 50)
        for block in blocks:
            block.first, first = first, first + block.rows
        return StreamPrefix.of([*blocks, *prefix.blocks], None, prefix.lost, prefix.newest, prefix.oldest)

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
        """Wait until `moves` is beyond a number: for one who wakes many others."""
        with self._moved:
            return self._moved.wait_for(lambda: self.moves > moves, timeout)

    def stored(self) -> dict[str, int]:
        """Bytes held (P32): base data, matches and current results, and the queries themselves."""
        with self._gate:
            blocks = [b for prefix in self.view.prefixes.values() for b in prefix.blocks]
            data = sum(b.data_bytes for b in blocks)
            results = sum(b.nbytes for b in blocks) - data
            results += sum(made.nbytes for made in self.queries.values())
            index = sum(
                f.constants.nbytes + f.spans.nbytes
                for name in self.streams
                for f in self.query_stem.index(name).factors
            )
            return {"data": int(data), "results": int(results), "queries": int(index)}

    def rebuild(self, stream: str) -> None:
        """Probe blocks again that know few of the live queries: after a restart, in the background."""
        rebuilt(self, stream)
