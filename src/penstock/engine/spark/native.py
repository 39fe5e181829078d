"""Native boxes: Filter, Map, Drop, Union and GroupBy as DataFrame operations, and how tuples enter the JVM.

A tuple that fails (late, malformed, an expression that overflows) leaves the main path where it fails. Whether there
are any is counted on the way (`observe`); only if so is a second pass made, which fetches just those.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from penstock.engine.arrow.logic import DEAD_SCHEMA, dead_letters
from penstock.engine.spark.decode import unpack
from penstock.engine.spark.expressions import to_spark
from penstock.engine.spark.inputs import SEQ_BITS
from penstock.engine.spark.ticket import Slice
from penstock.model.boxes import Drop, Filter, GroupBy, Map, Node, Source, Union
from penstock.model.types import SEQ, STAMP, Schema, StreamType, arrow_schema

DEAD = "_dead"
_PATIENCE = 1.0  # seconds to wait for counts after a job
_DEAD_DDL = "STRUCT<raw: STRING, reason: STRING, offset: BIGINT, box: STRING>"


@dataclass
class Watch:
    """Counts taken while a train runs, and where the dead of each place can be fetched from if there are any."""

    dead: dict[str, Callable[[], DataFrame]] = field(default_factory=dict)  # planned only where there are any
    _on: dict[str, tuple[Observation, DataFrame, list[Any]]] = field(default_factory=dict)
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def on(self, frame: DataFrame, name: str, **metrics: Any) -> DataFrame:
        """Count on the way past; `name` is the node's."""
        columns = [column.alias(key) for key, column in metrics.items()]
        observation = Observation()
        self._on[name] = (observation, frame, columns)
        return frame.observe(observation, *columns)

    def counts(self, name: str) -> dict[str, Any]:
        """What was counted; {} where nothing was watched."""
        if name in self._on and name not in self._known:
            self._known[name] = self._fetch(*self._on[name])
        return self._known.get(name, {})

    @staticmethod
    def _fetch(observation: Observation, frame: DataFrame, columns: list[Any]) -> dict[str, Any]:
        # The counts come with an event soon after the job. Where Spark has proved that no tuple can get through, it
        # leaves the counting out as well, and no event ever comes: then count apart.
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if observation._jo is not None and observation._jo.future().isCompleted():
                return dict(observation.get)
            time.sleep(0.001)
        row = frame.agg(*columns).collect()[0]
        return row.asDict()


def ddl(schema: Schema, *, hidden: bool = True) -> str:
    """Spark's DDL of a batch on an arrow."""
    columns = [f"`{c.name}` {c.type}" for c in schema]
    if hidden:
        columns += [f"{STAMP} BIGINT", f"{SEQ} BIGINT"]
    return ", ".join(columns)


class Unpack:
    """The task that makes tuples of packed slices; rows that are none, and late ones, come along marked as dead.

    The horizon is looked at here and not in SQL: as a literal it would change the generated code, which the JVM would
    have to compile anew for every train.
    """

    def __init__(self, source: Source, horizon: int) -> None:
        self.source, self.horizon = source, horizon

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        types = arrow_schema(self.source.schema)
        dead_type = pa.struct(list(DEAD_SCHEMA))
        full = pa.schema([*types, pa.field(DEAD, dead_type)])
        for batch in batches:
            for text, chunk in zip(batch.column("slice").to_pylist(), batch.column("chunk"), strict=True):
                table, dead = unpack(self.source, json.loads(text), chunk.as_py() or b"")
                table, dead = self._in_time(table.cast(types), dead)
                yield from (
                    table.append_column(DEAD, pa.nulls(table.num_rows, dead_type)).cast(full).to_batches()
                )
                if dead.num_rows:
                    named = dead.set_column(
                        3, "box", pa.array([self.source.name] * dead.num_rows, pa.string())
                    )
                    blank = [pa.nulls(dead.num_rows, f.type) for f in types]
                    yield pa.RecordBatch.from_arrays(
                        [*blank, named.to_struct_array().combine_chunks()], schema=full
                    )

    def _in_time(self, table: Any, dead: Any) -> tuple[Any, Any]:
        if self.source.timestamp is None or not table.num_rows:
            return table, dead
        late = pc.less(table.column(STAMP), self.horizon)
        if not pc.any(late).as_py():
            return table, dead
        rows = table.filter(late)
        reasons = [late_reason(ts, self.horizon) for ts in rows.column(STAMP).to_pylist()]
        return table.filter(pc.invert(late)), pa.concat_tables(
            [dead, dead_letters(rows, reasons, self.source.name)]
        )


def late_reason(ts: int, horizon: int) -> str:
    """Why a tuple is refused as late."""
    return f"late: timestamp {ts} us is behind the horizon {horizon} us of earlier trains"


def packed_frame(records: DataFrame, source: Source, horizon: int) -> DataFrame:
    """Tuples from the packed records of the streaming source."""
    mine = records.where(F.col("input") == source.name)
    return mine.mapInArrow(Unpack(source, horizon), f"{ddl(source.schema)}, {DEAD} {_DEAD_DDL}")


def parquet_frame(spark: SparkSession, source: Source, slices: list[Slice]) -> DataFrame:
    """Tuples from whole Parquet files, read by Spark itself."""
    paths = [s["path"] for s in slices]
    frame = spark.read.schema(ddl(source.schema, hidden=False)).parquet(*paths)
    # a map, not a plain literal: it reaches the generated code by reference, so the code stays the same
    order = F.create_map(
        *[F.lit(x) for s in slices for x in (s["path"].rsplit("/", 1)[-1], s["file"] << SEQ_BITS)]
    )
    stamp = F.unix_micros(F.col(source.timestamp)) if source.timestamp else F.lit(None).cast("bigint")
    seq = order[F.col("_metadata.file_name")] + F.col("_metadata.row_index")
    return frame.select(*[F.col(f"`{c.name}`") for c in source.schema], stamp.alias(STAMP), seq.alias(SEQ))


def admit(frame: DataFrame, source: Source, watch: Watch) -> DataFrame:
    """Let tuples of packed slices in: those marked as dead stay behind."""
    bad = F.col(DEAD).isNotNull()
    late = F.col(f"{DEAD}.reason").startswith("late: ")
    metrics = {
        "rows": F.count(F.lit(1)),
        "refused": F.count(F.when(bad, 1)),
        "late": F.count(F.when(late, 1)),
        "newest": F.max(STAMP),
    }
    watched = watch.on(frame, source.name, **metrics)
    watch.dead[f"{source.name}#refused"] = lambda: frame.where(bad).select(f"{DEAD}.*")
    return watched.where(~bad).select(*[F.col(f"`{c.name}`") for c in source.schema], STAMP, SEQ)


def admit_native(
    frame: DataFrame, source: Source, slices: list[Slice], horizon: int, watch: Watch
) -> DataFrame:
    """Let tuples of Parquet files in. Where the footers prove that none is late or without a time, nothing is compared."""
    if source.timestamp is None:
        return watch.on(frame, source.name, rows=F.count(F.lit(1)))
    if all(s.get("least") is not None and s["least"] >= horizon for s in slices):
        return watch.on(frame, source.name, rows=F.count(F.lit(1)), newest=F.max(STAMP))
    late = F.col(STAMP) < by_reference(horizon, STAMP)
    bad = F.col(STAMP).isNull() | late
    metrics = {
        "rows": F.count(F.lit(1)),
        "refused": F.count(F.when(bad, 1)),
        "newest": F.max(F.when(~bad, F.col(STAMP))),
    }
    watched = watch.on(frame, source.name, late=F.count(F.when(late, 1)), **metrics)
    reason = F.when(F.col(STAMP).isNull(), F.lit("timestamp is null")).otherwise(
        F.concat(
            F.lit("late: timestamp "),
            F.col(STAMP).cast("string"),
            F.lit(f" us is behind the horizon {horizon} us of earlier trains"),
        )
    )
    watch.dead[f"{source.name}#refused"] = lambda: _dead_of(
        frame.where(bad), source.schema, reason, source.name
    )
    return watched.where(~bad)


def by_reference(number: int, column: str) -> Any:
    """A number that changes from train to train, so that the generated code does not change with it.

    A plain literal stands in the code, which the JVM then has to compile anew for every train (counted: 7 classes a
    train for a filter and a map, none since). An array is handed over beside the code; the index must be no constant,
    or Spark would look the number up while planning.
    """
    wide = F.lit(number).cast("bigint")
    return F.get(F.array(wide, wide), F.col(column).isNull().cast("int"))


def _dead_of(frame: DataFrame, schema: Schema, reason: Any, box: str) -> DataFrame:
    raw = F.to_json(F.struct(*[F.col(f"`{c.name}`") for c in schema]), {"ignoreNullFields": "false"})
    return frame.select(
        raw.alias("raw"), reason.alias("reason"), F.col(SEQ).alias("offset"), F.lit(box).alias("box")
    )


def apply_box(
    node: Node,
    frames: list[DataFrame],
    types: list[StreamType],
    output: StreamType,
    drop_rates: dict[str, float],
    watch: Watch,
) -> DataFrame:
    """One native box."""
    match node:
        case Filter():
            return _filter(node, frames[0], types[0].schema, watch)
        case Map():
            return _map(node, frames[0], types[0].schema, output.schema, watch)
        case Drop():
            return _drop(node, frames[0], drop_rates.get(node.name, node.rate))
        case Union() | GroupBy():
            return _union(frames, output.schema)
    raise TypeError(f"a {node.kind} is not native")


def _filter(node: Filter, frame: DataFrame, schema: Schema, watch: Watch) -> DataFrame:
    sql = to_spark(node.predicate, schema)
    if sql.failure is None:
        return frame.where(sql.value)
    good = _watched(node, frame, schema, F.expr(sql.failure), watch)
    return good.where(F.expr(sql.failure).isNull()).where(sql.value)


def _map(node: Map, frame: DataFrame, schema: Schema, output: Schema, watch: Watch) -> DataFrame:
    sqls = {name: to_spark(text, schema) for name, text in node.columns}
    failures = [F.expr(sql.failure) for sql in sqls.values() if sql.failure is not None]
    if failures:
        failure = F.coalesce(*failures) if len(failures) > 1 else failures[0]
        frame = _watched(node, frame, schema, failure, watch).where(failure.isNull())
    types = {c.name: c.type for c in output}
    # the cast settles only what the model's type says anyway: a literal's width, a null's type
    columns = [
        (F.expr(sqls[c].value).cast(types[c]) if c in sqls else F.col(f"`{c}`")).alias(c)
        for c in output.names
    ]
    return frame.select(*columns, STAMP, SEQ)


def _watched(node: Node, frame: DataFrame, schema: Schema, failure: Any, watch: Watch) -> DataFrame:
    watch.dead[node.name] = lambda: _dead_of(frame.where(failure.isNotNull()), schema, failure, node.name)
    return watch.on(frame, node.name, failed=F.count(failure))


def _drop(node: Drop, frame: DataFrame, rate: float) -> DataFrame:
    threshold = round(rate * 1_000_000)
    if threshold <= 0:
        return frame
    # unsigned remainder of a signed 64-bit hash: Spark has no unsigned numbers, so add 2**64 mod 10**6 where negative
    hashed = F.expr(f"xxhash64(CAST({node.seed} AS BIGINT), {SEQ})")
    remainder = F.pmod(hashed, F.lit(1_000_000)) + F.when(hashed < 0, F.lit(2**64 % 1_000_000)).otherwise(
        F.lit(0)
    )
    return frame.where(F.pmod(remainder, F.lit(1_000_000)) >= by_reference(threshold, SEQ))


def _union(frames: list[DataFrame], schema: Schema) -> DataFrame:
    columns = [*(f"`{name}`" for name in schema.names), STAMP, SEQ]
    merged = frames[0].select(*columns)
    for frame in frames[1:]:
        merged = merged.unionByName(frame.select(*columns))
    return merged
