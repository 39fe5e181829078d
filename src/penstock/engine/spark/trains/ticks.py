"""Spark's micro-batches as ticks: each starts at once and runs trains in foreachBatch for some seconds.

A micro-batch alone costs tens of milliseconds, most of it for Spark's log, so trains share one.

A Python source of our own would cost three more processes a query and two round trips a train. Spark's own
`rate-micro-batch` needs none of that. It carries no data, because the ticket says what a train reads. Spark's
log of ticks is of no use to us: each start of a query gets an empty folder for it. So nothing that a killed
start left there can stop a later one.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.store.durable import make_directory


def ticks(spark: SparkSession) -> DataFrame:
    """A stream that always offers one more micro-batch."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    return reader.load()


def fresh_ticks(folder: Path, epoch: int) -> Path:
    """A new folder for Spark's log of ticks. Those of earlier starts are deleted.

    That of the owner before stays for now: it may be suspended, and shall end by what its train log says.
    """
    for old in folder.glob("*"):
        number = old.name.partition("-")[0]
        if not number.isdigit() or int(number) != epoch - 1:
            shutil.rmtree(old, ignore_errors=True)
    fresh = folder / f"{epoch:06d}-{uuid.uuid4().hex[:8]}"
    make_directory(fresh)  # a session that is not ours may have another umask
    return fresh
