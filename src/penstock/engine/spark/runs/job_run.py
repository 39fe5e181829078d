"""A train as one Spark job of plain tasks (RDDs): nothing is analysed, planned or compiled for it.

Tasks read the train's slices themselves. Before each further stage lies one shuffle of packed records. A
short train is a single task and needs none.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.contract import Slice
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.entry.points import PointEntries, pushed_ranges
from penstock.engine.spark.entry.slice_placement import by_group, spread
from penstock.engine.spark.jobs.entry import EntryValves, Piece
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.jobs.plan import PickledPlan
from penstock.engine.spark.jobs.planning import job_plan
from penstock.engine.spark.jobs.task import Note, PhaseTask, TrainPart, WholeTrainTask
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.runs.own_workers import PinnedJob
from penstock.engine.spark.runs.packed_run import PackedTrainRun
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.store.points.point import PointReader, ReadPlan

if TYPE_CHECKING:
    from penstock.engine.spark.trains.train import Trains


def train_run(trains: Trains, ticket: Ticket, outcome: Outcome) -> TrainRun:
    """A run of the ticket in the form that its length asks for."""
    form = trains.settings.form(ticket, trains.layout)
    if form is Form.FRAMES:
        return (PackedTrainRun if trains.layout.rooted else TrainRun)(trains, ticket, outcome)
    return JobRun(trains, ticket, outcome, form)


class JobRun(TrainRun):
    """One run of one ticket as a job of tasks."""

    def __init__(self, trains: Trains, ticket: Ticket, outcome: Outcome, form: Form) -> None:
        super().__init__(trains, ticket, outcome)
        self.form = form
        self._newest: dict[str, int] = {}
        self._shuffled: list[Any] = []
        self._pinned: list[PinnedJob] = []

    def run(self) -> None:
        """Run from the ticket's slices to the outputs."""
        self.trains.doing = (*self.layout.native, *(n for stage in self.layout.stages for n in stage.nodes))
        for note in self._notes(self._plan(), self._part()):
            self._take(note)

    def release(self) -> None:
        for rdd in self._shuffled:
            # Otherwise its files stay until the JVM happens to collect it.
            rdd._jrdd.rdd().cleanShuffleDependencies(False)
        for job in self._pinned:
            job.release()

    def newest(self) -> dict[str, int]:
        """The largest `_ts` of each source in this train."""
        return self._newest

    # -- what the tasks get

    def _plan(self) -> PickledPlan:
        known = self.trains.job_plans
        if self.trains.rebuilding not in known:
            known[self.trains.rebuilding] = PickledPlan.of(job_plan(self))
        return known[self.trains.rebuilding]

    def _part(self) -> TrainPart:
        ticket = self.ticket
        boxes = [node.name for node in self.net.nodes.values() if node.is_box]
        return TrainPart(
            ticket.train,
            pieces={n: self._shares(n) for n in self.trains.sub.inputs if ticket.slices.get(n)},
            source_horizons=ticket.horizons,
            horizons={name: self.input_horizons(name) for name in boxes},
            state=self.trains.state,
            state_root=str(self.trains.versions.root),
            drop_rates=ticket.drop_rates,
            joins=ticket.joins,
            monitors=self.monitors([*self.trains.sub.inputs, *boxes]),
            final=ticket.final,
            entry_valves=self._entry_valves(),
            valves=self.valves.on_arrows(boxes),
            choosing=self.valves.choosing(),
            sampled=self.sampled_columns([*self.trains.sub.inputs, *boxes]),
        )

    def _entry_valves(self) -> dict[str, EntryValves]:
        """The valves at inputs that the conductor has left to the tasks."""
        valves = {name: self.valves.at_input(name) for name in self.trains.sub.inputs}
        types = self.net.types
        return {name: EntryValves(each, types[name].schema) for name, each in valves.items() if each}

    def _shares(self, name: str) -> list[list[Piece]]:
        """What each task reads of an input."""
        slices = [s for s in self.ticket.slices[name] if isinstance(s, Slice)]
        if self.layout.rooted:
            return [list(share) for share in by_group(slices, self.trains.partitions)]
        tasks = 1 if self.form is Form.ONE_TASK else self.trains.partitions
        if slices:
            return [list(share) for share in spread(slices, tasks)]
        plans = self._point_plans(name)
        return [[replace(p, files=p.files[task::tasks]) for p in plans] for task in range(tasks)]

    def _point_plans(self, name: str) -> list[ReadPlan]:
        """The files of a connection point, without those that cannot hold what the readers ask for."""
        reader = PointReader(self.trains.checkpoint, name)
        ranges = pushed_ranges(self.net, name, reader.key)
        entries = [s for s in self.ticket.slices[name] if isinstance(s, PointEntries)]
        plans = [reader.plan(slice_.first, slice_.last, ranges) for slice_ in entries]
        self.outcome.count(
            name,
            skipped_files=sum(plan.skipped_files for plan in plans),
            read_files=sum(len(plan.files) for plan in plans),
        )
        return plans

    # -- Spark

    def _notes(self, plan: PickledPlan, part: TrainPart) -> list[Note]:
        """Run the job; what its tasks tell the driver."""
        if self.form is Form.ONE_TASK:
            rdd = self.trains.numbered(1).mapPartitionsWithIndex(WholeTrainTask(plan, part))
            return [note for _, note in rdd.collect()]
        width = self.trains.partitions
        first, *others = [PhaseTask(plan, part, number) for number in range(len(plan.load().phases))]
        if places := self.trains.places.take():
            job = PinnedJob(self.trains.spark.sparkContext, places)
            self._pinned = [job]
            return [note for _, note in job.run([first, *others])]
        rdd = self.trains.numbered(width).mapPartitionsWithIndex(first)
        for task in others:
            rdd = rdd.partitionBy(width, _label).mapPartitionsWithIndex(task)
            self._shuffled = [rdd]
        return [note for _, note in rdd.collect()]

    def _take(self, note: Note) -> None:
        self.take(*note)
        if note[0] == "record":
            for name, newest in json.loads(note[2]).get("newest", {}).items():
                self._newest[name] = max(newest, self._newest.get(name, newest))


def _label(partition: int) -> int:
    return partition
