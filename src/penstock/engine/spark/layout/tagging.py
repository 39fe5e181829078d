"""Several arrows into a stage as one stream of rows, so that one shuffle brings them there."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.engine.spark.layout.diffusion_proxy import SERVER
from penstock.engine.spark.layout.plan import StageInput


def tagged(frames: list[DataFrame], entries: list[StageInput], *, spread: bool = False) -> DataFrame:
    """Several entries as one stream: a tag, the hash of the keys, and one struct for each entry.

    Only one of the structs is filled. `spread`: the server takes the place of the hash.
    """
    inner = [[c for c in frame.columns if c != SERVER] for frame in frames]
    schemas = [StructType([f for f in frame.schema if f.name != SERVER]) for frame in frames]
    sides = []
    for i, (frame, entry) in enumerate(zip(frames, entries, strict=True)):
        keys = (
            F.col(SERVER)
            if spread
            else F.xxhash64(*[common(F.col(f"`{k}`"), frame.schema[k].dataType) for k in entry.keys])
            if entry.keys
            else F.lit(0).cast("bigint")
        )
        structs = [
            F.struct(*[F.col(f"`{c}`") for c in inner[i]]).alias(f"_s{j}")
            if i == j
            else F.lit(None).cast(schema).alias(f"_s{j}")
            for j, schema in enumerate(schemas)
        ]
        sides.append(frame.select(F.lit(i).alias("_tag"), keys.alias(SERVER), *structs))
    merged = sides[0]
    for frame in sides[1:]:
        merged = merged.unionByName(frame)
    return merged


def common(column: Any, type_: Any) -> Any:
    """Cast keys to a common type: equal keys of different widths must meet in one partition."""
    wide = {"tinyint": "double", "smallint": "double", "int": "double", "bigint": "double", "float": "double"}
    return column.cast(wide[type_.simpleString()]) if type_.simpleString() in wide else column
