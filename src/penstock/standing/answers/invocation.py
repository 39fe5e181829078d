"""Invocation (PSoup, Sect. 3.5; P19): find BEGIN-END, apply it to what is kept, fetch, project.

Nothing here changes state, so it may run in any thread, on any prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.standing.answers.join_answers import joined_columns, pairs_in_windows
from penstock.standing.answers.joins import JoinBounds, JoinedPairs
from penstock.standing.answers.ranked_tree import Summary
from penstock.standing.answers.registered_query import RegisteredQuery
from penstock.standing.answers.results import (
    CurrentWindow,
    MatchedPositions,
    aggregate_column,
    bytes_of,
    check_bytes,
    distinct,
    kept,
    looked_up,
    rows_of,
    size,
    summarise,
)
from penstock.standing.answers.visible_streams import VisibleStreams, check_retained
from penstock.standing.answers.window_gather import window_gather
from penstock.standing.deadline import check_time
from penstock.standing.errors import LimitError
from penstock.standing.language.query import SelectItem, StandingQuery, StreamInfo
from penstock.standing.language.windows import Last, Window
from penstock.standing.limits import Limits
from penstock.standing.stems.block import lone_column
from penstock.standing.stems.data_stem import FOREVER, StreamPrefix


class AnswerSource(Protocol):
    """The part of a query engine that an answer needs."""

    @property
    def streams(self) -> Mapping[str, StreamInfo]: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def join_bounds(self) -> JoinBounds:
        """What one join may cost."""

    def extended(self, stream: str, prefix: StreamPrefix, begin: int, end: int) -> StreamPrefix:
        """The prefix with the evicted tuples between two times."""

    def tree_summary(
        self, registered: RegisteredQuery, column: str | None, view: VisibleStreams, now: int
    ) -> Summary:
        """The window's summary, from the ranked tree of the query's conjunctions."""


def answer(
    source: AnswerSource,
    registered: RegisteredQuery,
    view: VisibleStreams,
    *,
    at: int | None = None,
    again: bool = False,
) -> pa.Table:
    """The query's answer on a view. `again`: ignore kept results, which belong to the newest view only."""
    query = registered.query
    now = view.now(query) if at is None else at
    wider = _extended(source, query, view, now)
    fresh = again or wider is not view
    if query.is_join:
        table = _joined(source, registered, wider, now, fresh=fresh)
    elif query.is_aggregate:
        table = _aggregated(source, registered, wider, now, fresh=fresh)
    else:
        table = None if fresh else _at_once(source, registered, wider, now)
        if table is None:
            table = _one_by_one(source, registered, wider, now, fresh=fresh)
    if query.distinct:
        table = distinct(table)
        _check_size(table.num_rows, source)
    return table


def _extended(source: AnswerSource, query: StandingQuery, view: VisibleStreams, now: int) -> VisibleStreams:
    """The view with the evicted tuples that the query's windows need.

    The same view if they need none.
    """
    for part, window in zip(query.parts, query.windows, strict=True):
        check_retained(part.stream, view.prefixes[part.stream], window, now)
    needs = _needs(query, view, now)
    wider = {stream: source.extended(stream, view.prefixes[stream], *need) for stream, need in needs.items()}
    if all(wider[stream] is view.prefixes[stream] for stream in wider):
        return view
    for part, window in zip(query.parts, query.windows, strict=True):
        check_retained(part.stream, wider[part.stream], window, now)
    return VisibleStreams({**view.prefixes, **wider}, view.version)


def _needs(query: StandingQuery, view: VisibleStreams, now: int) -> dict[str, tuple[int, int]]:
    """The time range needed of each stream.

    A stream may stand in FROM several times, with several windows.
    """
    needs: dict[str, tuple[int, int]] = {}
    for part, window in zip(query.parts, query.windows, strict=True):
        begin, end = view.prefixes[part.stream].reaches(window, now), window.span(now)[1]
        least, most = needs.get(part.stream, (begin, end))
        needs[part.stream] = min(least, begin), max(most, end)
    return needs


def _check_size(rows: int, source: AnswerSource) -> None:
    check_time()
    if rows > source.limits.rows:
        raise LimitError(
            f"the answer has {rows:,} rows",
            expected=f"at most {source.limits.rows:,}",
            hint="narrow the query or its window, or let the service be started with a higher limit",
        )


# -- selections


def _at_once(
    source: AnswerSource, registered: RegisteredQuery, view: VisibleStreams, now: int
) -> pa.Table | None:
    """PSoup-P with one conjunction, by compiled loops; None where they do not apply."""
    query = registered.query
    if registered.mode != "P" or len(query.branches) != 1:
        return None
    gather = window_gather(view.prefixes[query.parts[0].stream], query.windows[0], now)
    if gather is None:
        return None
    matches = gather.find(registered.slots[0][0], query.branches[0].parts[0])
    if not query.distinct:
        _check_size(matches.count, source)
    check_bytes(8 * matches.count * len(query.items), source.limits.answer_bytes)
    return gather.rows(matches, query.items, source.streams[query.parts[0].stream].schema)


def _one_by_one(
    source: AnswerSource, registered: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool
) -> pa.Table:
    matched = _selected(registered, view, now, fresh=fresh)
    query = registered.query
    if not query.distinct:
        _check_size(size(matched), source)
    schema = source.streams[query.parts[0].stream].schema
    columns = [item.column for item in query.items if item.column]
    check_bytes(bytes_of(matched, schema, columns), source.limits.answer_bytes)
    return rows_of(matched, query.items, schema)


def _selected(
    registered: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool
) -> MatchedPositions:
    query = registered.query
    prefix, window = view.prefixes[query.parts[0].stream], query.windows[0]
    if registered.current is not None and not fresh:
        return _from_current(registered.current, prefix, window, now)
    if not query.branches:
        return []
    matches = kept if registered.mode == "P" else looked_up
    return matches(prefix.within(window, now), registered.selection())


def _from_current(current: CurrentWindow, prefix: StreamPrefix, window: Window, now: int) -> MatchedPositions:
    """PSoup-C's current window, cut at END, and at the first tuple of a count window."""
    begin, end = window.span(now)
    numbers = current.until(max(begin, prefix.lost), end)
    matched = [(block, np.sort(positions)) for block, positions, _ in prefix.locate(numbers)]
    if isinstance(window.begin, Last):
        ranges = {id(r.block): r for r in prefix.within(window, now)}
        matched = [(b, ranges[id(b)].among(p)) for b, p in matched if id(b) in ranges]
    return [(block, positions) for block, positions in matched if len(positions)]


def current_of(registered: RegisteredQuery, view: VisibleStreams) -> CurrentWindow:
    """The current window of a newly registered query."""
    query = registered.query
    if not query.branches:
        return CurrentWindow.of([])
    begin = view.begin(query, 0, view.now(query))
    ranges = view.prefixes[query.parts[0].stream].between(begin, FOREVER)
    return CurrentWindow.of(looked_up(ranges, registered.selection()))


# -- aggregates


def _aggregated(
    source: AnswerSource, registered: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool
) -> pa.Table:
    query = registered.query
    columns = dict.fromkeys(item.column for item in query.items)
    if registered.mode == "P" and not query.counted and not fresh and query.branches:
        summaries = {column: source.tree_summary(registered, column, view, now) for column in columns}
    else:
        matched = _selected(registered, view, now, fresh=fresh)
        summaries = {column: _summary(matched, column) for column in columns}
    return _one_row(source, query, [summaries[item.column] for item in query.items])


def _summary(matched: MatchedPositions, column: str | None) -> Summary:
    return sum((summarise(block, positions, column) for block, positions in matched), Summary())


def _one_row(source: AnswerSource, query: StandingQuery, summaries: Iterable[Summary]) -> pa.Table:
    columns = [
        aggregate_column(summary, item, _item_type(source, query, item))
        for item, summary in zip(query.items, summaries, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=[item.name for item in query.items])


def _item_type(source: AnswerSource, query: StandingQuery, item: SelectItem) -> str:
    schema = source.streams[query.parts[item.stream].stream].schema
    return schema.type_of(item.column) if item.column else "BIGINT"


# -- joins


def _joined(
    source: AnswerSource, registered: RegisteredQuery, view: VisibleStreams, now: int, *, fresh: bool
) -> pa.Table:
    query = registered.query
    pairs = pairs_in_windows(registered, view, now, source.streams, source.join_bounds, fresh=fresh)
    if query.is_aggregate:
        return _one_row(source, query, _joined_summaries(source, query, view, pairs))
    if not query.distinct:
        _check_size(len(pairs), source)
    columns = joined_columns(query, view, pairs, source.streams, source.limits.answer_bytes)
    chosen = [columns[item.stream, item.column] for item in query.items if item.column]
    return pa.Table.from_arrays(chosen, names=[item.name for item in query.items])


def _joined_summaries(
    source: AnswerSource, query: StandingQuery, view: VisibleStreams, pairs: JoinedPairs
) -> list[Summary]:
    columns = joined_columns(query, view, pairs, source.streams, source.limits.answer_bytes)
    rows = len(pairs)

    def summary(item: SelectItem) -> Summary:
        if item.column is None or not rows:
            return Summary(rows)
        values, type_ = columns[item.stream, item.column], _item_type(source, query, item)
        return summarise(lone_column(item.column, type_, values), np.arange(rows), item.column)

    return [summary(item) for item in query.items]
