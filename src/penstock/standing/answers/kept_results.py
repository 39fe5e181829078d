"""Update kept results with each train: PSoup-C's current window, and the pairs of a join (P28, P31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.standing.answers.joins import Candidates, JoinBounds, JoinedPairs, JoinTask, join
from penstock.standing.answers.registered_query import RegisteredQuery
from penstock.standing.answers.results import kept
from penstock.standing.answers.visible_streams import VisibleStreams
from penstock.standing.language.query import StreamInfo
from penstock.standing.language.select_clause import joined_schema
from penstock.standing.stems.block import Block
from penstock.standing.stems.data_stem import FOREVER, BlockRange


@dataclass(frozen=True)
class ArrivingTrain:
    """A train that becomes visible: its blocks, and what was visible before and will be after."""

    stream: str
    blocks: Sequence[Block]
    before: VisibleStreams
    after: VisibleStreams

    @cached_property
    def ranges(self) -> list[BlockRange]:
        """All of its tuples."""
        return [BlockRange(block, 0, block.rows) for block in self.blocks]


def keep_up(
    registered: RegisteredQuery, train: ArrivingTrain, streams: Mapping[str, StreamInfo], bounds: JoinBounds
) -> None:
    """Bring a query's kept results up to date. Raises LimitError if a join would have to keep too much."""
    if registered.current is not None:
        query = registered.query
        begin = train.after.begin(query, 0, train.after.now(query))
        arrived = kept(train.ranges, registered.selection())
        registered.current = registered.current.moved(arrived, begin)
    elif registered.pairs is not None:
        registered.pairs = _pairs_with(registered, registered.pairs, train, streams, bounds)


def _pairs_with(
    registered: RegisteredQuery,
    pairs: JoinedPairs,
    train: ArrivingTrain,
    streams: Mapping[str, StreamInfo],
    bounds: JoinBounds,
) -> JoinedPairs:
    """The kept pairs plus those of a train's tuples, without those that have left."""
    query, begins = registered.query, train.after.begins(registered)
    schema = joined_schema(query.parts, streams)
    arrived = []
    for b, branch in enumerate(query.branches):
        for i, part in enumerate(query.parts):
            candidates = (
                _meeting(registered, b, i, train, begins, streams) if part.stream == train.stream else []
            )
            if candidates:
                composite = join(
                    JoinTask(branch, query.parts, candidates, schema, bounds), i, registered.order
                )
                arrived.append(JoinedPairs.of(composite, candidates))
    together = JoinedPairs.together([pairs, *arrived]) if arrived else pairs
    together = together.after(begins)
    return together.once() if arrived and len(query.branches) > 1 else together


def _meeting(
    registered: RegisteredQuery,
    branch: int,
    at: int,
    train: ArrivingTrain,
    begins: Sequence[int],
    streams: Mapping[str, StreamInfo],
) -> list[Candidates]:
    """What new tuples meet in one place of FROM: candidates for each stream, none if no new tuple fits.

    If a stream stands twice in FROM, new tuples also meet each other, and each such pair must be found once.
    So streams before this place are taken as they were before the train, those after it as they are after the
    train.
    """
    query = registered.query
    matched = kept(train.ranges, [(registered.slots[branch][at], query.branches[branch].parts[at])])
    new = Candidates.of(matched, streams[train.stream].schema)
    if not len(new):
        return []
    return [
        new
        if j == at
        else _others(registered, branch, j, train.before if j < at else train.after, begins[j], streams)
        for j in range(len(query.parts))
    ]


def _others(
    registered: RegisteredQuery,
    branch: int,
    at: int,
    view: VisibleStreams,
    begin: int,
    streams: Mapping[str, StreamInfo],
) -> Candidates:
    """What a stream has that may be joined; gathered anew only when the stream has moved."""
    part = registered.query.parts[at]
    prefix = view.prefixes[part.stream]
    cached = registered.candidates.get((branch, at))
    if cached is not None and cached[0] is prefix:
        return cached[1]
    slot = (registered.slots[branch][at], registered.query.branches[branch].parts[at])
    candidates = Candidates.of(kept(prefix.between(begin, FOREVER), [slot]), streams[part.stream].schema)
    registered.candidates[branch, at] = prefix, candidates
    return candidates
