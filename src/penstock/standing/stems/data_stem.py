"""A Data SteM (PSoup, Sect. 3; P07, P13, P22): the retained tuples of one stream, probed by queries.

Trains insert tuples as blocks in the order of arrival. An invocation works on a `StreamPrefix`, which never
changes: a new train makes a new one (P21). Blocks of one train, and of streams with lateness, may overlap in
time, so a window takes a range of positions of every block that it touches. When there are many small blocks,
they are merged, eight at a time. Tuples beyond the memory budget are evicted, oldest first. They stay in the
connection point's files and are read from there when a window needs them (P38).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa

from penstock.model.boxes import NO_PROMISE
from penstock.model.types import SEQ, STAMP, Schema
from penstock.standing.language.windows import Last, Window
from penstock.standing.stems.block import MOST_ROWS, Block, make_blocks
from penstock.standing.stems.query_stem import PredicateIndex

_TIERS, _FAN = (512, 4096, 32768), 8
_MOST_CACHED = 64
NEVER = -(1 << 62)
FOREVER = 1 << 62
T = TypeVar("T")


@dataclass(frozen=True)
class BlockRange:
    """The tuples low..high of a block."""

    block: Block
    low: int
    high: int

    @property
    def whole(self) -> bool:
        return self.low == 0 and self.high == self.block.rows

    def among(self, positions: np.ndarray) -> np.ndarray:
        """The given positions that lie in it."""
        return positions[(positions >= self.low) & (positions < self.high)]


@dataclass(frozen=True)
class EvictedTuples:
    """What was evicted from memory: everything up to an entry of the connection point."""

    entry: int
    newest: int
    rows: int


@dataclass(frozen=True, eq=False)
class StreamPrefix:
    """The stream as far as it is visible."""

    blocks: tuple[Block, ...] = ()
    evicted: EvictedTuples | None = None
    lost: int = NEVER  # tuples before this time may have been deleted for good
    newest: int = NEVER
    oldest: int = -NEVER  # the earliest time of any tuple ever seen, including deleted ones
    _least: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    _most: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    _rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    _cache: dict[Hashable, object] = field(default_factory=dict)

    @staticmethod
    def of(
        blocks: Sequence[Block], evicted: EvictedTuples | None, lost: int, newest: int, oldest: int
    ) -> StreamPrefix:
        least, most, rows = (
            np.fromiter((getattr(b, name) for b in blocks), np.int64, len(blocks))
            for name in ("least", "newest", "rows")
        )
        return StreamPrefix(tuple(blocks), evicted, lost, newest, oldest, least, most, rows)

    @property
    def rows(self) -> int:
        return int(self._rows.sum())

    @property
    def count(self) -> int:
        """Tuples retained, in memory or not."""
        return self.rows + (self.evicted.rows if self.evicted else 0)

    @property
    def nbytes(self) -> int:
        """The bytes of its blocks: tuples and matches."""
        return sum(block.nbytes for block in self.blocks)

    def lighter(self, most: float) -> StreamPrefix:
        """The prefix without its oldest trains, so that it fits the given bytes if possible.

        They stay in the files (P38).
        """
        blocks, sizes = self.blocks, [block.nbytes for block in self.blocks]
        total, gone = sum(sizes), 0
        # Evict whole trains: a train's entry marks where in the files memory begins.
        while total > most and gone < len(blocks) - 1 and blocks[gone].entry >= 0:
            entry = blocks[gone].entry
            while gone < len(blocks) - 1 and blocks[gone].entry == entry:
                total, gone = total - sizes[gone], gone + 1
        if not gone or blocks[gone].entry == blocks[gone - 1].entry:
            return self
        left, before = blocks[:gone], self.evicted
        newest = max([b.newest for b in left] + ([before.newest] if before else []))
        evicted = EvictedTuples(
            left[-1].entry, newest, sum(b.rows for b in left) + (before.rows if before else 0)
        )
        return StreamPrefix.of(blocks[gone:], evicted, self.lost, self.newest, self.oldest)

    def held(self, begin: int, end: int) -> int:
        """How many tuples between two times are in memory."""
        return sum(piece.high - piece.low for piece in self.between(begin, end))

    def reaches(self, window: Window, now: int) -> int:
        """The time from which a window needs tuples, as far as memory shows.

        A count window that memory cannot fill needs all that are retained.
        """
        if not isinstance(window.begin, Last):
            return max(window.span(now)[0], self.lost)
        pieces = self.within(window, now)
        if sum(piece.high - piece.low for piece in pieces) < window.begin.tuples:
            return self.lost
        return min(int(piece.block.stamps[piece.low]) for piece in pieces)

    def within(self, window: Window, now: int) -> list[BlockRange]:
        """The part of each block that lies in the window, in memory; both ends included."""
        begin, end = window.span(now)
        if isinstance(window.begin, Last):
            return self._last(window.begin.tuples, end)
        begin = max(begin, self.lost)  # if some tuples of a time are gone, none of that time are shown
        # Thousands of queries have windows of the same length.
        return self.remembered((begin, end), lambda: self.between(begin, end))

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is the same for all queries with one window: made once, while there is room for it."""
        if key in self._cache:
            return cast("T", self._cache[key])
        value = make()
        if len(self._cache) < _MOST_CACHED:
            self._cache[key] = value
        return value

    def between(self, begin: int, end: int) -> list[BlockRange]:
        touched = np.flatnonzero((self._most >= begin) & (self._least <= end))
        ranges = []
        for i in touched:
            block = self.blocks[i]
            low = 0 if self._least[i] >= begin else int(np.searchsorted(block.stamps, begin, side="left"))
            high = (
                block.rows if self._most[i] <= end else int(np.searchsorted(block.stamps, end, side="right"))
            )
            if low < high:
                ranges.append(BlockRange(block, low, high))
        return ranges

    def whole(self, begin: int, end: int) -> tuple[int, int, list[BlockRange]]:
        """The longest run of blocks wholly in the window (first, last + 1), and the remaining pieces."""
        inside = (self._least >= begin) & (self._most <= end)
        if not inside.any():
            return 0, 0, self.between(begin, end)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
        runs = edges.reshape(-1, 2)
        first, last = (int(edge) for edge in runs[np.argmax(runs[:, 1] - runs[:, 0])])
        return first, last, self._beside(begin, end, first, last)

    def _beside(self, begin: int, end: int, first: int, last: int) -> list[BlockRange]:
        touched = (self._most >= begin) & (self._least <= end)
        touched[first:last] = False
        ranges = []
        for i in np.flatnonzero(touched):
            stamps = self.blocks[i].stamps
            low, high = np.searchsorted(stamps, begin, "left"), np.searchsorted(stamps, end, "right")
            if low < high:
                ranges.append(BlockRange(self.blocks[i], int(low), int(high)))
        return ranges

    def _last(self, count: int, end: int) -> list[BlockRange]:
        """The newest `count` tuples up to `end`: computed once for all queries with this window."""
        key = ("last", count, min(end, self.newest))
        return self.remembered(key, lambda: self._newest_tuples(count, end))

    def _newest_tuples(self, count: int, end: int) -> list[BlockRange]:
        pieces = self.between(NEVER, end)
        rows = np.array([p.high for p in pieces], np.int64)
        if rows.sum() <= count:
            return pieces
        least = np.array([p.block.least for p in pieces])
        most = np.array([p.block.stamps[p.high - 1] for p in pieces])
        # The oldest tuple of the window lies between these two times. Blocks wholly after the second are in
        # the window, blocks wholly before the first are not. Only those between are examined.
        after = _reached(least, rows, count)
        until = _reached(most, rows, count)
        inside, outside = least > until, most < after
        middle = np.flatnonzero(~inside & ~outside)
        need = count - int(rows[inside].sum())
        stamps = np.concatenate([pieces[i].block.stamps[: rows[i]] for i in middle])
        seqs = np.concatenate([pieces[i].block.seqs[: rows[i]] for i in middle])
        owner = np.repeat(middle, rows[middle])
        chosen = np.lexsort((owner, seqs, stamps))[len(stamps) - need :]
        taken = np.bincount(owner[chosen], minlength=len(pieces))
        taken[inside] = rows[inside]
        return [BlockRange(p.block, p.high - int(n), p.high) for p, n in zip(pieces, taken, strict=True) if n]

    def locate(self, numbers: np.ndarray) -> list[tuple[Block, np.ndarray, np.ndarray]]:
        """Find tuples by their numbers: blocks, positions in them, and where in `numbers` each stands."""
        firsts = self.remembered("firsts", lambda: np.array([b.first for b in self.blocks], np.int64))
        at = np.searchsorted(firsts, numbers, side="right") - 1
        order = np.argsort(at, kind="stable")
        cuts = np.flatnonzero(np.diff(at[order])) + 1
        located = []
        for low, high in pairwise([0, *cuts.tolist(), len(order)] if len(order) else []):
            where = order[low:high]
            block = self.blocks[at[where[0]]]
            located.append((block, block.positions(numbers[where]), where))
        return located


def _reached(times: np.ndarray, rows: np.ndarray, count: int) -> int:
    """Going back in time, the time of the block at which `count` tuples are reached."""
    order = np.argsort(-times, kind="stable")
    at = int(np.searchsorted(np.cumsum(rows[order]), count))
    return int(times[order[at]])


class DataSteM:
    """The writer's side: one thread inserts, anyone reads `prefix`."""

    def __init__(self, schema: Schema, keep: int, *, stamped: bool = True) -> None:
        self.schema, self.keep, self.stamped = schema, keep, stamped
        self.prefix = StreamPrefix()
        self.arrived = 0  # tuples so far

    def grown(
        self,
        blocks: Sequence[Block],
        index: Callable[[], PredicateIndex],
        *,
        horizon: int | None = None,
    ) -> StreamPrefix:
        """The prefix with one more train; the caller makes it visible with `show`."""
        grown_blocks, newest, oldest = list(self.prefix.blocks), self.prefix.newest, self.prefix.oldest
        for block in blocks:
            block.first = self.arrived
            self.arrived += block.rows
            newest, oldest = max(newest, block.newest), min(oldest, block.least)
            grown_blocks.append(block)
        _merge_small(grown_blocks, index)
        lost = self.prefix.lost
        evicted = self.prefix.evicted
        if self.stamped and newest > NEVER:
            # Older tuples may be deleted at any time, here and in the files. From now on nobody is shown
            # them, wherever blocks end.
            lost = max(lost, _event_time(newest, horizon) - self.keep)
            grown_blocks = _without_older(grown_blocks, lost)
            evicted = None if evicted is not None and evicted.newest < lost else evicted
        return StreamPrefix.of(grown_blocks, evicted, lost, newest, oldest)

    def show(self, prefix: StreamPrefix) -> None:
        """Make a prefix visible to invocations."""
        self.prefix = prefix


def _event_time(newest: int, horizon: int | None) -> int:
    """The time behind which tuples are kept: where no horizon is promised, the newest tuple's (A71)."""
    return newest if horizon is None or horizon == NO_PROMISE else min(horizon, newest)


def _without_older(blocks: list[Block], limit: int) -> list[Block]:
    """Drop leading blocks that are wholly older."""
    gone = 0
    while gone < len(blocks) - 1 and blocks[gone].newest < limit:
        gone += 1
    return blocks[gone:]


def _merge_small(blocks: list[Block], index: Callable[[], PredicateIndex]) -> None:
    """Merge eight or more small blocks at the end into one.

    So there are few blocks, and each tuple is merged only a few times.
    """
    for limit in _TIERS:
        run = 0
        while run < len(blocks) and blocks[-1 - run].rows <= limit:
            run += 1
        while run >= _FAN and (sum(b.rows for b in blocks[-run:]) > MOST_ROWS or _cuts_train(blocks, run)):
            run -= 1
        if run >= _FAN:
            blocks[-run:] = [merged(blocks[-run:], index())]


def _cuts_train(blocks: Sequence[Block], run: int) -> bool:
    """Whether the last `run` blocks begin within a train.

    Merged, they would carry a later entry. When the rest of that train leaves memory, its files are read from
    then on, and they also hold the tuples that were merged.
    """
    first = len(blocks) - run
    return first > 0 and blocks[first].entry == blocks[first - 1].entry >= 0


def merged(blocks: Sequence[Block], index: PredicateIndex | None) -> Block:
    """Merge adjacent blocks into one.

    Its tuples keep their numbers. Removed queries leave no trace in it (P29).
    """
    first = blocks[0].first
    numbers = np.concatenate([b.numbers(np.arange(b.rows)) for b in blocks])
    stamps, seqs = (np.concatenate([getattr(b, n) for b in blocks]) for n in ("stamps", "seqs"))
    order = np.lexsort((seqs, stamps))
    table = pa.concat_tables([b.table for b in blocks]).take(pa.array(order))
    table = table.append_column(STAMP, pa.array(stamps[order])).append_column(SEQ, pa.array(seqs[order]))
    block = make_blocks(table, blocks[0].schema, index, max(b.entry for b in blocks))[0]
    block.matches = None if block.matches is None else block.matches.lasting()
    block.first = first
    block.position_of = np.empty(len(order), np.uint16)
    block.position_of[numbers[order] - first] = np.arange(len(order), dtype=np.uint16)
    return block
