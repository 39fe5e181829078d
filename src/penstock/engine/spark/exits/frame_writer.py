"""Native frames to outputs and points: Spark's own writer for Parquet, small Python tasks for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from penstock.connectors.contract import TaskSink
from penstock.connectors.files.sink import FilesSink
from penstock.connectors.paths import is_plain
from penstock.engine.contract.ticket import Ticket
from penstock.model.boxes import Output
from penstock.model.formats.files import Parquet
from penstock.model.types import arrow_schema
from penstock.store.durable import FILE_MODE, make_directory, sync_directory, sync_file
from penstock.store.file_names import staged_folder
from penstock.store.points.point import PointWriter

if TYPE_CHECKING:
    from penstock.engine.spark.outcome import Outcome
    from penstock.engine.spark.trains.train import Trains


class FrameWriter:
    """Writes the tuples of native boxes to the outputs and points after them."""

    def __init__(self, trains: Trains, ticket: Ticket, outcome: Outcome) -> None:
        self.trains, self.ticket, self.outcome = trains, ticket, outcome

    def write(self, name: str, frame: DataFrame) -> None:
        """Write to every output, point and view after the native node `name`."""
        for reader in self.trains.terminals(name):
            self.trains.doing = (name, reader)
            node = self.trains.net.nodes[reader]
            if not isinstance(node, Output):
                rows = self._by_tasks(frame, reader, self.trains.writers[reader])
            elif (sink := self.trains.outputs.task_sink(reader)) is None:
                rows = self._by_driver(frame, name)
            elif isinstance(sink, FilesSink) and _by_spark(sink):
                rows = self._parquet(frame, sink)
            else:
                rows = self._by_tasks(frame, reader, sink)
            self.outcome.written[name] = rows

    def _by_driver(self, frame: DataFrame, name: str) -> int:
        schema = arrow_schema(self.trains.net.types[name].schema)
        table = frame.toArrow().select(schema.names).cast(schema)
        self.outcome.rows[name] = [table]
        return int(table.num_rows)

    def _parquet(self, frame: DataFrame, sink: FilesSink) -> int:
        staging = staged_folder(sink.to.path, sink.owner, self.ticket.train)
        visible = frame.select(*[f"`{c}`" for c in sink.target.schema.names])
        options = {name: value for name, value in sink.to.options if name != "append"}
        make_directory(staging.parent)  # a session that is not ours may have another umask
        visible.write.options(**options).parquet(str(staging))
        parts = sorted(staging.glob("*.parquet"))
        if self.trains.sync:
            for path in parts:
                sync_file(path)
            sync_directory(staging)
        for i, part in enumerate(parts):
            part.chmod(FILE_MODE)
            self.outcome.moves.append((str(part), sink.final(self.ticket.train, i)))
        return sum(pq.read_metadata(part).num_rows for part in parts)

    def _by_tasks(self, frame: DataFrame, reader: str, target: TaskSink | PointWriter) -> int:
        schema = self.trains.net.types[reader].schema
        columns = [f"`{c}`" for c in schema.names]
        task = WriteTask(target, self.ticket.train)
        rows = 0
        for row in frame.select(*columns, "_ts", "_seq").mapInArrow(task, "body STRING").collect():
            record = json.loads(row["body"])
            rows += record["rows"]
            self.outcome.take_files(record)
            self.outcome.take_point_files(reader, record["files"])
        return rows


def _by_spark(sink: FilesSink) -> bool:
    """Whether Spark's own writer may write it: not if it would take the name for something else."""
    return isinstance(sink.to, Parquet) and not sink.to.at_once and is_plain(sink.to.path)


class WriteTask:
    """Writes one partition of a frame to a sink or to a connection point."""

    def __init__(self, target: TaskSink | PointWriter, train: int) -> None:
        self.target, self.train = target, train

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        tables = [pa.Table.from_batches([b]) for b in batches]
        record: dict[str, object] = {
            "moves": [],
            "shown": [],
            "files": [],
            "rows": sum(t.num_rows for t in tables),
        }
        if isinstance(self.target, PointWriter):
            types = arrow_schema(self.target.schema)
            record["files"] = [
                asdict(f)
                for f in self.target.stage(self.train, (t.cast(types) for t in tables), partition=partition)
            ]
        elif tables:
            written = self.target.write(pa.concat_tables(tables), self.train, partition)
            record |= {"moves": written.moves, "shown": written.shown}
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(record)])], names=["body"])
