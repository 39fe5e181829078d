"""From a connection point to the Data SteM: history from its files, then its trains through Spark.

The feed is a sub-network of its own, attached at the point like an ad-hoc query (Aurora, A30). So the engine
provides tickets, leases, train policy and status. Its trains run the probe instead of boxes. Each task reads
its share of the train's files, sorts it, and probes the predicate index, which is broadcast when it has
changed. The task returns one block: columns and posting lists. The blocks become visible in the driver when
all of the train have arrived.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.contract import Taken
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.entry.points import PointEntries, PointInput, PointPosition
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.trains.train import Trains
from penstock.model.errors import PenstockError, one_line
from penstock.model.types import Schema, arrow_schema
from penstock.standing.answers.query_engine import Archived, QueryEngine
from penstock.standing.deadline import check_time
from penstock.standing.errors import LimitError
from penstock.standing.stems.block import Block, Matches, make_blocks
from penstock.standing.stems.data_stem import NEVER
from penstock.standing.stems.query_stem import PredicateIndex
from penstock.store.ipc import from_ipc, ipc_bytes
from penstock.store.points.manifest import NO_HORIZON, DataFile, PointEntry
from penstock.store.points.point import PointReader, ReadPlan
from penstock.store.points.ranges import Interval

_HISTORY_ROWS = 1 << 19  # read at once
_INDEX_SHARE = 10  # the index is rebuilt at most every this many times its build time


class InputAfterHistory(PointInput):
    """A connection point from an entry on: earlier entries are already loaded."""

    def __init__(self, checkpoint: Path, name: str, query: str, start: PointPosition | None) -> None:
        super().__init__(checkpoint, name, query, seconds=60.0)
        self._start = start

    def take(self, position: PointPosition | None, limit: int) -> Taken:
        """Take as from any point, but begin where history ends."""
        return super().take(position or self._start, limit)


class ProbeTrains(Trains):
    """Trains that probe: they write nothing, and their findings go to the engine."""

    engine: QueryEngine
    stream: str
    point: str

    def feeding(self, engine: QueryEngine, stream: str, point: str) -> ProbeTrains:
        """Set the engine that this feeds."""
        self.engine, self.stream, self.point = engine, stream, point
        self._sent: tuple[PredicateIndex, Any] | None = None
        self._cost = self._made = 0.0
        return self

    def _run(self, ticket: Ticket, outcome: Outcome) -> Commit:
        slices = [s for s in ticket.slices.get(self.point, ()) if isinstance(s, PointEntries)]
        position = ticket.positions.get(self.point)
        assert position is None or isinstance(position, PointPosition)
        blocks = self._probed(slices, position.entry) if slices and position is not None else []
        outcome.count(self.point, **{"in": sum(b.rows for b in blocks), "out": sum(b.rows for b in blocks)})
        commit = Commit(ticket.train, counts=outcome.counts, finished=time.time())
        self.log.write_commit(commit)
        if blocks and position is not None:
            self._show(blocks, position.horizon)
        return commit

    def _show(self, blocks: list[Block], horizon: int | None) -> None:
        try:
            self.engine.insert_blocks(self.stream, blocks, horizon=horizon)
        except Exception as error:
            # The train is committed. Another attempt would leave its tuples out, or count some of them twice.
            raise PenstockError(
                f"standing queries: tuples of stream '{self.stream}' could not be shown",
                found=f"{type(error).__name__}: {one_line(error)}",
                hint="a new start of the service computes all answers from the retained tuples",
            ) from error

    def _probed(self, slices: list[PointEntries], entry: int) -> list[Block]:
        """Run one job over the files of the train's entries, a share for each task."""
        reader = PointReader(self.checkpoint, self.point)
        plans = [reader.plan(part.first, part.last) for part in slices]
        shares = [(plan, share) for plan in plans for share in _shares(plan, self.partitions)]
        if not shares:
            return []
        index, sent = self._index()
        schema = self.net.types[self.point].schema
        job = self.spark.sparkContext.parallelize(shares, len(shares)).flatMap(ProbeTask(schema, sent, entry))
        return [unpacked(body, schema, index) for body in job.collect()]

    def _index(self) -> tuple[PredicateIndex, Any]:
        """The index and its broadcast: sent again when changed, but not so often that trains wait for it.

        A query that the index does not know yet meets the blocks in the driver, so its answers are the same.
        """
        now = time.monotonic()
        if self._sent is None or now - self._made > _INDEX_SHARE * self._cost:
            index = self.engine.index(self.stream)
            if self._sent is None or index is not self._sent[0]:
                old = self._sent
                self._sent = index, self.spark.sparkContext.broadcast(index)
                if old is not None:
                    old[1].unpersist(blocking=False)
            self._cost, self._made = time.monotonic() - now, time.monotonic()
        assert self._sent is not None
        return self._sent


def _shares(plan: ReadPlan, width: int) -> list[list[DataFile]]:
    """Deal a train's files out to tasks: the largest first, each to the task with least."""
    shares: list[list[DataFile]] = [[] for _ in range(min(width, len(plan.files)))]
    for file in sorted(plan.files, key=lambda f: -f.rows):
        min(shares, key=lambda share: sum(f.rows for f in share)).append(file)
    return shares


class ProbeTask:
    """Reads a share of a train from the point's files and returns blocks that have met the queries.

    Our own reader takes the files because it knows their checksums. Also, columns go from Parquet to numpy
    without becoming JVM rows on the way, which would cost several times as much as the probe.
    """

    def __init__(self, schema: Schema, index: Any, entry: int) -> None:
        self.schema, self.index, self.entry = schema, index, entry

    def __call__(self, given: tuple[ReadPlan, list[DataFile]]) -> Iterator[bytes]:
        plan, share = given
        tables = list(plan.tables(share))
        if not sum(table.num_rows for table in tables):
            return
        table = pa.concat_tables(tables).select(arrow_schema(self.schema).names)
        for block in make_blocks(table, self.schema, self.index.value, self.entry):
            yield packed(block)


def packed(block: Block) -> bytes:
    """A block packed for the driver, without the index, which the driver has."""
    matches = block.matches
    lists = (
        None
        if matches is None
        else (matches.known.version, matches.starts, matches.positions, matches.bitmaps)
    )
    return pickle.dumps((ipc_bytes(block.table), block.stamps, block.seqs, block.entry, lists), protocol=5)


def unpacked(body: bytes, schema: Schema, index: PredicateIndex) -> Block:
    """Restore a block from `packed`, with the index that it was probed with."""
    data, stamps, seqs, entry, lists = pickle.loads(body)  # noqa: S301 - from our own tasks
    block = Block(from_ipc(data), schema, stamps, seqs, entry=entry)
    if lists is not None:
        assert lists[0] == index.known.version
        block.matches = Matches(index.known, *lists[1:])
    return block


# -- history


def load_history(engine: QueryEngine, stream: str, checkpoint: Path, point: str) -> PointPosition | None:
    """Insert everything retained at the point, and return the position after it.

    Queries meet these tuples when they are asked.
    """
    reader = PointReader(checkpoint, point)
    schema = engine.streams[stream].schema
    entries = reader.entries()
    for group in _grouped(entries):
        table = reader.read(group[0].number, group[-1].number)
        blocks = make_blocks(table, schema, None, group[-1].number)
        engine.insert_blocks(stream, blocks, horizon=group[-1].horizon)
    if reader.thinned >= 0 and entries:
        # Of streams without timestamps retention does not know by time what it has deleted.
        known, reckoned = reader.base.lost_before, entries[-1].horizon - engine.streams[stream].keep
        engine.set_lost(stream, reckoned if known == NO_HORIZON else known)
    last = entries[-1] if entries else None
    return None if last is None else PointPosition(last.number, last.horizon)


def _grouped(entries: list[PointEntry]) -> Iterator[list[PointEntry]]:
    group: list[PointEntry] = []
    for entry in entries:
        if group and sum(e.rows for e in group) + entry.rows > _HISTORY_ROWS:
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def archived(reader: PointReader, through: int, begin: int, end: int, most: float) -> Archived:
    """Tuples of the entries up to one, from the point's files, at least those between two times (P38).

    Raises LimitError if there are more than `most`.
    """
    # Tuples without a timestamp lie in no interval.
    ranges = None if begin <= NEVER else (Interval(begin, end),)
    first = max(reader.removed + 1, 0)
    rows = reader.plan(first, through, ts_ranges=ranges).rows
    if rows > most:
        raise LimitError(
            f"the window needs {rows:,} tuples that are no longer in memory",
            expected=f"at most {int(most):,} with this memory",
            hint="shorten the window, or let the service be started with more --memory",
        )
    check_time()
    table = reader.read(first, through, ts_ranges=ranges)
    return Archived(table, reader.base.lost_before)
