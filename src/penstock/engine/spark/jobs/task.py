"""What the tasks of a job do: read, run the boxes of their phase, write what leaves, send on what goes on.

What comes back to the driver is small: a record for each task and stage, dead letters, and tuples for sinks
that live in the driver's process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns.columns import concat, empty
from penstock.engine.arrow.columns.spark_hash import partitions_by_hash, partitions_of_common
from penstock.engine.arrow.logic import Logic
from penstock.engine.arrow.samples import Watched
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.jobs.entry import Entered, EntryValves, Piece, enter
from penstock.engine.spark.jobs.letters import as_spark_words
from penstock.engine.spark.jobs.plan import JobPlan, Phase, PickledPlan, Route
from penstock.engine.spark.tasks.key_targets import targets
from penstock.engine.spark.tasks.stage import StageTask, settle
from penstock.engine.spark.tasks.stage_run import StageRun
from penstock.engine.spark.tasks.worker_process import after_task
from penstock.model.diffused.roles import Roles
from penstock.store.ipc import from_ipc, ipc_bytes

PACKED = "packed"
Note = tuple[str, str, bytes]
"""For the driver: kind, name, body."""
Labelled = tuple[int, tuple[str, str, bytes]]
"""A record and the partition it goes to, as Spark's shuffle carries it."""


class Sent(NamedTuple):
    """Tuples on their way to an entry of a stage."""

    partition: int
    stage: str
    entry: int
    tuples: pa.Table


@dataclass(frozen=True)
class TrainPart:
    """What changes from train to train. `pieces`: what each task reads, by input and task.

    `state_root`: the folder of all stages' state. It is another one after state in memory was lost.
    """

    train: int
    pieces: Mapping[str, Sequence[Sequence[Piece]]]
    source_horizons: dict[str, int]
    horizons: dict[str, tuple[int, ...]]
    state: dict[str, dict[str, str]]
    state_root: str
    drop_rates: dict[str, float]
    joins: dict[str, Roles]
    monitors: Mapping[str, Watched]
    final: bool
    entry_valves: Mapping[str, EntryValves] = field(default_factory=dict)  # by input
    valves: dict[tuple[str, int], tuple[Valve, ...]] = field(default_factory=dict)  # by arrow: box, index
    choosing: dict[str, tuple[Valve, ...]] = field(default_factory=dict)  # by box with windows
    sampled: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by node: columns of a sample

    def of(self, task: StageTask, inputs: Collection[str] = ()) -> StageTask:
        """The stage in this train; `inputs` are watched there, too."""
        nodes = {*inputs, *(node.name for node in task.nodes)}
        return replace(
            task,
            train=self.train,
            state_tokens=self.state.get(task.name, {}),
            state_root=str(Path(self.state_root) / task.name),
            horizons=self.horizons,
            drop_rates=self.drop_rates,
            joins=self.joins,
            monitors={name: each for name, each in self.monitors.items() if each[0].node in nodes},
            final=self.final,
            valves=self.valves,
            choosing=self.choosing,
            sampled={name: each for name, each in self.sampled.items() if name in nodes},
        )

    def share(self, partition: int) -> dict[str, Sequence[Piece]]:
        """What the task of a partition reads."""
        return {name: lists[partition] for name, lists in self.pieces.items() if partition < len(lists)}


@dataclass
class PhaseRun:
    """One phase in one partition."""

    plan: JobPlan
    part: TrainPart
    number: int
    partition: int
    tables: dict[str, pa.Table] = field(default_factory=dict)  # after each node that ran here
    notes: list[Note] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # not told yet, see `TrainDone.phases`

    @property
    def phase(self) -> Phase:
        return self.plan.phases[self.number]

    def run(self, inbox: Iterable[Sent], *, reads: bool) -> list[Sent]:
        """Run all boxes of the phase; returns what goes on to later phases. `reads`: it reads slices."""
        entered = Entered()
        if reads:
            part = self.part
            with self._timed("read"):
                entered = enter(
                    self.plan, part.share(self.partition), part.source_horizons, part.entry_valves
                )
            self.tables.update(entered.tables)
        received = list(inbox)
        for template in self.phase.stages:
            if self.partition < self._width(template):
                self._run_stage(self.part.of(template), received)
        if self.phase.stateless is not None and (self.tables or reads):
            self._run_stateless(self.part.of(self.phase.stateless, entered.tables), entered)
        return [sent for route in self.phase.routes for sent in self._sent(route)]

    def _width(self, task: StageTask) -> int:
        """State without keys is in one partition."""
        keyless = task.stateful and not self.plan.rooted and not task.keyed
        return 1 if keyless else self.plan.partitions

    def _run_stage(self, task: StageTask, received: list[Sent]) -> None:
        entries = [
            concat([s.tuples for s in received if (s.stage, s.entry) == (task.name, i)], schema)
            for i, schema in enumerate(task.entry_fields)
        ]
        with self._timed("state"):
            state = task.partition_state(self.partition)
            held = task.held(state)
        stage_run = StageRun(task, held.boxes if held else self._logics(task), entries, self.partition)
        stage_run.tables.update(self.tables)
        stage_run.run()
        # Write answers before state: readers get them sooner, and a replay produces the same answers.
        with self._timed("write"):
            record, notes = task.outgoing(stage_run, self.partition)
        with self._timed("state"):
            record |= task.kept_record(self.partition, task.keep(state, held))
        self._note(task.name, record, notes)
        self.tables.update({node.name: stage_run.tables[node.name] for node in task.nodes})

    def _run_stateless(self, task: StageTask, entered: Entered) -> None:
        schemas = self.plan.schemas
        stage_run = StageRun(task, self._logics(task), [], self.partition)
        needed = {up for node in task.nodes for up in node.inputs} | {
            leaving.node for leaving in task.leaving
        }
        needed |= set(entered.tables)
        stage_run.tables = {
            name: self.tables.get(name, empty(schemas[name])) for name in needed if name in schemas
        }
        stage_run.run()
        stage_run.counts.update(entered.counts)
        stage_run.valves.update(entered.valves)
        stage_run.dead = [*entered.dead, *(_in_spark_words(task, letters) for letters in stage_run.dead)]
        # Files of other phases have the numbers before.
        with self._timed("write"):
            record, notes = task.outgoing(stage_run, self.number * self.plan.partitions + self.partition)
        record |= {"state": {}, "state_bytes": 0, "newest": entered.newest}
        self._note(task.name, record, notes)
        self.tables.update({node.name: stage_run.tables[node.name] for node in task.nodes})

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began

    def _note(self, name: str, record: dict[str, Any], notes: Iterable[Note]) -> None:
        record["phases"], self.seconds = self.seconds, {}
        self.notes += [*notes, ("record", name, json.dumps(record).encode())]

    def _logics(self, task: StageTask) -> dict[str, Logic]:
        """Logics of boxes without state: this worker makes them once."""
        name = f"{self.number} {task.name}"
        if name not in self.plan.logics:
            self.plan.logics[name] = task.make()
        return self.plan.logics[name]

    def _sent(self, route: Route) -> Iterator[Sent]:
        """The tuples after a node, divided among the partitions of the stage they go to."""
        table = self.tables.get(route.tail)
        if table is None or not table.num_rows:
            return
        target = _targets(table, route, self.plan.partitions)
        if target is None:
            here = self.partition if route.by == "none" else 0
            yield Sent(here, route.stage, route.entry, table)
            return
        for partition in np.unique(target).tolist():
            mine = table.filter(pa.array(target == partition))
            yield Sent(int(partition), route.stage, route.entry, mine)


def _in_spark_words(task: StageTask, letters: pa.Table) -> pa.Table:
    """The letters of one native box."""
    return as_spark_words(letters, task.inputs[letters.column("box")[0].as_py()][0].schema)


def _targets(table: pa.Table, route: Route, partitions: int) -> np.ndarray | None:
    """The partition of each tuple; None: one for all."""
    match route.by:
        case "keys":
            return partitions_by_hash(table, route.keys, partitions)
        case "common keys":
            return partitions_of_common(table, route.keys, partitions)
        case "packed keys" | "packed doubles":
            return targets(table, route.keys, partitions, doubles=route.by == "packed doubles")
    return None


@dataclass(frozen=True)
class PhaseTask:
    """A phase of a train, as Spark sends it to the tasks of all partitions."""

    plan: PickledPlan
    part: TrainPart
    number: int

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Labelled]:
        settle()
        run = PhaseRun(self.plan.load(), self.part, self.number, partition)
        mine = {task.name for task in run.phase.stages}
        inbox: list[Sent] = []
        for record in records if self.number else ():
            kind, name, body = record[1]
            stage, _, entry = name.rpartition("#")
            if kind == PACKED and stage in mine:
                inbox.append(Sent(partition, stage, int(entry), from_ipc(body)))
            else:
                yield record
        for sent in run.run(inbox, reads=self.number == 0):
            yield sent.partition, (PACKED, f"{sent.stage}#{sent.entry}", ipc_bytes(sent.tuples))
        for note in run.notes:
            yield partition, note
        after_task()


@dataclass(frozen=True)
class WholeTrainTask:
    """A short train as one task: all phases and all partitions of state, one after the other."""

    plan: PickledPlan
    part: TrainPart

    def __call__(self, _index: int, _records: Iterable[Any]) -> Iterator[Labelled]:
        settle()
        for note in whole_train(self.plan.load(), self.part):
            yield 0, note
        after_task()


def whole_train(plan: JobPlan, part: TrainPart) -> Iterator[Note]:
    """Run a train here and now; what is for the driver."""
    on_the_way: list[Sent] = []
    for number, phase in enumerate(plan.phases):
        names = {task.name for task in phase.stages}
        arriving = [sent for sent in on_the_way if sent.stage in names]
        on_the_way = [sent for sent in on_the_way if sent.stage not in names]
        for partition in range(plan.partitions):
            run = PhaseRun(plan, part, number, partition)
            inbox = [sent for sent in arriving if sent.partition == partition]
            reads = number == 0 and (plan.rooted or partition == 0)
            on_the_way += run.run(inbox, reads=reads)
            yield from run.notes
