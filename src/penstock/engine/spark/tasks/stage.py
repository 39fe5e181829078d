"""A stage in one task: the boxes' logics on a train's tuples, the state before and after, what leaves for
where.

What comes back to the driver is small: a record of counts and staged files. Tuples come back only for boxes
elsewhere, or for sinks that live in the driver's process; what goes to files and connection points is written
right here.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.boxes.column_latch import ColumnLatchLogic
from penstock.engine.arrow.boxes.diffused_join import DiffusedJoin
from penstock.engine.arrow.logic import DEAD_SCHEMA, Logic, logic_for
from penstock.engine.contract.cost import BoxCost
from penstock.engine.spark.exits.sinks import StagedFiles
from penstock.engine.spark.layout.plan import FED
from penstock.engine.spark.tasks.state import PartitionState, Resident
from penstock.model.boxes import Drop, Keys, Latch, Node, Trait
from penstock.model.diffused.roles import Report, Roles
from penstock.model.errors import PenstockError
from penstock.model.types import STAMP, StreamType
from penstock.model.user_functions import Function
from penstock.store.crash import crash_point
from penstock.store.ipc import ipc_bytes
from penstock.store.points.point import PointWriter

REPORT = [("kind", "STRING"), ("name", "STRING"), ("body", "BINARY")]


@dataclass(frozen=True)
class Leaving:
    """Where the tuples behind a node go: to files, to points, to the driver, or on."""

    node: str
    files: tuple[StagedFiles, ...] = ()
    points: tuple[PointWriter, ...] = ()
    driver: bool = False
    onward: bool = False


@dataclass
class StageTask:
    """A stage and one train of it, as it is sent to the tasks."""

    name: str
    subnetwork: str
    nodes: list[Node]
    inputs: dict[str, list[StreamType]]
    outputs: dict[str, StreamType]
    entries: list[tuple[str, int]]  # (box, index) of each entry
    entry_fields: list[Any]  # arrow schema of each entry
    leaving: list[Leaving]
    guards: dict[str, Keys]
    state_root: str
    state_base: int
    train: int
    horizons: dict[str, tuple[int, ...]]
    lateness: list[int | None]  # of each entry: how far its newest tuple here may be trusted as a horizon
    drop_rates: dict[str, float]
    final: bool
    stateful: bool
    epoch: str = ""
    partials: frozenset[int] = frozenset()  # entries that bring partial aggregates made natively
    joins: dict[str, Roles] = field(default_factory=dict)  # of diffused joins
    onward: list[tuple[str, Any]] = field(default_factory=list)  # arrows to boxes elsewhere: node, schema

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        _settle()
        yield from self.run(partition, batches)

    def run(self, partition: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Take the partition's share of the train."""
        tables = self._entries(batches)
        state = self._state(partition)
        held = state.at(self.train - 1) if state else None
        boxes = held.boxes if held else self._make()
        work = _Work(self, boxes, tables, partition)
        work.run()
        written = self._keep(state, held)
        yield from self._report(work, partition, written)

    def _state(self, partition: int) -> PartitionState | None:
        if not self.stateful:
            return None
        plain = any(Trait.STATEFUL in n.traits and Trait.OWN_PARTS not in n.traits for n in self.nodes)
        return PartitionState(
            self.state_root, partition, self._make, self.state_base, self.epoch, plain=plain
        )

    def _keep(self, state: PartitionState | None, held: Resident | None) -> int:
        crash_point("stage-before-state")
        written = state.keep(held, self.train) if state and held else 0
        crash_point("stage-after-state")
        return written

    def _make(self) -> dict[str, Logic]:
        return {
            n.name: logic_for(self._watched(n), self.inputs[n.name], self.outputs[n.name]) for n in self.nodes
        }

    def _watched(self, node: Node) -> Node:
        if not isinstance(node, Latch) or node.function is None or node.name not in self.guards:
            return node
        call = GuardedLatch(node, node.function.call, self.guards[node.name])
        return replace(node, function=Function(call, node.function.name))

    def _entries(self, batches: Iterable[Any]) -> list[Any]:
        """The tuples of each entry; several come as one stream of structs, of which one is filled."""
        held: list[list[Any]] = [[] for _ in self.entries]
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
        made = []
        for schema, parts in zip(self.entry_fields, held, strict=True):
            table = pa.Table.from_batches(parts) if parts else schema.empty_table()
            made.append(table.cast(schema))
        return made

    def _outgoing(
        self, work: _Work, partition: int, written: int
    ) -> tuple[dict[str, Any], list[tuple[str, str, bytes]]]:
        """Write what leaves here; what is to be told about it, and the rows for the driver."""
        record: dict[str, Any] = {
            "counts": work.counts,
            "costs": {name: asdict(cost) for name, cost in work.costs.items()},
            "state_bytes": written,
            "moves": [],
            "shown": [],
            "points": {},
            "joins": work.joins,
        }
        rows: list[tuple[str, str, bytes]] = []
        for leaving in self.leaving:
            table = work.tables[leaving.node]
            for files in leaving.files:
                record[files.told_as] += files.write(table, self.train, partition)
            for point in leaving.points:
                staged = point.stage(self.train, [table], partition=partition)
                record["points"].setdefault(point.name, []).extend(asdict(f) for f in staged)
            if leaving.driver and table.num_rows:
                rows.append(("rows", leaving.node, ipc_bytes(table)))
        if work.dead:
            dead = pa.concat_tables(work.dead)
            record["dead"] = dead.num_rows
            rows.append(("dead", "", ipc_bytes(dead)))
        return record, rows

    def _report(self, work: _Work, partition: int, written: int) -> Iterator[Any]:
        record, rows = self._outgoing(work, partition, written)
        rows.append(("record", self.name, json.dumps(record).encode()))
        yield self._batch(rows)
        for i, (node, schema) in enumerate(self.onward):
            for batch in work.tables[node].cast(schema).to_batches():
                yield self._onward(i, node, batch)

    def _batch(self, rows: list[tuple[str, str, bytes]]) -> Any:
        kinds, names, bodies = zip(*rows, strict=True)
        columns = [pa.array(kinds), pa.array(names), pa.array(bodies, pa.binary())]
        columns += [pa.nulls(len(rows), pa.struct(list(schema))) for _, schema in self.onward]
        return pa.RecordBatch.from_arrays(columns, names=self._names())

    def _onward(self, i: int, node: str, batch: Any) -> Any:
        count = batch.num_rows
        columns = [pa.array(["tuple"] * count), pa.array([node] * count), pa.nulls(count, pa.binary())]
        for j, (_, schema) in enumerate(self.onward):
            columns.append(batch.to_struct_array() if i == j else pa.nulls(count, pa.struct(list(schema))))
        return pa.RecordBatch.from_arrays(columns, names=self._names())

    def _names(self) -> list[str]:
        return [name for name, _ in REPORT] + [f"_o{i}" for i in range(len(self.onward))]


@cache
def _settle() -> None:
    """Once in a worker: Spark collects garbage before each task, and need not go through all modules."""
    gc.collect()
    gc.freeze()


class _Work:
    """One train through the boxes of a stage, in order."""

    def __init__(
        self, task: StageTask, boxes: dict[str, Logic], entries: list[Any], partition: int = 0
    ) -> None:
        self.task, self.boxes, self.partition = task, boxes, partition
        self.joins: dict[str, dict[str, Any]] = {}
        self.given = dict(zip(task.entries, entries, strict=True))
        self.tables: dict[str, Any] = {}
        self.dead: list[Any] = []
        self.counts: dict[str, dict[str, int]] = {}
        self.costs: dict[str, BoxCost] = {}
        self._local = self._local_horizons(entries)

    def run(self) -> None:
        for node in self.task.nodes:
            wall, cpu = time.perf_counter(), time.process_time()
            self._box(node)
            # the whole process: Arrow and numba may work in threads of their own
            self.costs[node.name] = BoxCost(time.perf_counter() - wall, time.process_time() - cpu)

    def _box(self, node: Node) -> None:
        task = self.task
        inputs = [self._input(node, index, name) for index, name in enumerate(node.inputs)]
        logic = self.boxes[node.name]
        if isinstance(node, Drop):
            logic.rate = task.drop_rates.get(node.name, node.rate)  # type: ignore[attr-defined]
        if isinstance(logic, DiffusedJoin):
            logic.steer(task.joins[node.name], self.partition)
        try:
            if any(
                task.entries.index((node.name, i)) in task.partials
                for i in range(len(inputs))
                if (node.name, i) in self.given
            ):
                logic.merge(inputs[0].drop_columns([FED]))  # type: ignore[attr-defined]
                answer = logic.close(self._horizons(node), final=task.final)  # type: ignore[attr-defined]
            else:
                answer = logic.process(inputs, self._horizons(node), final=task.final)
        except PenstockError:
            raise
        except Exception as error:
            raise PenstockError(
                f"{node.where}: box '{node.name}': its function failed: {type(error).__name__}: {error}"
            ) from error
        self._guard(node, inputs, answer.out)
        self.tables[node.name] = answer.out
        if answer.dead.num_rows:
            self.dead.append(answer.dead.cast(DEAD_SCHEMA))
        self.counts[node.name] = {
            **(logic.figures() if isinstance(logic, ColumnLatchLogic) else {}),
            "in": sum(_fed(t) for t in inputs),
            "out": answer.out.num_rows,
            "dead": answer.dead.num_rows,
        }
        if isinstance(logic, DiffusedJoin):
            self._told(node.name, logic.report)

    def _told(self, name: str, report: Report) -> None:
        """What a server of a diffused join did; a tuple that came to several counts once as input."""
        self.joins[name] = report.plain()
        self.counts[name] |= {
            "in": sum(report.owned), "received": sum(report.received), "operations": report.operations,
            "dropped": report.dropped + report.replaced, "replaced": report.replaced,
        }  # fmt: skip

    def _input(self, node: Node, index: int, name: str) -> Any:
        given = self.given.get((node.name, index))
        return given if given is not None else self.tables[name]

    def _horizons(self, node: Node) -> tuple[int, ...]:
        """What is known from the ticket, or better: what the newest tuple in this partition proves."""
        known = self.task.horizons[node.name]
        return tuple(max(h, self._local.get((node.name, i), h)) for i, h in enumerate(known))

    def _local_horizons(self, entries: list[Any]) -> dict[tuple[str, int], int]:
        # A tuple proves that its source is as far as its own time: later trains bring nothing older than that
        # less the lateness. So keys here need not wait for the next ticket to learn what they have already
        # seen.
        found = {}
        for place, table, lateness in zip(self.task.entries, entries, self.task.lateness, strict=True):
            newest = pc.max(table.column(STAMP)).as_py() if lateness is not None and table.num_rows else None
            if newest is not None and lateness is not None:
                found[place] = newest - lateness
        return found

    def _guard(self, node: Node, inputs: list[Any], out: Any) -> None:
        # what a latch lets out may have come in with an earlier train, so that is looked at where its
        # function is called; windows give the keys themselves
        if Trait.STATELESS in node.traits:
            for key in self.task.guards.get(node.name, ()):
                keeps_key(node, key, [c for t in inputs for c in t.column(key).chunks], out)


def _fed(table: Any) -> int:
    """How many tuples a box was fed: with partial aggregates more than it was given rows."""
    return int(pc.sum(table.column(FED)).as_py() or 0) if FED in table.schema.names else int(table.num_rows)


def keeps_key(node: Node, key: str, known: list[Any], out: Any) -> None:
    """Refuse an answer with a key that did not come in: its tuples would be in the wrong partition."""
    had = pa.chunked_array(known, type=out.schema.field(key).type)
    if out.num_rows and pc.any(pc.invert(pc.is_in(out.column(key), value_set=pc.unique(had)))).as_py():
        raise PenstockError(
            f"{node.where}: box '{node.name}': its function produced a value of the key '{key}' "
            "that did not come in; "
            "a column with a group key's name must keep the key (give it another name, or group again)"
        )


@dataclass(frozen=True)
class GuardedLatch:
    """A latch's function that is watched: it must keep to the keys of its batch."""

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
                made = (
                    out
                    if isinstance(out, pa.Table)
                    else pa.table(out)
                    if isinstance(out, dict)
                    else pa.Table.from_batches([out])
                )
                column = batch.column(key).cast(made.schema.field(key).type)
                keeps_key(
                    self.node, key, column.chunks if isinstance(column, pa.ChunkedArray) else [column], made
                )
        return answer


def report_ddl(onward: list[tuple[str, Any]], ddl: Callable[[Any], str]) -> str:
    """The Spark schema of what a stage returns."""
    columns = [f"{name} {type_}" for name, type_ in REPORT]
    columns += [f"_o{i} STRUCT<{ddl(schema)}>" for i, (_, schema) in enumerate(onward)]
    return ", ".join(columns)
