"""Native boxes: Filter, Map, Drop, Union and GroupBy as DataFrame operations.

A tuple whose expression fails leaves the main path where it fails and becomes a dead letter (`Watch.guard`). Each
operation is given to Spark as a few texts: every call into the JVM and every plan it analyses costs about a
millisecond, a train is made of some hundred of them if one is careless.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.engine.spark.entry.admission import by_reference, raw_text
from penstock.engine.spark.layout.expressions import to_spark
from penstock.engine.spark.trains.watch import Watch
from penstock.model.boxes import Drop, Filter, GroupBy, Map, Node, Union
from penstock.model.types import SEQ, STAMP, Schema, StreamType


def apply_box(
    node: Node,
    frames: list[DataFrame],
    types: list[StreamType],
    output: StreamType,
    drop_rates: dict[str, float],
    watch: Watch,
    *,
    guarded: bool = False,
) -> DataFrame:
    """One native box; `guarded`: what it would refuse has been taken out already, at the source."""
    match node:
        case Filter():
            return _filter(node, frames[0], types[0].schema, None if guarded else watch)
        case Map():
            return _map(node, frames[0], types[0].schema, output.schema, None if guarded else watch)
        case Drop():
            return _drop(node, frames[0], drop_rates.get(node.name, node.rate))
        case Union() | GroupBy():
            return _union(frames, output.schema)
    raise TypeError(f"a {node.kind} is not native")


def _filter(node: Filter, frame: DataFrame, schema: Schema, watch: Watch | None) -> DataFrame:
    sql = to_spark(node.predicate, schema)
    if sql.failure is not None and watch is not None:
        frame = _watched(node, frame, schema, sql.failure, watch)
    return frame.where(sql.value)


def _map(node: Map, frame: DataFrame, schema: Schema, output: Schema, watch: Watch | None) -> DataFrame:
    sqls = {name: to_spark(text, schema) for name, text in node.columns}
    failures = [sql.failure for sql in sqls.values() if sql.failure is not None]
    if failures and watch is not None:
        failure = f"coalesce({', '.join(failures)})" if len(failures) > 1 else failures[0]
        frame = _watched(node, frame, schema, failure, watch)
    types = {c.name: c.type for c in output}
    # the cast settles only what the model's type says anyway: a literal's width, a null's type
    columns = [
        f"CAST({sqls[c].value} AS {types[c]}) AS `{c}`" if c in sqls else f"`{c}`" for c in output.names
    ]
    return frame.selectExpr(*columns, STAMP, SEQ)


def _watched(node: Node, frame: DataFrame, schema: Schema, failure: str, watch: Watch) -> DataFrame:
    return watch.guard(frame, node.name, f"concat('0:', {failure})", (raw_text(schema), SEQ), (node.name,))


def _drop(node: Drop, frame: DataFrame, rate: float) -> DataFrame:
    threshold = round(rate * 1_000_000)
    if threshold <= 0:
        return frame
    # unsigned remainder of a signed 64-bit hash: Spark has no unsigned numbers, so add 2**64 mod 10**6 where negative
    hashed = f"xxhash64(CAST({node.lot} AS BIGINT), {SEQ})"
    remainder = f"pmod({hashed}, 1000000) + CASE WHEN {hashed} < 0 THEN {2**64 % 1_000_000} ELSE 0 END"
    return frame.where(f"pmod({remainder}, 1000000) >= {by_reference(threshold, SEQ)}")


def _union(frames: list[DataFrame], schema: Schema) -> DataFrame:
    columns = [*(f"`{name}`" for name in schema.names), STAMP, SEQ]
    merged = frames[0].selectExpr(*columns)
    for frame in frames[1:]:
        merged = merged.unionByName(frame.selectExpr(*columns))
    return merged
