"""Spark's micro-batches as ticks: each is there at once and waits, inside foreachBatch, for the next ticket.

A source of our own in Python would cost three more processes a query and two round trips a train; this one is
Spark's own (`rate-micro-batch`), needs nothing, and says nothing: what a train reads stands in its ticket.
Which micro-batch is which train is a plain difference, found anew at each start from Spark's logs and ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.store.durable import read_record, write_record


def ticks(spark: SparkSession) -> Any:
    """A stream that always has one more micro-batch to offer."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    return reader.load()


def first_train(place: Path, last: int, *, committed: bool) -> tuple[int, int]:
    """The train that Spark's next micro-batch is for, and the difference between its number and the train's.

    `last`: the newest ticket, `committed`: whether its train has a commit record. A micro-batch that Spark
    has not committed is asked for again: it was waiting for a ticket, or its train may not be published yet.
    """
    batch = _next_batch(place)
    known = place.with_name("ticks.json")
    if batch and known.exists():
        # told to stop, Spark may have committed a micro-batch that never got a ticket: hence not more than
        # the next
        train = min(batch - int(read_record(known)["difference"]), last + 1)
    else:
        train = last + 1 if committed else last
    write_record(known, {"difference": batch - train}, sync=False)
    return train, batch - train


def _next_batch(place: Path) -> int:
    last = max(_numbers(place / "offsets"), default=-1)
    return last + 1 if last in _numbers(place / "commits") else max(last, 0)


def _numbers(folder: Path) -> set[int]:
    return {int(p.name) for p in folder.iterdir() if p.name.isdigit()} if folder.exists() else set()
