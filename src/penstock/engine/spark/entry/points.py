"""Connection points as inputs: history first, then new tuples, by the same entries (A48, A51).

If all readers of a point first filter on the storage key, whole files can be skipped (A49). The same holds
for a join on that key whose other side has such a filter (A50). The manifest's ranges choose the files.
Without ranges, histories are merged in order of time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.connectors.contract import Input, Position, Taken, TicketPart, Waiting
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.entry.admission import ddl
from penstock.engine.spark.exact_paths import read_parquet
from penstock.model.boxes import Filter, Join
from penstock.model.types import SEQ, STAMP
from penstock.model.writing.network import Network
from penstock.store.points.leases import ReaderLease, take_lease
from penstock.store.points.manifest import ENTRY, PointEntry
from penstock.store.points.point import PointReader
from penstock.store.points.predicates import key_ranges
from penstock.store.points.ranges import Ranges

_FADING = 0.9  # what earlier trains tell about how many rows a writer makes of its tuples


@dataclass(frozen=True)
class PointPosition(Position):
    """The last entry that was taken, and what its writer promised with it.

    `born`: when the query first looked, in seconds. What was retained before then counts as arriving at that
    time. `offered` and `kept`: tuples that came to the writer since the last entry with rows, and those of
    them that its valves kept: an entry of which all was shed is told with the next one.
    """

    entry: int
    horizon: int | None = None
    idle: bool = False
    born: float | None = None
    offered: int = 0
    kept: float = 0.0


@dataclass(frozen=True)
class PointEntries(TicketPart):
    """Entries of a connection point, both ends included.

    `newest`: their largest time, in microseconds. `kept`: the share of what was due that valves above the
    point have kept.
    """

    first: int
    last: int
    rows: int
    newest: int | None = None
    kept: float = 1.0


class PointInput(Input[PointPosition]):
    """A connection point seen from the driver of a sub-network that reads it.

    The conductor takes, the thread of the trains commits, and maintenance renews. One at a time: a reader
    that is brought up to date between its segments and its log would skip what has moved between them.
    """

    def __init__(self, checkpoint: Path, name: str, query: str, *, seconds: float | None) -> None:
        self._reader = PointReader(checkpoint, name)
        self._query, self._seconds = query, seconds
        self._one_at_a_time = threading.Lock()
        self._lease: ReaderLease | None = None
        self._born = 0.0
        self._kept: tuple[PointPosition | None, ...] = ()  # one: where the lease begins
        self._flow = 0.0, 0.0  # of late: rows, and tuples of the writer that gave them

    def keep_from(self, position: PointPosition | None) -> None:
        """Let the lease begin at this position, however far the last ticket is."""
        self._kept = (position,)

    def take(self, position: PointPosition | None, limit: int) -> Taken:
        """Take whole entries, at least one, up to the limit of tuples."""
        with self._one_at_a_time:
            return self._take(position, limit)

    def _take(self, position: PointPosition | None, limit: int) -> Taken:
        if self._lease is None:
            (kept,) = self._kept or (position,)
            start = None if kept is None else kept.entry
            self._lease = take_lease(self._reader, self._query, start, seconds=self._seconds)
            # What was retained before a query first looked counts as arriving just now.
            self._born = time.time() if position is None else 0.0
            if position is not None:
                self._reader.must_reach(position.entry, self._query)
        after = self._lease.position if position is None else position.entry
        entries = self._reader.entries(after)
        rows = taken = 0
        for entry in entries:
            if rows and rows + entry.rows > limit:
                break
            rows, taken = rows + entry.rows, taken + 1
        if not taken:
            known = position or PointPosition(after)
            return Taken((), position, 0, horizon=known.horizon, idle=known.idle)
        end = entries[taken - 1]
        self._note_flow(entries[:taken])
        born = self._born if position is None or position.born is None else position.born
        newest = max((e.max_ts for e in entries[:taken] if e.max_ts is not None), default=None)
        oldest = min((e.min_ts for e in entries[:taken] if e.min_ts is not None), default=None)
        offered = sum(e.offered for e in entries[:taken]) + (0 if position is None else position.offered)
        stayed = sum(e.offered * e.kept for e in entries[:taken]) + (0 if position is None else position.kept)
        at = PointPosition(end.number, end.horizon, end.idle, born)
        share = stayed / offered if offered else 1.0
        return Taken(
            [PointEntries(after + 1, end.number, rows, newest, share)] if rows else [],
            at if rows else replace(at, offered=offered, kept=stayed),
            rows,
            newest,
            more=taken < len(entries),
            arrived=_oldest(entries[:taken], born),
            horizon=end.horizon,
            idle=end.idle,
            arrivals=[
                (max(e.since, born), e.rows) for e in entries[:taken] if e.since is not None and e.rows
            ],
            lost=self._lost(entries[:taken]),
            oldest=oldest,
        )

    def _note_flow(self, entries: Sequence[PointEntry]) -> None:
        rows, kept = sum(e.rows for e in entries), sum(e.offered * e.kept for e in entries)
        if kept:
            self._flow = _FADING * self._flow[0] + rows, _FADING * self._flow[1] + kept

    def _lost(self, entries: Sequence[PointEntry]) -> int:
        """Rows that valves above the point have shed: as many as the writer makes of other tuples."""
        rows, kept = self._flow
        return round(sum(e.offered * (1 - e.kept) for e in entries) * rows / kept) if kept else 0

    def waiting(self, position: PointPosition | None) -> Waiting:
        """Entries that were not taken yet; files of compacted ones hold others too, so bytes are unknown."""
        if self._lease is None or position is None:
            return Waiting()
        with self._one_at_a_time:
            entries = self._reader.entries(position.entry)
        full = [entry for entry in entries if entry.rows]
        size = sum(file.bytes for entry in full for file in entry.files)
        known = all(entry.files for entry in full)
        arrived = _oldest(full, position.born or 0.0) if full else None
        rows = sum(entry.rows for entry in full)
        return Waiting(rows, size if known else None, arrived, self._lost(entries))

    def committed(self, position: PointPosition | None) -> None:
        """Note that the train ending at the position is committed: what lies before may be deleted."""
        with self._one_at_a_time:
            if self._lease is not None:
                self._lease.renew(None if position is None else position.entry)

    def renew(self, *, ended: bool = False) -> None:
        """Keep the lease while a long train runs.

        When the trains have `ended`, release what they have finished.
        """
        with self._one_at_a_time:
            if self._lease is None:
                return
            if ended:
                self._lease.settle()
            else:
                self._lease.renew()

    def release(self) -> None:
        """Release the lease: the query is gone for good."""
        if self._lease is not None:
            self._lease.release()


def _oldest(entries: list[PointEntry], born: float) -> float | None:
    """When the oldest of the entries' tuples entered the network.

    If there are no tuples, use those that moved the horizon.
    """
    full = [entry for entry in entries if entry.rows] or entries[-1:]
    known = [entry.since for entry in full if entry.since is not None]
    return max(min(known), born) if known else None


def kept_above(ticket: Ticket) -> dict[str, float]:
    """By point, the share of what was due that valves above it have kept of what a train reads."""
    return {
        name: piece.kept
        for name, slices in ticket.slices.items()
        for piece in slices
        if isinstance(piece, PointEntries)
    }


def asleep(net: Network, idle: Iterable[str]) -> set[str]:
    """Idle inputs, and everything fed only by these: nobody need wait for a point among them."""
    sleeping = set(idle)
    for node in net.nodes.values():
        if node.inputs and set(node.inputs) <= sleeping:
            sleeping.add(node.name)
    return sleeping


def point_frame(
    spark: SparkSession, checkpoint: Path, net: Network, name: str, slices: Sequence[PointEntries]
) -> tuple[DataFrame, tuple[int, int]]:
    """The tuples of a ticket's entries, without files that cannot hold what the readers ask for."""
    schema = net.types[name].schema
    reader = PointReader(checkpoint, name)
    ranges = pushed_ranges(net, name, reader.key)
    skipped = read = 0
    frames = []
    for slice_ in slices:
        plan = reader.plan(slice_.first, slice_.last, ranges)
        skipped, read = skipped + plan.skipped_files, read + len(plan.files)
        if plan.files:
            plan.check()  # Spark ignores our checksums; at least check the lengths
            paths = [str(plan.directory / f.name) for f in plan.files]
            frame = read_parquet(spark, f"{ddl(schema)}, {ENTRY} BIGINT", paths)
            # Entry numbers change with every train. As literals they would force Spark to compile the code
            # each time.
            whole = all(plan.first <= f.first and f.last <= plan.last for f in plan.files)
            frames.append(frame if whole else frame.where(f"{ENTRY} BETWEEN {plan.first} AND {plan.last}"))
    columns = [*[f"`{c.name}`" for c in schema], STAMP, SEQ]
    if not frames:
        return spark.createDataFrame([], ddl(schema)), (skipped, read)
    merged = frames[0]
    for frame in frames[1:]:
        merged = merged.unionByName(frame)
    return merged.selectExpr(*columns), (skipped, read)


def pushed_ranges(net: Network, name: str, key: str) -> Ranges | None:
    """The storage key ranges that the readers need; None if any reader needs everything."""
    readers = [net.nodes[r] for r in net.readers(name)]
    schema = net.types[name].schema
    if len(readers) != 1 or key not in schema:
        return None
    match readers[0]:
        case Filter(predicate=predicate) if predicate:
            return key_ranges(predicate, key, schema.type_of(key))
        case Join() as join if not join.spread:
            return _looked_up(net, name, join, key)
    return None


def _looked_up(net: Network, name: str, join: Join, key: str) -> Ranges | None:
    """The ranges that a join on the storage key takes from a filter on its other side (A50).

    No other key can match.
    """
    if join.inputs[0] == join.inputs[1]:
        return None
    side = join.inputs.index(name)
    other = net.nodes[join.inputs[1 - side]]
    theirs = [pair[1 - side] for pair in join.on if pair[side] == key]
    if not theirs or not isinstance(other, Filter) or not other.predicate:
        return None
    type_ = net.types[name].schema.type_of(key)
    if net.types[other.name].schema.type_of(theirs[0]) != type_:
        return None  # compared after a cast, so its ranges do not apply here
    return key_ranges(other.predicate, theirs[0], type_)
