"""Parquet files by their exact paths: Spark takes some paths for patterns, and `a:b` for an address."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from penstock.connectors.paths import is_plain


def read_parquet(spark: SparkSession, schema: str, paths: Sequence[str]) -> DataFrame:
    """The rows of these very files, of which there is at least one."""
    paths = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - a relative `a:b/c` is no path to Spark
    if all(map(is_plain, paths)):
        return spark.read.schema(schema).parquet(*paths)
    # Without patterns Spark reads all paths once for each that looks like one, so it gets one at a time.
    exact = spark.read.option("__globPaths__", False).schema(schema)
    return reduce(DataFrame.union, [exact.parquet(path) for path in paths])
