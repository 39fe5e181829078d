"""Spark's micro-batches as ticks: each starts at once and waits in foreachBatch for the next ticket.

A Python source of our own would cost three more processes a query and two round trips a train. Spark's own
`rate-micro-batch` needs none of that. It carries no data, because the ticket says what a train reads. The
numbers of micro-batches and trains differ by a constant, which each start finds from Spark's logs and ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.store.durable import read_record, write_record


def ticks(spark: SparkSession) -> Any:
    """A stream that always offers one more micro-batch."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    return reader.load()


def first_train(place: Path, last: int, *, committed: bool) -> tuple[int, int]:
    """The train of Spark's next micro-batch, and the difference between the two numbers.

    `last`: the newest ticket. `committed`: whether its train has a commit record. Spark asks again for a
    micro-batch that it has not committed: it was waiting for a ticket, or its train may not be published yet.
    """
    batch = _next_batch(place)
    known = place.with_name("ticks.json")
    if batch and known.exists():
        # When told to stop, Spark may have committed a micro-batch that never got a ticket. So go no further
        # than the next train.
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
