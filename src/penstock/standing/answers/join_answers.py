"""The answer of a join: all visible pairs, those within the windows, and the columns of their tuples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from penstock.standing.answers.joins import Candidates, JoinBounds, JoinedPairs, JoinTask, join
from penstock.standing.answers.registered_query import RegisteredQuery
from penstock.standing.answers.results import fetch, kept, looked_up, numbers_of
from penstock.standing.answers.visible_streams import VisibleStreams
from penstock.standing.language.query import StandingQuery, StreamInfo
from penstock.standing.language.select_clause import joined_schema
from penstock.standing.language.windows import Last
from penstock.standing.stems.data_stem import FOREVER, BlockRange

Streams = Mapping[str, StreamInfo]


def pairs_of(
    registered: RegisteredQuery,
    view: VisibleStreams,
    streams: Streams,
    bounds: JoinBounds,
    *,
    windows: bool = False,
) -> JoinedPairs:
    """All combinations of visible tuples.

    `windows`: only those within the windows; otherwise all that are to be kept.
    """
    query = registered.query
    ranges = _ranges(registered, view, windows=windows)
    schema = joined_schema(query.parts, streams)
    pairs = [JoinedPairs.none(len(query.parts))]
    for b, branch in enumerate(query.branches):
        candidates = _candidates(registered, b, ranges, streams)
        if all(len(each) for each in candidates):
            start = min(range(len(candidates)), key=lambda i: len(candidates[i]))
            task = JoinTask(branch, query.parts, candidates, schema, bounds)
            composite = join(task, start, registered.order)
            pairs.append(JoinedPairs.of(composite, candidates))
    together = JoinedPairs.together(pairs)
    return together.once() if len(query.branches) > 1 else together


def _ranges(registered: RegisteredQuery, view: VisibleStreams, *, windows: bool) -> list[list[BlockRange]]:
    """The part of each stream of FROM whose tuples may be joined."""
    query = registered.query
    prefixes = [view.prefixes[part.stream] for part in query.parts]
    if windows:
        now = view.now(query)
        return [prefix.within(w, now) for prefix, w in zip(prefixes, query.windows, strict=True)]
    begins = view.begins(registered)
    return [prefix.between(begin, FOREVER) for prefix, begin in zip(prefixes, begins, strict=True)]


def _candidates(
    registered: RegisteredQuery, branch: int, ranges: list[list[BlockRange]], streams: Streams
) -> list[Candidates]:
    """For each stream of FROM, the tuples that fulfil the branch's conjunction for it."""
    matches = kept if registered.lasting else looked_up
    conjunctions = registered.query.branches[branch].parts
    slots = zip(registered.slots[branch], conjunctions, strict=True)
    return [
        Candidates.of(matches(each, [slot]), streams[part.stream].schema)
        for each, slot, part in zip(ranges, slots, registered.query.parts, strict=True)
    ]


def pairs_in_windows(
    registered: RegisteredQuery,
    view: VisibleStreams,
    now: int,
    streams: Streams,
    bounds: JoinBounds,
    *,
    fresh: bool,
) -> JoinedPairs:
    """The pairs within the windows; `fresh`: ignore kept pairs."""
    if registered.pairs is None or fresh:
        return pairs_of(registered, replace(view, moment=now), streams, bounds, windows=True)
    query = registered.query
    pairs = registered.pairs.within(view.spans(query, now))
    for i, part in enumerate(query.parts):
        if isinstance(query.windows[i].begin, Last):
            ranges = view.prefixes[part.stream].within(query.windows[i], now)
            pairs = pairs.among(i, numbers_of(ranges))
    return pairs


def joined_columns(
    query: StandingQuery, view: VisibleStreams, pairs: JoinedPairs, streams: Streams, most_bytes: int
) -> dict[tuple[int, str], pa.Array]:
    """The columns that SELECT names, by stream of FROM and name, one row for each pair."""
    columns: dict[tuple[int, str], pa.Array] = {}
    left = most_bytes
    for i, part in enumerate(query.parts):
        names = list(dict.fromkeys(item.column for item in query.items if item.stream == i and item.column))
        schema = streams[part.stream].schema
        fetched = fetch(view.prefixes[part.stream], pairs.numbers[i], schema, names, left)
        left -= sum(column.nbytes for column in fetched)
        columns |= {(i, name): values for name, values in zip(names, fetched, strict=True)}
    return columns
