"""Native boxes: Filter, Map, Drop, Union and GroupBy as DataFrame operations.

A tuple whose expression fails leaves the main path there and becomes a dead letter (`Watch.guard`). Each
operation is given to Spark as a few texts. Every call into the JVM and every plan that it analyses costs
about a millisecond, and careless code makes some hundred of them a train.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.engine.spark.entry.admission import raw_text
from penstock.engine.spark.entry.by_reference import by_reference
from penstock.engine.spark.layout.expressions import to_spark
from penstock.engine.spark.watch import LetterSql, Watch
from penstock.model.boxes import Drop, Filter, Map, Node
from penstock.model.types import SEQ, STAMP, Schema, StreamType


@dataclass(frozen=True)
class NativeBox:
    """A box in one train. If `watch` is None, the source has already removed what the box would refuse."""

    node: Node
    frames: list[DataFrame]
    inputs: list[StreamType]
    output: StreamType
    drop_rates: Mapping[str, float]
    watch: Watch | None


def apply_box(box: NativeBox) -> DataFrame:
    """The tuples after a native box."""
    return _NATIVE[box.node.kind](box)


def _filter(box: NativeBox) -> DataFrame:
    assert isinstance(box.node, Filter)
    frame, schema = box.frames[0], box.inputs[0].schema
    sql = to_spark(box.node.predicate, schema)
    if sql.failure is not None and box.watch is not None:
        frame = _watched(box.node, frame, schema, sql.failure, box.watch)
    return frame.where(sql.value)


def _map(box: NativeBox) -> DataFrame:
    assert isinstance(box.node, Map)
    frame, schema = box.frames[0], box.inputs[0].schema
    sqls = {name: to_spark(text, schema) for name, text in box.node.columns}
    failures = [sql.failure for sql in sqls.values() if sql.failure is not None]
    if failures and box.watch is not None:
        failure = f"coalesce({', '.join(failures)})" if len(failures) > 1 else failures[0]
        frame = _watched(box.node, frame, schema, failure, box.watch)
    types = {c.name: c.type for c in box.output.schema}
    # The cast only fixes what the model's type already says: a literal's width, a null's type.
    columns = [
        f"CAST({sqls[c].value} AS {types[c]}) AS `{c}`" if c in sqls else f"`{c}`"
        for c in box.output.schema.names
    ]
    return frame.selectExpr(*columns, STAMP, SEQ)


def _watched(node: Node, frame: DataFrame, schema: Schema, failure: str, watch: Watch) -> DataFrame:
    letter = LetterSql(raw_text(schema), SEQ)
    return watch.guard(frame, node.name, f"concat('0:', {failure})", letter, (node.name,))


def _drop(box: NativeBox) -> DataFrame:
    node, frame = box.node, box.frames[0]
    assert isinstance(node, Drop)
    threshold = round(box.drop_rates.get(node.name, node.rate) * 1_000_000)
    if threshold <= 0:
        return frame
    # The unsigned remainder of a signed 64-bit hash. Spark has no unsigned numbers, so add 2**64 mod 10**6 to
    # negative ones.
    hashed = f"xxhash64(CAST({node.lot} AS BIGINT), {SEQ})"
    remainder = f"pmod({hashed}, 1000000) + CASE WHEN {hashed} < 0 THEN {2**64 % 1_000_000} ELSE 0 END"
    return frame.where(f"pmod({remainder}, 1000000) >= {by_reference(threshold, SEQ)}")


def _union(box: NativeBox) -> DataFrame:
    columns = [*(f"`{name}`" for name in box.output.schema.names), STAMP, SEQ]
    merged = box.frames[0].selectExpr(*columns)
    for frame in box.frames[1:]:
        merged = merged.unionByName(frame.selectExpr(*columns))
    return merged


# One line for each native kind; `plan.NATIVE_KINDS` are the keys.
_NATIVE: dict[str, Callable[[NativeBox], DataFrame]] = {
    "filter": _filter,
    "map": _map,
    "drop": _drop,
    "union": _union,
    "group_by": _union,
}
