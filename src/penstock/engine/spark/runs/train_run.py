"""One run of one ticket: tuples into the JVM, native boxes, stages, outputs, counts, dead letters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.connectors.contract import Slice
from penstock.connectors.files.parquet import WholeParquet
from penstock.engine.arrow.boxes.diffused_join import OWNER
from penstock.engine.arrow.samples import SampleTask, Watched
from penstock.engine.contract.ticket import UNKNOWN, Ticket
from penstock.engine.spark.entry.admission import admit_files, admit_packed, ddl
from penstock.engine.spark.entry.early import NOTHING_EARLY
from penstock.engine.spark.entry.points import PointEntries, point_frame
from penstock.engine.spark.entry.train_valves import TrainValves
from penstock.engine.spark.exits.frame_samples import watch_values, watched_values
from penstock.engine.spark.exits.frame_writer import FrameWriter
from penstock.engine.spark.layout.diffusion_proxy import SERVER, routed
from penstock.engine.spark.layout.plan import Layout, Stage, StageInput, behind, guarded
from penstock.engine.spark.layout.preaggregate import may_preaggregate, preaggregated
from penstock.engine.spark.layout.tagging import common, tagged
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.runs.native import NativeBox, apply_box
from penstock.engine.spark.tasks.stage import Leaving, StageTask, report_ddl
from penstock.engine.spark.watch import VALVE, Watch, tuples_by_box
from penstock.model.boxes import Drop, Node, Source, Trait
from penstock.model.types import SEQ, STAMP, arrow_schema
from penstock.rewrite.value_ways import sampled_columns
from penstock.store.ipc import from_ipc

if TYPE_CHECKING:
    from penstock.engine.spark.trains.train import Trains

_SAMPLE = 16  # one train in this many counts what native boxes let through


class TrainRun:
    """One run of one ticket."""

    def __init__(self, trains: Trains, ticket: Ticket, outcome: Outcome) -> None:
        self.trains, self.net, self.ticket, self.outcome = trains, trains.net, ticket, outcome
        self.layout: Layout = trains.layout
        self.watch = Watch()
        self.frames: dict[str, DataFrame] = {}
        self.cached: list[DataFrame] = []
        self.valves = TrainValves(trains.net, ticket, self.watch)
        self.reached = trains.horizon_plan.reached(ticket.horizons, ticket.idle, ticket.lifted)
        # Counting after every native box breaks the generated code into pieces, and selectivities need only a
        # sample.
        self.sampled = not ticket.empty and trains.loaded % _SAMPLE == 0
        # Valves, monitors and samples want the tuples on each arrow.
        watched = ticket.valves or ticket.monitors or self._sampled_frames()
        # A box that may refuse a tuple wants all of its columns.
        lean = not (watched or ticket.late_at)
        self.early = {n: e for n, e in trains.early.items() if self._tasks_decode(n)} if lean else {}
        self._done_early = {box.name: name for name, early in self.early.items() for box in early.filters}
        trains.loaded += not ticket.empty

    def _tasks_decode(self, source: str) -> bool:
        """Whether tasks read a source in this train. Whole Parquet files are read by Spark itself."""
        return not any(isinstance(piece, WholeParquet) for piece in self.ticket.slices.get(source, ()))

    def run(self) -> None:
        """Run from the ticket's slices to the outputs."""
        if self.ticket.empty and self._plain():
            # Nothing to read: the stages only act on new horizons.
            for stage in self.layout.stages:
                self._stage(stage)
            return
        for name in filter(self._runs, self.trains.sub.inputs):
            self._keep(name, self._input(self.net.nodes[name]))
        self._boxes()
        writer = FrameWriter(self.trains, self.ticket, self.outcome)
        for name in filter(self._runs, (*self.trains.sub.inputs, *self.layout.native)):
            writer.write(name, self.frames[name])
        for piece in self._whole_files():
            piece.check()  # Spark has read them by now
        self._count()
        self._take_values()
        self._watch_frames()

    def _runs(self, name: str) -> bool:
        """Whether a native box or an input is needed: to rebuild state, only what leads into a stage."""
        return not self.trains.rebuilding or name in self.trains.into_stages

    def _whole_files(self) -> list[WholeParquet]:
        slices = [piece for pieces in self.ticket.slices.values() for piece in pieces]
        return [piece for piece in slices if isinstance(piece, WholeParquet)]

    def _boxes(self) -> None:
        """Run native boxes and stages, each when its inputs are ready: a stage may feed a native box."""
        waiting: list[str | Stage] = [*filter(self._runs, self.layout.native), *self.layout.stages]
        while waiting:
            ready = next(part for part in waiting if self._ready(part))
            waiting.remove(ready)
            if isinstance(ready, Stage):
                self._stage(ready)
            else:
                self._native(self.net.nodes[ready])

    def _ready(self, part: str | Stage) -> bool:
        if isinstance(part, Stage):
            return all(entry.tail in self.frames for entry in part.entries)
        return all(behind(self.net, name) in self.frames for name in self.net.nodes[part].inputs)

    def _plain(self) -> bool:
        """Whether no stage feeds another stage or a native box."""
        return not any(self._onward(stage) for stage in self.layout.stages)

    def release(self) -> None:
        for frame in self.cached:
            frame.unpersist()

    # -- tuples into the JVM

    def _input(self, node: Node) -> DataFrame:
        if Trait.KEPT in node.traits:
            if not self.ticket.slices.get(node.name):
                return self._nothing(node.name)
            frame, skipped = point_frame(
                self.trains.spark,
                self.trains.checkpoint,
                self.net,
                node.name,
                [s for s in self.ticket.slices[node.name] if isinstance(s, PointEntries)],
            )
            self.outcome.count(node.name, skipped_files=skipped[0], read_files=skipped[1])
            counted = self.watch.on(frame, node.name, rows="count(1)")
            return self.valves.let_through(counted, node.name)
        assert isinstance(node, Source)
        return self._source(node)

    def _source(self, node: Source) -> DataFrame:
        slices = [s for s in self.ticket.slices.get(node.name, ()) if isinstance(s, Slice)]
        horizon = self.ticket.horizons.get(node.name, UNKNOWN)
        if node.format.in_order:
            # Deliveries come in order, and the ticket's horizon already holds after this train.
            horizon = UNKNOWN
        spark, guards = self.trains.spark, self.trains.guards[node.name]
        if not slices:
            return self._nothing(node.name)
        files = [s for s in slices if isinstance(s, WholeParquet)]
        assert len(files) in (0, len(slices)), (
            "an input gives whole files or packed slices, not both in one train"
        )
        valves, watch = self.valves.at_input(node.name), self.watch
        if files:
            self.outcome.count(node.name, offered=sum(s.rows for s in files))
            return admit_files(spark, node, files, horizon, guards, watch, valves=valves)
        parallelism = self.trains.partitions
        early = self.early.get(node.name, NOTHING_EARLY)
        return admit_packed(
            spark, node, slices, horizon, guards, watch, parallelism=parallelism, valves=valves, early=early
        )

    def _arrow(self, head: str, index: int) -> DataFrame:
        """The tuples on an arrow, without what its valves shed."""
        frame = self.frames[behind(self.net, self.net.nodes[head].inputs[index])]
        return self.valves.let_through(frame, self.valves.arrow(head, index))

    def _nothing(self, name: str) -> DataFrame:
        return self.trains.spark.createDataFrame([], ddl(self.net.types[name].schema))

    def _native(self, node: Node) -> None:
        if node.name in self._done_early:
            self._keep(node.name, self.frames[behind(self.net, node.inputs[0])])
            return
        frames = [self._arrow(node.name, index) for index in range(len(node.inputs))]
        watch = None if node.name in self.trains.guarded else self.watch
        types = self.net.input_types(node.name), self.net.types[node.name]
        frame = apply_box(NativeBox(node, frames, *types, self.ticket.drop_rates, watch))
        if self.sampled and self._must_be_counted(node):
            frame = self.watch.on(frame, f"{node.name}#out", rows="count(1)")
        self._keep(node.name, frame)

    def _must_be_counted(self, node: Node) -> bool:
        """Whether the box selects tuples and no write after it counts them."""
        return Trait.SELECTS in node.traits and not self.trains.terminals(node.name)

    def _keep(self, name: str, frame: DataFrame) -> None:
        """Compute tuples only once if several jobs need them."""
        for node, columns in self._sampled_frames([name]).items():
            frame = watch_values(self.watch, frame, node, columns, self.ticket.rows)
        if self._consumers(name) > 1:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            self.cached.append(frame)
        self.frames[name] = frame

    def _consumers(self, name: str) -> int:
        boxes = sum(
            1
            for node in self.net.nodes.values()
            for up in node.inputs
            if behind(self.net, up) == name and node.is_box
        )
        return boxes + len(self.trains.terminals(name)) + len(self.monitors([name]))

    # -- monitors

    def monitors(self, nodes: Collection[str]) -> dict[str, Watched]:
        """Those at some nodes; none while state is rebuilt, because nobody waits for these trains."""
        given = {} if self.trains.rebuilding else self.ticket.monitors
        return {
            name: (monitor, self.net.types[monitor.node])
            for name, monitor in given.items()
            if monitor.node in nodes
        }

    def sampled_columns(self, nodes: Collection[str]) -> dict[str, tuple[str, ...]]:
        """By node, of which a sample is wanted: its columns."""
        wanted = {} if self.trains.rebuilding else sampled_columns(self.trains.sub)
        return {name: columns for name, columns in wanted.items() if name in nodes}

    def _sampled_frames(self, nodes: Collection[str] | None = None) -> dict[str, tuple[str, ...]]:
        """Those outside of stages, in some trains: often enough while nothing is shed."""
        outside = [name for name in nodes or self.net.nodes if name not in self.layout.home]
        return self.sampled_columns(outside) if self.sampled or self.ticket.valves else {}

    def _take_values(self) -> None:
        for name, columns in self._sampled_frames(list(self.frames)).items():
            values = watched_values(self.watch, name, columns)
            if values is not None:
                self.outcome.values.setdefault(name, []).append(values)

    def _watch_frames(self) -> None:
        """Show what monitors see outside of stages. The frames are persisted: they are counted only once."""
        outside = set(self.frames) - set(self.layout.home)
        for name, watched in self.monitors(outside).items():
            node, type_ = watched[0].node, watched[1]
            columns = [f"`{column.name}`" for column in type_.schema]
            frame = self.frames[node].selectExpr(*columns, STAMP, SEQ)
            task = SampleTask(watched, arrow_schema(type_.schema))
            rows = frame.mapInArrow(task, ddl(type_.schema)).toArrow()
            last = rows.slice(max(0, rows.num_rows - watched[0].most))
            self.outcome.samples.setdefault(name, []).append(last)

    # -- stages

    def _stage(self, stage: Stage) -> None:
        self.trains.doing = tuple(stage.nodes)
        onward = self._onward(stage)
        task = self.stage_task(stage, onward)
        frame = self._partitioned(stage, task)
        report = frame.mapInArrow(task, report_ddl(onward, lambda schema: schema))
        if onward:
            report = report.persist(StorageLevel.MEMORY_AND_DISK)
            self.cached.append(report)
        for row in (
            report.where("kind <> 'tuple'").select("kind", "name", "body").collect()
            if onward
            else report.collect()
        ):
            self.take(row["kind"], row["name"], bytes(row["body"]))
        for i, (name, _) in enumerate(onward):
            self.frames[name] = report.where((F.col("kind") == "tuple") & (F.col("name") == name)).select(
                f"_o{i}.*"
            )

    def take(self, kind: str, name: str, body: bytes) -> None:
        """Take what a task tells the driver."""
        match kind:
            case "record":
                self.outcome.take(json.loads(body))
            case "rows":
                self.outcome.rows.setdefault(name, []).append(from_ipc(body))
            case "sample":
                self.outcome.samples.setdefault(name, []).append(from_ipc(body))
            case "dead":
                self.outcome.dead.append(from_ipc(body))

    def _onward(self, stage: Stage) -> list[tuple[str, Any]]:
        """Boxes of the stage that feed boxes elsewhere, with the DDL of what they send."""
        sent = {}
        for other in self.layout.stages:
            for entry in other.entries:
                if other is not stage and entry.tail in stage.nodes:
                    sent[entry.tail] = ddl(self.net.types[entry.tail].schema)
        for name in self.layout.native:
            for up in self.net.nodes[name].inputs:
                if behind(self.net, up) in stage.nodes:
                    sent[behind(self.net, up)] = ddl(self.net.types[behind(self.net, up)].schema)
        return list(sent.items())

    def stage_task(self, stage: Stage, onward: list[tuple[str, Any]]) -> StageTask:
        """A stage and this train of it, as sent to the tasks."""
        net, train = self.net, self.ticket.train
        nodes = [
            replace(net.nodes[n], inputs=tuple(behind(net, up) for up in net.nodes[n].inputs))
            for n in stage.nodes
        ]
        partials = frozenset(i for i, e in enumerate(stage.entries) if self._preaggregates(e))
        return StageTask(
            name=stage.name,
            subnetwork=self.trains.sub.name,
            nodes=nodes,
            inputs={n: net.input_types(n) for n in stage.nodes},
            outputs={n: net.types[n] for n in stage.nodes},
            entries=[(e.head, e.index) for e in stage.entries],
            entry_fields=[self._entry_schema(e, i in partials) for i, e in enumerate(stage.entries)],
            leaving=[self.leaving(n) for n in stage.nodes if self.trains.terminals(n)],
            guards=guarded(net, stage),
            state_root=str(self.trains.state_folder(stage.name)),
            state_tokens=self.trains.state.get(stage.name, {}),
            train=train,
            horizons={n: self.input_horizons(n) for n in stage.nodes},
            lateness=[self._lateness(e) for e in stage.entries],
            drop_rates=self.ticket.drop_rates,
            joins=self.ticket.joins,
            final=self.ticket.final,
            stateful=stage.stateful,
            epoch=self.trains.started,
            sync=self.trains.versions.sync,
            partials=partials,
            onward=[(name, arrow_schema(net.types[name].schema)) for name, _ in onward],
            monitors=self.monitors(stage.nodes),
            valves=self.valves.inside(stage),
            choosing=self.valves.choosing(),
            sampled=self.sampled_columns(stage.nodes),
        )

    def _preaggregates(self, entry: StageInput) -> bool:
        """Whether Spark makes partial aggregates. In them no late tuple could be told from the others."""
        return entry.head not in self.ticket.late_at and may_preaggregate(self.net, self.layout, entry)

    def _entry_schema(self, entry: StageInput, partial: bool) -> Any:
        if partial:
            from penstock.engine.spark.layout.preaggregate import partial_schema

            return partial_schema(self.net, entry)
        schema = arrow_schema(self.net.types[entry.tail].schema)
        spread = self.layout.home[entry.head].spread
        return schema.append(pa.field(OWNER, pa.int32())) if spread else schema

    def _partitioned(self, stage: Stage, task: StageTask) -> DataFrame:
        """The stage's input: all tuples of a key in one partition, the same one in every train."""
        width = self.trains.partitions
        if not self.frames:
            width = self.ticket.joins[stage.name].servers if stage.spread else width
            return self._blank(width if stage.keys or stage.spread else 1)
        frames = [self._entry_frame(e, i in task.partials) for i, e in enumerate(stage.entries)]
        if stage.spread:
            return self._diffused(stage, frames)
        if len(frames) == 1:
            frame = frames[0]
            keys = [F.col(f"`{k}`") for k in stage.entries[0].keys]
        else:
            frame = tagged(frames, stage.entries)
            keys = [F.col("_p")] if stage.entries[0].keys else []
        if not stage.stateful:
            return frame
        return frame.repartition(width, *keys) if keys else frame.repartition(1)

    def _blank(self, width: int) -> DataFrame:
        """Empty partitions, as many as needed."""
        return self.trains.spark.range(0, width, 1, width).where("id < 0")

    def _diffused(self, stage: Stage, frames: list[DataFrame]) -> DataFrame:
        """Send each tuple to the server, or servers, that the train's roles name."""
        roles = self.ticket.joins[stage.name]
        sides = [
            routed(
                frame, side, [common(F.col(f"`{k}`"), frame.schema[k].dataType) for k in entry.keys], roles
            )
            for side, (frame, entry) in enumerate(zip(frames, stage.entries, strict=True))
        ]
        return tagged(sides, stage.entries, spread=True).repartitionById(roles.servers, F.col(SERVER))

    def _entry_frame(self, entry: StageInput, partial: bool) -> DataFrame:
        frame = self._arrow(entry.head, entry.index)
        if partial:
            return preaggregated(frame, self.net, entry)
        columns = [f"`{c.name}`" for c in self.net.types[entry.tail].schema]
        return frame.selectExpr(*columns, STAMP, SEQ)

    def _lateness(self, entry: StageInput) -> int | None:
        """The lateness to subtract from an entry's newest tuple to get a horizon; None if it proves none.

        The proof needs a single source in arrival order, and no stage in between.
        """
        sources = self.trains.sources_of[entry.tail]
        if (
            len(sources) != 1
            or not self.net.types[entry.tail].arrival_order
            or entry.tail in self.layout.home
        ):
            return None
        source = self.net.nodes[next(iter(sources))]
        return source.lateness - (1 if source.whole else 0) if isinstance(source, Source) else None

    def leaving(self, name: str) -> Leaving:
        """Where the tuples after a node go when they leave."""
        sinks, points, driver = [], [], False
        for reader in self.trains.terminals(name):
            node = self.net.nodes[reader]
            if Trait.LEAVES not in node.traits:
                points.append(self.trains.writers[reader])
            elif (sink := self.trains.outputs.task_sink(reader)) is not None:
                sinks.append(sink)
            else:
                driver = True
        return Leaving(name, tuple(sinks), tuple(points), driver)

    # -- horizons and counts

    def input_horizons(self, name: str) -> tuple[int, ...]:
        """The horizons on the arrows into a box."""
        return self.reached.before[name]

    def newest(self) -> dict[str, int]:
        """The largest `_ts` of each source in this train."""
        stamps: dict[str, int] = {}
        for name in self.trains.sub.inputs:
            watched = (name, f"{name}{VALVE}") if name in self.net.sources else ()
            times = [self.watch.counts(each).get("newest") for each in watched]
            known = [int(newest) for newest in times if newest is not None]
            stamps |= {name: max(known)} if known else {}
        return stamps

    def _count(self) -> None:
        dead = self.watch.dead()
        if dead.num_rows:
            self.outcome.dead.append(dead)
        letters = Counter(dead.column("box").to_pylist())
        refused = tuples_by_box(dead)
        late = tuples_by_box(dead.filter(pc.starts_with(dead.column("reason"), "late: ")))
        # Boxes in stages have counted their output; they may feed a native box.
        out = {name: self.outcome.counts.get(name, {}).get("out", 0) for name in self.layout.home}
        for name in filter(self._runs, self.trains.sub.inputs):
            removed = sum(self.watch.removed(name).values())
            out[name] = self.watch.counts(name).get("rows", 0) - letters[name] + removed
            offered = {}
            if name in self.net.sources:
                offered = {"offered": self.watch.offered(name), "shed": self.watch.shed(name)}
            else:
                out[name] -= self.valves.flow(name).shed
            came = out[name] + refused[name]
            self.outcome.count(
                name, **{"in": came, "out": out[name], "dead": refused[name], "late": late[name]}, **offered
            )
        native = [*filter(self._runs, self.layout.native)]
        for name in native:
            if refused[name]:
                self.outcome.count(name, dead=refused[name])
            self._count_native(self.net.nodes[name], out, refused)
        entries = [e for stage in self.layout.stages for e in stage.entries]
        arrows = [(n, i) for n in native for i in range(len(self.net.nodes[n].inputs))]
        arrows += [(entry.head, entry.index) for entry in entries]
        self.outcome.valves |= self.valves.flows(self.trains.sub.inputs)
        self.outcome.valves |= self.valves.flows([self.valves.arrow(*arrow) for arrow in arrows])

    def _count_native(self, node: Node, out: dict[str, int], refused: Counter[str]) -> None:
        name, ups = node.name, [behind(self.net, up) for up in node.inputs]
        shed = [self.valves.flow(self.valves.arrow(name, index)).shed for index in range(len(ups))]
        came = sum(out[up] for up in ups) - sum(shed)
        sound = came - refused[name]
        passed = self._passed(node, sound, refused)
        out[name] = self.trains.estimates.guess(name, sound, self._share(node)) if passed is None else passed
        counts = {"in": came, "out": out[name]}
        if passed is None or any("estimated" in self.outcome.counts.get(up, {}) for up in ups):
            counts["estimated"] = 1
        self.outcome.count(name, **counts)

    def _passed(self, node: Node, sound: int, refused: Counter[str]) -> int | None:
        """What a native box let through of the tuples it did not refuse, if known."""
        name = node.name
        if name in self._done_early:
            return sound - self.watch.removed(self._done_early[name]).get(name, 0)
        # What boxes further down would refuse never got here, see Guards.
        chain = next((g.chain for g in self.trains.guards.values() if name in g.chain), ())
        taken = sum(refused[box] for box in chain[chain.index(name) + 1 :]) if chain else 0
        if name in self.outcome.written:
            return self.outcome.written[name] + taken
        if Trait.SELECTS not in node.traits:
            return sound
        if not sound or self._share(node) == 1.0:
            return sound
        if not self.sampled:
            return None
        passed = int(self.watch.counts(f"{name}#out").get("rows", 0)) + taken
        self.trains.estimates.learn(name, sound, passed)
        return passed

    def _share(self, node: Node) -> float | None:
        """The selectivity of a drop box follows from its rate, which may change with every train."""
        return 1.0 - self.ticket.drop_rates.get(node.name, node.rate) if isinstance(node, Drop) else None
