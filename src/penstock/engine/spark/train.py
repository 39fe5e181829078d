"""One train through one sub-network: from its ticket to its commit record.

Everything a train writes lies aside until its commit record is on disk; then it is published. A train whose commit record
exists is not run again, only published again, which does no harm: so nothing is lost and nothing doubled.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.local.horizons import after
from penstock.engine.spark.native import (
    Watch,
    admit,
    admit_native,
    apply_box,
    ddl,
    packed_frame,
    parquet_frame,
)
from penstock.engine.spark.packing import from_ipc
from penstock.engine.spark.plan import Entry, Layout, Stage, behind, guarded, lay_out
from penstock.engine.spark.points import point_frame
from penstock.engine.spark.preaggregate import may_preaggregate, preaggregated
from penstock.engine.spark.sinks import StagedFiles, deliver, publish, remove_litter
from penstock.engine.spark.stage import Leaving, StageTask, report_ddl
from penstock.engine.spark.state import stage_base
from penstock.engine.spark.ticket import UNKNOWN, Commit, Ticket, TrainLog
from penstock.engine.spark.writer import FrameWriter
from penstock.model.boxes import ConnectionPoint, Node, Source, View
from penstock.model.formats import Files
from penstock.model.network import Network
from penstock.model.types import SEQ, STAMP, arrow_schema
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.crash import crash_point
from penstock.store.dead_letters import DeadLetters
from penstock.store.manifest import DataFile
from penstock.store.point import PointWriter

_SAMPLE = 16  # one train in so many counts what goes into and out of each native box


@dataclass
class Outcome:
    """What a train has brought so far; becomes the commit record."""

    moves: list[list[str]] = field(default_factory=list)
    points: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    rows: dict[str, list[Any]] = field(default_factory=dict)  # for sinks in this process, by node
    dead: list[Any] = field(default_factory=list)
    state_bytes: int = 0

    def take(self, record: dict[str, Any]) -> None:
        """Add what one task reports."""
        self.moves += record["moves"]
        self.state_bytes += record["state_bytes"]
        for name, files in record["points"].items():
            self.points.setdefault(name, []).extend(files)
        for name, counts in record["counts"].items():
            self.count(name, **counts)
        for name, seconds in record["cost"].items():
            self.cost[name] = self.cost.get(name, 0.0) + seconds

    def count(self, name: str, **counts: int) -> None:
        mine = self.counts.setdefault(name, {})
        for key, value in counts.items():
            mine[key] = mine.get(key, 0) + int(value)


class Trains:
    """Runs the trains of one sub-network; `place` is its directory under the checkpoint."""

    def __init__(
        self,
        sub: SubNetwork,
        spark: SparkSession,
        checkpoint: Path,
        *,
        partitions: int,
        fuse: bool = True,
        done: Callable[[Ticket, Commit, Outcome], None] | None = None,
    ) -> None:
        self.sub, self.net, self.spark, self.checkpoint = sub, sub.network, spark, checkpoint
        self.place = checkpoint / "queries" / sub.name
        self.log = TrainLog(self.place)
        self.partitions, self.layout = partitions, lay_out(sub, fuse=fuse)
        self.done = done
        last = self.log.commit(self.log.last())
        for name in sub.outputs:
            to = self.net.outputs[name].to
            if isinstance(to, Files):
                remove_litter(to.path, last.moves if last is not None else ())
        self.epoch = uuid.uuid4().hex  # of this start of the query, see PartitionState
        self.loaded = 0  # trains with tuples since then
        committed = self._committed()
        self.bases = {
            s.name: stage_base(self.place / "state" / s.name, committed)
            for s in self.layout.stages
            if s.stateful
        }
        self.writers = {name: self._writer(self.net.nodes[name]) for name in sub.points}
        self.dead_letters = DeadLetters(checkpoint)
        self._sources = {name: _source_of(self.net, name) for name in self.net.nodes}

    def _writer(self, node: Node) -> PointWriter:
        key = node.key if isinstance(node, ConnectionPoint) else None
        return PointWriter(self.checkpoint, node.name, self.net.types[node.name].schema, key)

    def _committed(self) -> int:
        last = self.log.last()
        return last if last < 0 or self.log.commit(last) is not None else last - 1

    def __call__(self, records: DataFrame, train: int) -> None:
        """The body of foreachBatch: Spark's batch number is the train's."""
        ticket = self.log.ticket(train)
        if ticket is None:
            raise FileNotFoundError(f"{self.place}: the ticket of train {train} is missing")
        commit = self.log.commit(train)
        outcome = Outcome()
        if commit is None:
            commit = self._run(records, ticket, outcome)
        self._publish(ticket, commit)
        if self.done is not None:
            self.done(ticket, commit, outcome)
        crash_point("train-published")

    def _run(self, records: DataFrame, ticket: Ticket, outcome: Outcome) -> Commit:
        running = RunningTrain(self, records, ticket, outcome)
        try:
            running.all()
        finally:
            running.release()
        crash_point("train-before-commit")
        dead = self._dead(ticket, outcome)
        self.dead_letters.append(self.sub.name, ticket.train, dead)
        # readers of a point may rely on the horizon that this train itself has acted on
        points = {
            n: {"files": outcome.points.get(n, []), "horizon": running.horizons[n], "final": ticket.final}
            for n in self.sub.points
        }
        commit = Commit(
            ticket.train, running.newest(), outcome.moves, points, outcome.counts, dead.num_rows, time.time()
        )
        self.log.write_commit(commit)
        crash_point("train-after-commit")
        for name, tables in outcome.rows.items():
            self._deliver(name, pa.concat_tables(tables))
        return commit

    def _dead(self, ticket: Ticket, outcome: Outcome) -> Any:
        """The train's dead letters, with the source each came from."""
        tables = [table.cast(DEAD_SCHEMA) for table in outcome.dead]
        for name, files in ticket.refused.items():
            tables.append(pa.Table.from_pylist([{**f, "box": name} for f in files], schema=DEAD_SCHEMA))
        dead = pa.concat_tables(tables) if tables else DEAD_SCHEMA.empty_table()
        sources = [self._sources.get(box, "") for box in dead.column("box").to_pylist()]
        return dead.append_column("source", pa.array(sources, pa.string()))

    def _deliver(self, name: str, table: Any) -> None:
        for reader in self.terminals(name):
            node = self.net.nodes[reader]
            to = getattr(node, "to", None)
            if to is not None and not isinstance(to, Files):
                ordered = table.sort_by([(STAMP, "ascending"), (SEQ, "ascending")])
                deliver(to, reader, ordered.select(list(self.net.types[reader].schema.names)))

    def _publish(self, ticket: Ticket, commit: Commit) -> None:
        publish(commit.moves)
        for name, point in commit.points.items():
            files = [DataFile(**f) for f in point["files"]]
            self.writers[name].commit(
                ticket.train, files, point["horizon"], final=point["final"], arrival=ticket.arrival
            )

    def terminals(self, name: str) -> list[str]:
        """Outputs, points and views fed by a box, directly or through points that pass its tuples on."""
        found = []
        for reader in self.net.readers(name):
            if self.net.nodes[reader].kind in ("output", "connection_point", "view"):
                found += [reader, *self.terminals(reader)]
        return found


class RunningTrain:
    """One run of one ticket."""

    def __init__(self, trains: Trains, records: DataFrame, ticket: Ticket, outcome: Outcome) -> None:
        self.trains, self.net, self.ticket, self.outcome = trains, trains.net, ticket, outcome
        self.layout: Layout = trains.layout
        self.watch = Watch()
        self.records = records
        self.frames: dict[str, DataFrame] = {}
        self.cached: list[DataFrame] = []
        self.horizons = self._horizons(ticket.horizons)
        # Counting behind every native box breaks the generated code into pieces; selectivities need a sample only.
        self.sampled = not ticket.empty and trains.loaded % _SAMPLE == 0
        trains.loaded += not ticket.empty

    def all(self) -> None:
        for name in self.trains.sub.inputs:
            self._keep(name, self._input(self.net.nodes[name]))
        for name in self.layout.native:
            self._native(self.net.nodes[name])
        writer = FrameWriter(self.trains, self.ticket, self.outcome)
        for stage in self.layout.stages:
            self._stage(stage)
        for name in (*self.trains.sub.inputs, *self.layout.native):
            writer.write(name, self.frames[name])
        self._count()
        self._fetch_dead()

    def release(self) -> None:
        for frame in self.cached:
            frame.unpersist()

    # -- tuples into the JVM

    def _input(self, node: Node) -> DataFrame:
        if isinstance(node, ConnectionPoint | View):
            if not self.ticket.slices.get(node.name):
                return self._nothing(node.name)
            frame, skipped = point_frame(
                self.trains.spark,
                self.trains.checkpoint,
                self.net,
                node.name,
                self.ticket.slices.get(node.name, []),
            )
            self.outcome.count(node.name, skipped_files=skipped[0], read_files=skipped[1])
            return self.watch.on(frame, node.name, rows=F.count(F.lit(1)))
        assert isinstance(node, Source)
        return self._source(node)

    def _source(self, node: Source) -> DataFrame:
        slices, horizon = self.ticket.slices.get(node.name, []), self.ticket.horizons.get(node.name, UNKNOWN)
        files = [s for s in slices if s["kind"] == "file"]
        if not slices:
            return self._nothing(node.name)
        if not files:
            return admit(packed_frame(self.records, node, horizon), node, self.watch)
        assert len(files) == len(slices), "an input gives whole files or packed slices, not both in one train"
        return admit_native(parquet_frame(self.trains.spark, node, files), node, files, horizon, self.watch)

    def _nothing(self, name: str) -> DataFrame:
        return self.trains.spark.createDataFrame([], ddl(self.net.types[name].schema))

    def _native(self, node: Node) -> None:
        inputs = [behind(self.net, name) for name in node.inputs]
        types = self.net.input_types(node.name)
        frame = apply_box(
            node,
            [self.frames[i] for i in inputs],
            types,
            self.net.types[node.name],
            self.ticket.drop_rates,
            self.watch,
        )
        if self.sampled:
            frame = self.watch.on(frame, f"{node.name}#out", rows=F.count(F.lit(1)))
        self._keep(node.name, frame)

    def _keep(self, name: str, frame: DataFrame) -> None:
        """Tuples that several jobs need are computed once."""
        if self._consumers(name) > 1:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            self.cached.append(frame)
        self.frames[name] = frame

    def _consumers(self, name: str) -> int:
        boxes = sum(
            1
            for node in self.net.nodes.values()
            for up in node.inputs
            if behind(self.net, up) == name and node.kind not in ("output", "connection_point", "view")
        )
        return boxes + len(self.trains.terminals(name))

    # -- stages

    def _stage(self, stage: Stage) -> None:
        onward = self._onward(stage)
        task = self._task(stage, onward)
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
            self._take(row)
        for i, (name, _) in enumerate(onward):
            self.frames[name] = report.where((F.col("kind") == "tuple") & (F.col("name") == name)).select(
                f"_o{i}.*"
            )

    def _take(self, row: Any) -> None:
        body = bytes(row["body"])
        match row["kind"]:
            case "record":
                self.outcome.take(json.loads(body))
            case "rows":
                self.outcome.rows.setdefault(row["name"], []).append(from_ipc(body))
            case "dead":
                self.outcome.dead.append(from_ipc(body))

    def _onward(self, stage: Stage) -> list[tuple[str, Any]]:
        """Boxes of the stage that feed boxes elsewhere, with the DDL of what they send."""
        found = {}
        for other in self.layout.stages:
            for entry in other.entries:
                if other is not stage and entry.tail in stage.nodes:
                    found[entry.tail] = ddl(self.net.types[entry.tail].schema)
        for name in self.layout.native:
            for up in self.net.nodes[name].inputs:
                if behind(self.net, up) in stage.nodes:
                    found[behind(self.net, up)] = ddl(self.net.types[behind(self.net, up)].schema)
        return list(found.items())

    def _task(self, stage: Stage, onward: list[tuple[str, Any]]) -> StageTask:
        net, train = self.net, self.ticket.train
        nodes = [
            replace(net.nodes[n], inputs=tuple(behind(net, up) for up in net.nodes[n].inputs))
            for n in stage.nodes
        ]
        partials = frozenset(i for i, e in enumerate(stage.entries) if may_preaggregate(net, self.layout, e))
        return StageTask(
            name=stage.name, subnetwork=self.trains.sub.name, nodes=nodes,
            inputs={n: net.input_types(n) for n in stage.nodes}, outputs={n: net.types[n] for n in stage.nodes},
            entries=[(e.head, e.index) for e in stage.entries],
            entry_fields=[self._entry_schema(e, i in partials) for i, e in enumerate(stage.entries)],
            leaving=[self._leaving(n) for n in stage.nodes if self.trains.terminals(n)],
            guards=guarded(net, stage), state_root=str(self.trains.place / "state" / stage.name),
            state_base=self.trains.bases.get(stage.name, -1), train=train,
            horizons={n: self._input_horizons(n) for n in stage.nodes},
            lateness=[self._lateness(e) for e in stage.entries], drop_rates=self.ticket.drop_rates,
            final=self.ticket.final, stateful=stage.stateful, epoch=self.trains.epoch, partials=partials,
            onward=[(name, arrow_schema(net.types[name].schema)) for name, _ in onward],
        )  # fmt: skip

    def _entry_schema(self, entry: Entry, partial: bool) -> Any:
        if partial:
            from penstock.engine.spark.preaggregate import partial_schema

            return partial_schema(self.net, entry)
        return arrow_schema(self.net.types[entry.tail].schema)

    def _partitioned(self, stage: Stage, task: StageTask) -> DataFrame:
        """The stage's input, all tuples of a key in one partition, with the same keys there in every train."""
        frames = [self._entry_frame(e, i in task.partials) for i, e in enumerate(stage.entries)]
        width = self.trains.partitions
        if len(frames) == 1:
            frame = frames[0]
            keys = [F.col(f"`{k}`") for k in stage.entries[0].keys]
        else:
            frame = _tagged(frames, stage.entries)
            keys = [F.col("_p")] if stage.entries[0].keys else []
        if not stage.stateful:
            return frame
        return frame.repartition(width, *keys) if keys else frame.repartition(1)

    def _entry_frame(self, entry: Entry, partial: bool) -> DataFrame:
        frame = self.frames[entry.tail]
        if partial:
            return preaggregated(frame, self.net, entry)
        columns = [F.col(f"`{c.name}`") for c in self.net.types[entry.tail].schema]
        return frame.select(*columns, STAMP, SEQ)

    def _lateness(self, entry: Entry) -> int | None:
        """How much newer than the horizon an entry's newest tuple is, if that proves anything: one source, no state."""
        sources = self._sources(entry.tail)
        if (
            len(sources) != 1
            or not self.net.types[entry.tail].arrival_order
            or entry.tail in self.layout.home
        ):
            return None
        source = self.net.nodes[sources.pop()]
        return source.lateness - (1 if source.whole else 0) if isinstance(source, Source) else None

    def _sources(self, name: str) -> set[str]:
        node = self.net.nodes[name]
        return {name} if not node.inputs else set().union(*(self._sources(up) for up in node.inputs))

    def _leaving(self, name: str) -> Leaving:
        files, points, driver = [], [], False
        for reader in self.trains.terminals(name):
            node = self.net.nodes[reader]
            if node.kind != "output":
                points.append(self.trains.writers[reader])
            elif isinstance(node.to, Files):  # type: ignore[attr-defined]
                files.append(staged_files(self.trains, reader))
            else:
                driver = True
        return Leaving(name, tuple(files), tuple(points), driver)

    # -- horizons and counts

    def _horizons(self, inputs: dict[str, int]) -> dict[str, int]:
        """The horizon behind every node, from those of the inputs."""
        found: dict[str, int] = {}
        for name, node in self.net.nodes.items():
            found[name] = (
                after(node, tuple(found[up] for up in node.inputs))
                if node.inputs
                else inputs.get(name, UNKNOWN)
            )
        return found

    def _input_horizons(self, name: str) -> tuple[int, ...]:
        return tuple(self.horizons[up] for up in self.net.nodes[name].inputs)

    def newest(self) -> dict[str, int]:
        """The largest `_ts` of each source in this train."""
        found = {}
        for name in self.trains.sub.inputs:
            newest = self.watch.counts(name).get("newest") if name in self.net.sources else None
            if newest is not None:
                found[name] = int(newest)
        return found

    def _count(self) -> None:
        out: dict[str, int] = {}
        for name in self.trains.sub.inputs:
            counts = self.watch.counts(name)
            rows, bad = counts.get("rows", 0), counts.get("refused", 0)
            out[name] = rows - bad
            self.outcome.count(
                name, **{"in": rows, "out": rows - bad, "dead": bad, "late": counts.get("late", 0)}
            )
        for name in self.layout.native if self.sampled else ():
            out[name] = self.watch.counts(f"{name}#out").get("rows", 0)
            came = sum(out[behind(self.net, up)] for up in self.net.nodes[name].inputs)
            self.outcome.count(name, **{"in": came, "out": out[name]})

    def _fetch_dead(self) -> None:
        """A second pass for the dead, one for all places, only where the first one has met any."""
        met = [place for place in self.watch.dead if self._met_dead(place)]
        if not met:
            return
        frames = [self.watch.dead[place]().select(*DEAD_SCHEMA.names) for place in met]
        table = reduce(DataFrame.unionByName, frames).toArrow().cast(DEAD_SCHEMA)
        self.outcome.dead.append(table)
        boxes = table.column("box").to_pylist()
        for place in met:
            if "#" not in place:
                self.outcome.count(place, dead=boxes.count(place))

    def _met_dead(self, place: str) -> bool:
        node, _, kind = place.partition("#")
        return bool(self.watch.counts(node).get(kind or "failed", 0))


def _source_of(net: Network, name: str) -> str:
    """The source of a box's tuples if it can only be one: tuples do not carry where they came from."""
    node = net.nodes[name]
    if not node.inputs:
        return name
    found = {_source_of(net, up) for up in node.inputs}
    return found.pop() if len(found) == 1 else ""


def staged_files(trains: Trains, output: str) -> StagedFiles:
    """Where an output's files go."""
    to = trains.net.nodes[output].to  # type: ignore[attr-defined]
    return StagedFiles(to.path, to.format, to.options, trains.net.types[output].schema, trains.sub.name)


def _tagged(frames: list[DataFrame], entries: list[Entry]) -> DataFrame:
    """Several entries as one stream: a tag, the hash of the keys, and one struct for each entry, one of them filled."""
    schemas = [frame.schema for frame in frames]
    made = []
    for i, (frame, entry) in enumerate(zip(frames, entries, strict=True)):
        keys = (
            F.xxhash64(*[_common(F.col(f"`{k}`"), frame.schema[k].dataType) for k in entry.keys])
            if entry.keys
            else F.lit(0).cast("bigint")
        )
        structs = [
            F.struct(*[F.col(f"`{c}`") for c in frame.columns]).alias(f"_s{j}")
            if i == j
            else F.lit(None).cast(schema).alias(f"_s{j}")
            for j, schema in enumerate(schemas)
        ]
        made.append(frame.select(F.lit(i).alias("_tag"), keys.alias("_p"), *structs))
    merged = made[0]
    for frame in made[1:]:
        merged = merged.unionByName(frame)
    return merged


def _common(column: Any, type_: Any) -> Any:
    """Equal keys of different widths must meet in one partition."""
    wide = {"tinyint": "double", "smallint": "double", "int": "double", "bigint": "double", "float": "double"}
    return column.cast(wide[type_.simpleString()]) if type_.simpleString() in wide else column
