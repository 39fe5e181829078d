"""The Spark session: the one we are given, or a local one made for trains."""

from __future__ import annotations

import os
import sys
from typing import Any

# Measured in docs/performance.md; each may be set otherwise by the user's own session.
SETTINGS = {
    # One JVM and its Python workers talk over loopback; a host name that does not resolve must not stop them.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # a train's plan is small and known; measuring it at run time costs more than it saves
    "spark.sql.adaptive.enabled": "false",
    # halves the floor of a micro-batch on a local file system
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # our own tickets close windows when no data comes
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.parquet.compression.codec": "snappy",
    # packed records are large and short-lived, which the default collector treats as old and works through concurrently
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    # as the tasks write them: UTC, to the microsecond; Spark's default is a form that readers take for local time
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def local_session(master: str | None = None, name: str = "penstock", **settings: str) -> Any:
    """A session for trains; under spark-submit, or where one runs already, that one.

    `settings` take precedence, with Spark's own names (dots as written).
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    cores = max(2, os.cpu_count() or 2)
    builder = SparkSession.builder.appName(name).master(master or os.environ.get("MASTER", f"local[{cores}]"))
    defaults = {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.memory": "2g",
        **SETTINGS,
        **settings,
    }
    for key, value in defaults.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
