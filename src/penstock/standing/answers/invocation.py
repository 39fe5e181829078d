"""Invocation (PSoup, Sect. 3.5; P19): look up BEGIN-END, compute the ends, apply them to what is kept, fetch, project.

Nothing here changes anything; so it may run in any thread, on any prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.standing.answers.joins import Candidates, JoinedPairs, join
from penstock.standing.answers.ranked_tree import Summary
from penstock.standing.answers.registered_query import RegisteredQuery
from penstock.standing.answers.results import (
    CurrentWindow,
    MatchedPositions,
    answer_of,
    distinct,
    fetch,
    kept,
    looked_up,
    numbers_of,
    rows_of,
    size,
    summarise,
)
from penstock.standing.answers.window_gather import window_gather
from penstock.standing.errors import LimitError, NotRetainedError
from penstock.standing.language.query import StandingQuery, StreamInfo
from penstock.standing.language.select_clause import joined_schema
from penstock.standing.language.windows import At, Last, Window
from penstock.standing.stems.data_stem import NEVER, StreamPrefix

if TYPE_CHECKING:
    from penstock.standing.answers.query_engine import QueryEngine


@dataclass(frozen=True, eq=False)
class VisibleStreams:
    """What is visible of all streams at one moment."""

    prefixes: Mapping[str, StreamPrefix]
    version: int = 0
    moment: int | None = None  # an earlier `now` that a client has asked for

    def with_prefix(self, stream: str, prefix: StreamPrefix) -> VisibleStreams:
        return VisibleStreams({**self.prefixes, stream: prefix}, self.version + 1)

    def now(self, query: StandingQuery) -> int:
        """The latest event time of what is visible of the query's streams."""
        if self.moment is not None:
            return self.moment
        return max(self.prefixes[name].newest for name in query.streams)

    def begin(self, query: StandingQuery, part: int, now: int) -> int:
        """From when on the window of one stream looks; for a count window, the time of its oldest tuple."""
        window = query.windows[part]
        if isinstance(window.begin, Last):
            pieces = self.prefixes[query.parts[part].stream].within(window, now)
            return min((int(p.block.stamps[p.low]) for p in pieces), default=NEVER)
        return max(window.span(now)[0], self.prefixes[query.parts[part].stream].lost)

    def spans(self, query: StandingQuery, now: int) -> list[tuple[int, int]]:
        """The windows of all streams, without times of which some tuples are gone."""
        ends = (window.span(now)[1] for window in query.windows)
        return [(self.begin(query, i, now), end) for i, end in enumerate(ends)]

    def begins(self, made: RegisteredQuery) -> list[int]:
        """From when on tuples of each stream may still take part in what is kept of a join."""
        now, found = self.now(made.query), []
        for i, part in enumerate(made.query.parts):
            prefix = self.prefixes[part.stream]
            oldest = prefix.lost if prefix.cold is None else prefix.cold.newest + 1
            found.append(max(oldest, self.begin(made.query, i, now) if made.mode == "C" else NEVER))
        return found

    def check_retained(self, stream: str, prefix: StreamPrefix, window: Window, now: int) -> None:
        """Refuse a window that reaches back to what retention has deleted.

        How many tuples up to END lie in the files is not known here: it is taken for all of them, until `answer` has read them.
        """
        begin, end = window.span(now)
        lost = prefix.lost
        if isinstance(window.begin, Last):
            if prefix.oldest >= lost:
                return  # nothing is gone
            there = prefix.held(lost, end) + (prefix.cold.rows if prefix.cold else 0)
            if there < window.begin.tuples:
                raise NotRetainedError(
                    f"stream '{stream}': the window is longer than what is retained", found=str(window),
                    expected=f"at most {there} tuples now",
                )  # fmt: skip
        elif window.begin is not None and lost > NEVER and begin < lost:
            raise NotRetainedError(
                f"stream '{stream}': the window is longer than what is retained", found=f"{window}, that is from {At(begin)} on",
                expected=f"a BEGIN at or after {At(lost)}", hint="older tuples have been deleted: let the connection point keep more",
            )  # fmt: skip


def answer(
    engine: QueryEngine,
    made: RegisteredQuery,
    view: VisibleStreams,
    *,
    at: int | None = None,
    again: bool = False,
) -> pa.Table:
    """The query's answer on a view. `again`: not from what is kept, which belongs to the newest view only."""
    query = made.query
    now = view.now(query) if at is None else at
    seen = _extended(engine, query, view, now)
    cold = seen is not view
    if query.is_join:
        table = _joined(engine, made, seen, now, kept_pairs=not (cold or again))
    elif query.is_aggregate:
        table = _aggregated(engine, made, seen, now, fresh=cold or again)
    else:
        table = None if cold or again else _at_once(engine, made, seen, now)
        if table is None:
            table = _one_by_one(engine, made, seen, now, fresh=cold or again)
    if query.distinct:
        table = distinct(table)
        _check_size(table.num_rows, engine)
    return table


def _extended(engine: QueryEngine, query: StandingQuery, view: VisibleStreams, now: int) -> VisibleStreams:
    """The view with what memory has let go, as far as the windows on each stream together need it; the same view if nothing."""
    needs: dict[str, tuple[int, int]] = {}
    for part, window in zip(query.parts, query.windows, strict=True):
        prefix = view.prefixes[part.stream]
        view.check_retained(part.stream, prefix, window, now)
        begin, end = prefix.reaches(window, now), window.span(now)[1]
        least, most = needs.get(part.stream, (begin, end))
        needs[part.stream] = min(least, begin), max(most, end)
    wider = {stream: engine.extended(stream, view.prefixes[stream], *need) for stream, need in needs.items()}
    if all(wider[stream] is view.prefixes[stream] for stream in wider):
        return view
    for part, window in zip(query.parts, query.windows, strict=True):
        view.check_retained(part.stream, wider[part.stream], window, now)
    return VisibleStreams({**view.prefixes, **wider}, view.version)


def _check_size(rows: int, engine: QueryEngine) -> None:
    if rows > engine.limits.rows:
        raise LimitError(
            f"the answer has {rows:,} rows", expected=f"at most {engine.limits.rows:,}",
            hint="narrow the query or its window, or let the service be started with a higher limit",
        )  # fmt: skip


# -- selections


def _at_once(engine: QueryEngine, made: RegisteredQuery, view: VisibleStreams, now: int) -> pa.Table | None:
    """PSoup-P with one conjunction, by compiled loops; None where that does not fit."""
    query = made.query
    if made.mode != "P" or len(query.branches) != 1:
        return None
    gather = window_gather(view.prefixes[query.parts[0].stream], query.windows[0], now)
    if gather is None:
        return None
    found = gather.find(made.slots[0][0], query.branches[0].parts[0])
    if not query.distinct:
        _check_size(found.count, engine)
    return gather.rows(found, query.items, engine.streams[query.parts[0].stream].schema)


def _one_by_one(
    engine: QueryEngine, made: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool
) -> pa.Table:
    found = _selected(made, view, now, fresh=fresh)
    if not made.query.distinct:
        _check_size(size(found), engine)
    return rows_of(found, made.query.items, engine.streams[made.query.parts[0].stream].schema)


def _selected(made: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool) -> MatchedPositions:
    query = made.query
    prefix, window = view.prefixes[query.parts[0].stream], query.windows[0]
    if made.current is not None and not fresh:
        return _from_current(made.current, prefix, window, now)
    if not query.branches:
        return []
    pieces = prefix.within(window, now)
    return kept(pieces, made.selection()) if made.mode == "P" else looked_up(pieces, made.selection())


def _from_current(current: CurrentWindow, prefix: StreamPrefix, window: Window, now: int) -> MatchedPositions:
    begin, end = window.span(now)
    numbers = current.until(max(begin, prefix.lost), end)
    found = [(block, np.sort(positions)) for block, positions, _ in prefix.locate(numbers)]
    if isinstance(window.begin, Last):
        ranges = {id(p.block): p for p in prefix.within(window, now)}
        cut = [(b, p, ranges.get(id(b))) for b, p in found]
        found = [(b, p[(p >= piece.low) & (p < piece.high)]) for b, p, piece in cut if piece is not None]
    return [(block, positions) for block, positions in found if len(positions)]


def current_of(made: RegisteredQuery, view: VisibleStreams) -> CurrentWindow:
    """The current window of a query that has just come."""
    query = made.query
    prefix = view.prefixes[query.parts[0].stream]
    begin = view.begin(query, 0, view.now(query))
    return CurrentWindow.of(
        looked_up(prefix.between(begin, 1 << 62), made.selection()) if query.branches else []
    )


# -- aggregates


def _aggregated(
    engine: QueryEngine, made: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool
) -> pa.Table:
    query = made.query
    part = query.parts[0]
    schema = engine.streams[part.stream].schema
    summaries: dict[str | None, Summary] = {}
    from_tree = made.mode == "P" and not query.counted and not fresh and query.branches
    found = None if from_tree else _selected(made, view, now, fresh=fresh)
    for column in dict.fromkeys(item.column for item in query.items):
        if found is None:
            with engine._gate:
                tree = engine.tree(made, column)
                summaries[column] = tree.over(view.prefixes[part.stream], *view.spans(query, now)[0])
        else:
            parts = [summarise(block, positions, column) for block, positions in found]
            summaries[column] = sum(parts, Summary())
    return _one_row(query, lambda item: summaries[item.column], lambda _: schema)


def _one_row(query: StandingQuery, summary: Any, schema: Any) -> pa.Table:
    columns = [
        answer_of(summary(item), item, schema(item).type_of(item.column) if item.column else "BIGINT")
        for item in query.items
    ]
    return pa.Table.from_arrays(columns, names=[item.name for item in query.items])


# -- joins


def pairs_of(
    made: RegisteredQuery, view: VisibleStreams, streams: Mapping[str, StreamInfo], *, windows: bool = False
) -> JoinedPairs:
    """All combinations in what is visible; `windows`: within the windows only, else as far as they are to be kept."""
    query = made.query
    now = view.now(query)
    begins = view.begins(made)
    found = [JoinedPairs.none(len(query.parts))]
    for b, branch in enumerate(query.branches):
        candidates = []
        for i, part in enumerate(query.parts):
            prefix = view.prefixes[part.stream]
            pieces = prefix.within(query.windows[i], now) if windows else prefix.between(begins[i], 1 << 62)
            slots = [(made.slots[b][i], branch.parts[i])]
            matches = kept(pieces, slots) if made.lasting else looked_up(pieces, slots)
            candidates.append(Candidates.of(matches, streams[part.stream].schema))
        if all(len(c) for c in candidates):
            start = min(range(len(candidates)), key=lambda i: len(candidates[i]))
            joined = joined_schema(query.parts, streams)
            composite = join(branch, query.parts, candidates, start, made.order, joined)
            found.append(JoinedPairs.of(composite, candidates))
    pairs = JoinedPairs.together(found)
    return pairs.once() if len(query.branches) > 1 else pairs


def _joined(
    engine: QueryEngine, made: RegisteredQuery, view: VisibleStreams, now: int, *, kept_pairs: bool
) -> pa.Table:
    query = made.query
    if made.pairs is not None and kept_pairs:
        pairs = made.pairs.within(view.spans(query, now))
        for i, part in enumerate(query.parts):
            if isinstance(query.windows[i].begin, Last):
                pieces = view.prefixes[part.stream].within(query.windows[i], now)
                pairs = pairs.among(i, numbers_of(pieces))
    else:
        pairs = pairs_of(made, replace(view, moment=now), engine.streams, windows=True)
    if not query.is_aggregate and not query.distinct:
        _check_size(len(pairs), engine)
    columns: dict[tuple[int, str], pa.Array] = {}
    for i, part in enumerate(query.parts):
        names = list(dict.fromkeys(item.column for item in query.items if item.stream == i and item.column))
        made_columns = fetch(
            view.prefixes[part.stream], pairs.numbers[i], engine.streams[part.stream].schema, names
        )
        columns.update({(i, name): values for name, values in zip(names, made_columns, strict=True)})
    if query.is_aggregate:
        return _joined_aggregate(engine, query, columns, len(pairs))
    made_table = [columns[item.stream, item.column] for item in query.items if item.column]
    return pa.Table.from_arrays(made_table, names=[item.name for item in query.items])


def _joined_aggregate(
    engine: QueryEngine, query: StandingQuery, columns: Mapping[Any, pa.Array], rows: int
) -> pa.Table:
    from penstock.model.types import Schema
    from penstock.standing.stems.block import Block

    def schema(item: Any) -> Schema:
        return engine.streams[query.parts[item.stream].stream].schema

    def summary(item: Any) -> Summary:
        if item.column is None or not rows:
            return Summary(rows)
        none = np.zeros(rows, np.int64)
        alone = Schema.of([(item.column, schema(item).type_of(item.column))])
        block = Block(pa.table({item.column: columns[item.stream, item.column]}), alone, none, none)
        return summarise(block, np.arange(rows), item.column)

    return _one_row(query, summary, schema)


def rebuilt(engine: QueryEngine, stream: str) -> None:
    """Give every block the matches of all live queries, a block at a time, while others work."""
    from penstock.standing.stems.block import probe_block

    index = engine.index(stream)
    for block in engine.view.prefixes[stream].blocks:
        if block.matches is None or len(block.late) > max(64, len(index.slots) // 8):
            block.matches = probe_block(block, index).lasting()
            block.late.clear()
