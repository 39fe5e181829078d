"""Partitions of keys as Spark computes them: state moves between DataFrames and jobs of our own."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest

from penstock.engine.arrow.columns.spark_hash import partitions_by_hash, partitions_of_common
from penstock.model.types import Schema, arrow_schema

TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "Grüße, 世界", "x" * 40, None]
NUMBERS = [0, 1, -1, 7, 42, -100, 127, -128, None]
TIMES = [
    dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
]
REALS = [0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e-30, None]
VALUES = {
    "BOOLEAN": [True, False, None] * 3,
    "TINYINT": NUMBERS,
    "SMALLINT": NUMBERS,
    "INT": [*NUMBERS[:7], 2**31 - 1, -(2**31)],
    "BIGINT": [*NUMBERS[:7], 2**63 - 1, -(2**63)],
    "FLOAT": REALS,
    "DOUBLE": REALS,
    "STRING": TEXTS,
    "BINARY": [None if text is None else text.encode() for text in TEXTS],
    "DATE": [dt.date(1950, 1, 1), dt.date(2026, 11, 17), None] * 3,
    "TIMESTAMP": [*TIMES, None] * 3,
}
WIDE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT")


def table(types):
    schema = Schema.parse(", ".join(f"c{i} {type_}" for i, type_ in enumerate(types)))
    wanted = arrow_schema(schema, hidden=False)
    # Shifted against each other, so that pairs differ.
    columns = [
        pa.array(VALUES[t][i:] + VALUES[t][:i], f.type)
        for i, (t, f) in enumerate(zip(types, wanted, strict=True))
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


@pytest.mark.parametrize(
    "types", [*((t,) for t in VALUES), ("STRING", "INT", "DOUBLE"), ("BIGINT", "STRING")]
)
def test_as_spark(spark, types):
    rows = table(types)
    frame = spark.createDataFrame(rows)
    keys = rows.column_names
    common = [f"CAST({k} AS DOUBLE)" if t in WIDE else k for k, t in zip(keys, types, strict=True)]
    found = frame.selectExpr(
        f"pmod(hash({', '.join(keys)}), 7) AS one", f"pmod(hash(xxhash64({', '.join(common)})), 7) AS common"
    ).toArrow()
    assert partitions_by_hash(rows, keys, 7).tolist() == found.column("one").to_pylist()
    assert partitions_of_common(rows, keys, 7).tolist() == found.column("common").to_pylist()


def test_equal_numbers_of_any_width_meet():
    narrow, wide = (pa.table({"k": pa.array([1, 2, 3, None], t)}) for t in (pa.int32(), pa.float64()))
    assert partitions_of_common(narrow, ["k"], 97).tolist() == partitions_of_common(wide, ["k"], 97).tolist()
