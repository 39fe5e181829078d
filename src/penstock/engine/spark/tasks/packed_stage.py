"""A stage whose tuples arrive and leave packed: no row of them ever exists in the JVM.

What one stage sends to the next travels as one record for each target partition. Records about the train pass
through. `runs/packed_run.py` puts such stages together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import Slice
from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.contract.ticket import UNKNOWN
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.entry.slice_entry import enter
from penstock.engine.spark.tasks.key_targets import targets
from penstock.engine.spark.tasks.stage import StageTask
from penstock.engine.spark.tasks.stage_run import StageRun
from penstock.engine.spark.tasks.worker_process import after_task
from penstock.model.boxes import Keys, Source
from penstock.model.types import SEQ, STAMP, arrow_schema
from penstock.store.ipc import from_ipc, ipc_bytes

RECORD_DDL = "label INT, kind STRING, name STRING, body BINARY"
_NAMES = ["label", "kind", "name", "body"]
_PACKED = "packed"
Record = tuple[int, str, str, bytes]


@dataclass(frozen=True)
class _Rooted:
    """What a source gave, refused and shed; `newest`: the largest time among all of it."""

    table: pa.Table
    dead: pa.Table
    offered: int
    shed: int
    newest: int | None


Begun = tuple[list[pa.Table], _Rooted | None]
"""The tables of a stage's entries; or, for the stage of a source, what the source gave and refused."""


@dataclass(frozen=True)
class Onward:
    """An arrow into another stage: its tuples, the stage and entry it leads to, and the keys.

    `doubles`: whole numbers among the keys meet fractions there.
    """

    tail: str
    stage: str
    entry: int
    keys: Keys
    doubles: bool = False


@dataclass
class PackedStageTask(StageTask):
    """A stage whose tuples arrive and leave packed."""

    root: Source | None = None
    sending: list[Onward] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)  # label p leads to partition p
    slices: dict[str, Slice] = field(default_factory=dict)  # by the name of the file
    root_valves: tuple[Valve, ...] = ()  # at the source

    def run(self, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the partition's share of the train."""
        passing: list[Record] = []
        begun = self._begin(batches, passing)
        yield from self._finish(partition, begun, passing)

    def _begin(self, batches: Iterable[pa.RecordBatch], passing: list[Record]) -> Begun:
        if self.root is not None:
            return self._unpacked(batches)
        entries: list[list[pa.Table]] = [[] for _ in self.entries]
        for batch in batches:
            for record in zip(*(batch.column(name).to_pylist() for name in _NAMES), strict=True):
                stage, _, entry = record[2].partition("#")
                if record[1] == _PACKED and stage == self.name:
                    entries[int(entry)].append(from_ipc(record[3]))
                else:
                    passing.append(record)
        tables = [
            pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()
            for parts, schema in zip(entries, self.entry_fields, strict=True)
        ]
        return tables, None

    def _unpacked(self, batches: Iterable[pa.RecordBatch]) -> Begun:
        """The source's tuples in the order of deliveries, its dead letters, and how many were offered."""
        assert self.root is not None
        tables, dead, offered, shed, newest = [], [], 0, 0, UNKNOWN
        for batch in batches:
            chunks = batch.column("chunk")
            for i, slice_ in enumerate(self._slices_of(batch)):
                if slice_ is None:
                    continue  # a partition without files still has its task
                # Use the buffer itself: copying megabytes into Python bytes costs time.
                chunk = _view(chunks, i)
                entered = enter(self.root, slice_, UNKNOWN, self.root_valves, chunk)
                offered, shed = offered + entered.offered, shed + entered.shed
                newest = max(newest, UNKNOWN if entered.newest is None else entered.newest)
                tables.append(entered.tuples)
                dead.append(entered.dead)
        full = sorted((table for table in tables if table.num_rows), key=_first_seq)
        schema = arrow_schema(self.root.schema)
        whole = schema.empty_table() if not full else full[0]
        if len(full) > 1:
            whole = pa.concat_tables(full).combine_chunks()
        letters = pa.concat_tables(dead) if dead else DEAD_SCHEMA.empty_table()
        seen = max(newest, _newest(whole))
        return [], _Rooted(whole, letters, offered, shed, None if seen == UNKNOWN else seen)

    def _slices_of(self, batch: pa.RecordBatch) -> list[Slice | None]:
        """The slice in each record, by the name of its file."""
        return [self.slices.get(file_name(path)) for path in batch.column("path").to_pylist()]

    def _finish(self, partition: int, begun: Begun, passing: list[Record]) -> Iterator[pa.RecordBatch]:
        tables, rooted = begun
        state = self.partition_state(partition)
        held = self.held(state)
        stage_run = StageRun(self, held.boxes if held else self.make(), tables, partition)
        if rooted is not None:
            self._enter(stage_run, rooted)
        stage_run.run()
        # Write answers before state: readers get them sooner, and a replay produces the same answers.
        record, rows = self.outgoing(stage_run, partition)
        record |= self.kept_record(partition, self.keep(state, held))
        if rooted is not None:
            record["newest"] = rooted.newest
        mine = self.labels[partition]
        records = passing + [(mine, kind, name, body) for kind, name, body in rows]
        records += list(self._sent(stage_run))
        records.append((mine, "record", self.name, json.dumps(record).encode()))
        columns = zip(*records, strict=True)
        types = [pa.int32(), pa.string(), pa.string(), pa.binary()]
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=_NAMES)
        after_task()

    def _enter(self, stage_run: StageRun, rooted: _Rooted) -> None:
        assert self.root is not None
        name, bad, rows = self.root.name, rooted.dead.num_rows, rooted.table.num_rows
        stage_run.tables[name] = rooted.table
        counts = {"in": rows + bad, "out": rows, "dead": bad, "late": 0}
        stage_run.counts[name] = {**counts, "offered": rooted.offered, "shed": rooted.shed}
        if bad:
            stage_run.dead.append(rooted.dead)

    def _sent(self, stage_run: StageRun) -> Iterator[Record]:
        """What goes on to other stages: one record for each target partition that gets tuples."""
        for onward in self.sending:
            table = stage_run.tables[onward.tail]
            if not table.num_rows:
                continue
            target = targets(table, onward.keys, len(self.labels), doubles=onward.doubles)
            for p, label in enumerate(self.labels):
                part = table if target is None else table.filter(pa.array(target == p))
                if part.num_rows:
                    yield label, _PACKED, f"{onward.stage}#{onward.entry}", ipc_bytes(part)
                if target is None:
                    break


def _first_seq(table: pa.Table) -> int:
    seq: int = table.column(SEQ)[0].as_py()
    return seq


def _newest(table: pa.Table) -> int:
    newest: int | None = pc.max(table.column(STAMP)).as_py()
    return UNKNOWN if newest is None else newest


def _view(chunks: pa.Array, i: int) -> memoryview:
    return memoryview(chunks[i].as_buffer())


@cache
def labels_for(parts: int) -> list[int]:
    """For each partition, the least number that Spark's hash partitioning sends there.

    >>> [murmur3(label) % 3 for label in labels_for(3)]
    [0, 1, 2]
    """
    labels: dict[int, int] = {}
    number = 0
    while len(labels) < parts:
        labels.setdefault(murmur3(number) % parts, number)
        number += 1
    return [labels[p] for p in range(parts)]


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's `hash` of an INT.

    >>> murmur3(1)
    -559580957
    """
    mask = 0xFFFFFFFF

    def rotated(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (32 - bits))) & mask

    k = rotated(value * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    h = (rotated(seed ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & mask
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def record_name(piece: Slice) -> str:
    """The name of a record: its path, as in Spark's own reader, or the slice itself."""
    return piece.whole_file() or json.dumps(piece.plain())


def file_name(path: str) -> str:
    """The name of the file, or the slice itself, in a record's path."""
    return path if path.startswith("{") else unquote(path.rsplit("/", 1)[-1])


@dataclass
class ReadTask:
    """Reads a partition's files, each as one record."""

    parts: list[list[Slice]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                for slice_ in self.parts[part]:
                    columns = [pa.array([record_name(slice_)]), pa.array([slice_.read()], pa.binary())]
                    yield pa.RecordBatch.from_arrays(columns, names=["path", "chunk"])
                if not self.parts[part]:
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([""]), pa.array([b""])], names=["path", "chunk"]
                    )
        after_task()
