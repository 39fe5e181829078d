"""A stage in one task: runs the boxes' logics on a train's tuples, updates state, and sends results on.

Little returns to the driver: a record of counts and staged files. Tuples return only for boxes elsewhere, or
for sinks that live in the driver's process. Tuples for files and connection points are written right here.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import TaskSink
from penstock.engine.arrow.logic import Logic, logic_for
from penstock.engine.arrow.samples import Watched, sample
from penstock.engine.arrow.value_samples import sampled
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.tasks.stage_run import StageRun, keeps_key
from penstock.engine.spark.tasks.state import NO_STATE, Kept, PartitionState, Resident
from penstock.model.boxes import Keys, Latch, Node, Trait
from penstock.model.diffused.roles import Roles
from penstock.model.types import StreamType
from penstock.model.user_functions import Function
from penstock.store.crash import crash_point
from penstock.store.ipc import ipc_bytes
from penstock.store.points.point import PointWriter

REPORT = [("kind", "STRING"), ("name", "STRING"), ("body", "BINARY")]


@dataclass(frozen=True)
class Leaving:
    """Where the tuples after a node go: to sinks, to points, to the driver, or on."""

    node: str
    sinks: tuple[TaskSink, ...] = ()
    points: tuple[PointWriter, ...] = ()
    driver: bool = False
    onward: bool = False


@dataclass
class StageTask:
    """A stage and one of its trains, as sent to the tasks."""

    name: str
    subnetwork: str
    nodes: list[Node]
    inputs: dict[str, list[StreamType]]
    outputs: dict[str, StreamType]
    entries: list[tuple[str, int]]  # (box, index) of each entry
    entry_fields: list[pa.Schema]
    leaving: list[Leaving]
    guards: dict[str, Keys]
    state_root: str
    state_tokens: dict[str, str]  # of the state after the train before, by partition
    train: int
    horizons: dict[str, tuple[int, ...]]
    lateness: list[int | None]  # of each entry: how far its newest tuple here can serve as a horizon
    drop_rates: dict[str, float]
    final: bool
    stateful: bool
    keyed: bool = True  # False: all its state is in one partition
    epoch: str = ""
    sync: bool = False  # what is written survives a power cut
    partials: frozenset[int] = frozenset()  # entries that bring partial aggregates made natively
    joins: dict[str, Roles] = field(default_factory=dict)  # of diffused joins
    onward: list[tuple[str, pa.Schema]] = field(default_factory=list)  # to boxes elsewhere: node, schema
    monitors: Mapping[str, Watched] = field(default_factory=dict)  # of its nodes
    # On arrows (box, index) that the stage itself must thin out; others were thinned before.
    valves: dict[tuple[str, int], tuple[Valve, ...]] = field(default_factory=dict)
    choosing: dict[str, tuple[Valve, ...]] = field(default_factory=dict)  # see `engine/arrow/valves.py`
    # By node: the columns of a sample of its tuples, see `engine/arrow/value_samples.py`.
    sampled: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        settle()
        yield from self.run(partition, batches)

    def run(self, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the partition's share of the train."""
        tables = self._entries(batches)
        state = self.partition_state(partition)
        held = self.held(state)
        boxes = held.boxes if held else self.make()
        stage_run = StageRun(self, boxes, tables, partition)
        stage_run.run()
        kept = self.keep(state, held)
        yield from self._report(stage_run, partition, kept)

    def partition_state(self, partition: int) -> PartitionState | None:
        """The state of its boxes here; None if none has any, as in the first stage of many packed feeds."""
        with_state = [n for n in self.nodes if Trait.STATEFUL in n.traits]
        if not with_state:
            return None
        plain = any(Trait.OWN_PARTS not in n.traits for n in with_state)
        return PartitionState(self.state_root, partition, self.make, self.epoch, plain=plain, sync=self.sync)

    def held(self, state: PartitionState | None) -> Resident | None:
        """The state after the train before."""
        if state is None:
            return None
        return state.at(self.train - 1, self.state_tokens.get(str(state.partition), NO_STATE))

    def keep(self, state: PartitionState | None, held: Resident | None) -> Kept:
        crash_point("stage-before-state")
        kept = state.keep(held, self.train) if state and held else Kept(NO_STATE, 0)
        crash_point("stage-after-state")
        return kept

    def kept_record(self, partition: int, kept: Kept) -> dict[str, Any]:
        tokens = {self.name: {str(partition): kept.token}} if kept.token else {}
        return {"state": tokens, "state_bytes": kept.bytes}

    def make(self) -> dict[str, Logic]:
        return {
            n.name: logic_for(self._watched(n), self.inputs[n.name], self.outputs[n.name]) for n in self.nodes
        }

    def _watched(self, node: Node) -> Node:
        if not isinstance(node, Latch) or node.function is None or node.name not in self.guards:
            return node
        call = GuardedLatch(node, node.function.call, self.guards[node.name])
        return replace(node, function=Function(call, node.function.name))

    def _entries(self, batches: Iterable[pa.RecordBatch]) -> list[pa.Table]:
        """The tuples of each entry; several come as one stream of structs, of which one is filled."""
        held: list[list[pa.RecordBatch]] = [[] for _ in self.entries]
        for batch in batches:
            if len(self.entries) == 1:
                held[0].append(batch.select(self.entry_fields[0].names))
                continue
            tags = batch.column("_tag")
            for i in range(len(self.entries)):
                mine = pc.equal(tags, i)
                part = batch.column(f"_s{i}").filter(mine)
                if len(part):
                    held[i].append(pa.RecordBatch.from_struct_array(part))
        entries = []
        for schema, parts in zip(self.entry_fields, held, strict=True):
            table = pa.Table.from_batches(parts) if parts else schema.empty_table()
            entries.append(table.cast(schema))
        return entries

    def outgoing(
        self, stage_run: StageRun, partition: int
    ) -> tuple[dict[str, Any], list[tuple[str, str, bytes]]]:
        """Write what leaves here; returns the report about it and the rows for the driver."""
        record: dict[str, Any] = {
            "counts": stage_run.counts,
            "costs": {name: asdict(cost) for name, cost in stage_run.costs.items()},
            "moves": [],
            "shown": [],
            "points": {},
            "joins": stage_run.joins,
            "valves": {at: asdict(flow) for at, flow in stage_run.valves.items()},
            "values": {name: sampled(stage_run.tables[name], each) for name, each in self.sampled.items()},
        }
        rows: list[tuple[str, str, bytes]] = []
        for leaving in self.leaving:
            table = stage_run.tables[leaving.node]
            for sink in leaving.sinks:
                output = sink.write(table, self.train, partition)
                record["moves"] += output.moves
                record["shown"] += output.shown
            for point in leaving.points:
                staged = point.stage(self.train, [table], partition=partition)
                record["points"].setdefault(point.name, []).extend(asdict(f) for f in staged)
            if leaving.driver and table.num_rows:
                rows.append(("rows", leaving.node, ipc_bytes(table)))
        rows += self._samples(stage_run)
        if stage_run.dead:
            dead = pa.concat_tables(stage_run.dead)
            record["dead"] = dead.num_rows
            rows.append(("dead", "", ipc_bytes(dead)))
        return record, rows

    def _samples(self, stage_run: StageRun) -> Iterator[tuple[str, str, bytes]]:
        """What monitors see here."""
        for name, (monitor, type_) in self.monitors.items():
            table = sample(stage_run.tables[monitor.node], monitor, type_)
            if table.num_rows:
                yield "sample", name, ipc_bytes(table)

    def _report(self, stage_run: StageRun, partition: int, kept: Kept) -> Iterator[pa.RecordBatch]:
        record, rows = self.outgoing(stage_run, partition)
        record |= self.kept_record(partition, kept)
        rows.append(("record", self.name, json.dumps(record).encode()))
        yield self._batch(rows)
        for i, (node, schema) in enumerate(self.onward):
            for batch in stage_run.tables[node].cast(schema).to_batches():
                yield self._onward(i, node, batch)

    def _batch(self, rows: list[tuple[str, str, bytes]]) -> pa.RecordBatch:
        kinds, names, bodies = zip(*rows, strict=True)
        columns = [pa.array(kinds), pa.array(names), pa.array(bodies, pa.binary())]
        columns += [pa.nulls(len(rows), pa.struct(list(schema))) for _, schema in self.onward]
        return pa.RecordBatch.from_arrays(columns, names=self._names())

    def _onward(self, i: int, node: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        count = batch.num_rows
        columns = [pa.array(["tuple"] * count), pa.array([node] * count), pa.nulls(count, pa.binary())]
        for j, (_, schema) in enumerate(self.onward):
            columns.append(batch.to_struct_array() if i == j else pa.nulls(count, pa.struct(list(schema))))
        return pa.RecordBatch.from_arrays(columns, names=self._names())

    def _names(self) -> list[str]:
        return [name for name, _ in REPORT] + [f"_o{i}" for i in range(len(self.onward))]


@cache
def settle() -> None:
    """Run once in a worker: Spark collects garbage before each task, which need not scan all modules."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class GuardedLatch:
    """Wraps a latch's function to check that it keeps to the keys of its batch."""

    node: Node
    call: Callable[..., Any]
    keys: Keys

    def __call__(self, batch: Any, state: Any) -> Any:
        answer = self.call(batch, state)
        out = answer[0] if isinstance(answer, tuple) and answer else None
        for key in self.keys:
            if isinstance(out, pa.Table | pa.RecordBatch | dict) and key in (
                out if isinstance(out, dict) else out.schema.names
            ):
                answered = (
                    out
                    if isinstance(out, pa.Table)
                    else pa.table(out)
                    if isinstance(out, dict)
                    else pa.Table.from_batches([out])
                )
                column = batch.column(key).cast(answered.schema.field(key).type)
                keeps_key(
                    self.node,
                    key,
                    column.chunks if isinstance(column, pa.ChunkedArray) else [column],
                    answered,
                )
        return answer


def report_ddl(onward: list[tuple[str, Any]], ddl: Callable[[Any], str]) -> str:
    """The Spark schema of what a stage returns."""
    columns = [f"{name} {type_}" for name, type_ in REPORT]
    columns += [f"_o{i} STRUCT<{ddl(schema)}>" for i, (_, schema) in enumerate(onward)]
    return ", ".join(columns)
