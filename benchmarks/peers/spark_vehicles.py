"""Linear Road as one would first write it in PySpark: transformWithState keyed by vehicle.

    python -m benchmarks.peers.spark_vehicles --input DIR|FILE --out answers.csv [--history DIR]
    python -m benchmarks.peers.spark_vehicles --follow DIR --out answers.csv [--history DIR]

The first form goes as fast as it can; the second reads what `penstock lr drive --to DIR` delivers.

Idea: the CSV files of each second are a file stream; Spark keeps for each vehicle its reports of the last 30
s (RocksDB), and says of every report whether it begins a trip, enters a segment, or is the fourth in the same
place. foreachBatch brings these events to the driver, where segments, tolls and accounts live (`desk`). Rows
that break the format are sieved out beforehand, and of a crash only the vehicles' state would survive: the
comparison is kind to it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.common.facts import ROOT
from benchmarks.peers.desk import Desk
from benchmarks.peers.feed import FIELDS, NAMES, Answers, Feed, cpu_of_tree, feed_of, options, report, table
from benchmarks.peers.history_sql import History
from benchmarks.peers.vehicle import EVENTS, Vehicle

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SECONDS_A_BATCH = 10
"""At maximum speed a micro-batch takes so many seconds of input; in real time it takes what is there."""


def session() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Workers unpickle the processor by name.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").appName("vehicles")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Pipeline:
    """The query from a directory of files to the answers."""

    def __init__(self, spark: Any, directory: Path, desk: Desk, answers: Answers | None, feed: Feed) -> None:
        self.desk, self.answers, self.feed, self.last = desk, answers, feed, -1
        self.scratch = tempfile.mkdtemp(prefix="peer-")
        schema = ", ".join(f"{name} INT" for name in NAMES)
        reader = spark.readStream.schema(schema).option("pathGlobFilter", "t*.csv")
        if not feed.follow:
            reader = reader.option("maxFilesPerTrigger", SECONDS_A_BATCH)
        events = (
            reader.csv(str(directory)).groupBy("vid").transformWithState(Vehicle(), EVENTS, "Append", "None")
        )
        self.query = (
            events.writeStream.foreachBatch(self._batch).option("checkpointLocation", self.scratch).start()
        )

    def _batch(self, events: Any, _number: int) -> None:
        rows = events.toPandas().sort_values(["time", "type"], kind="stable")
        answers = self.desk.answer(rows.itertuples(index=False))
        if self.answers is not None:
            for kind, names in FIELDS.items():
                self.answers.write(kind, table(names, answers[kind]))
            self.answers.flush()
        self.feed.rows += len(rows)
        self.last = max(self.last, int(rows["time"].max()) if len(rows) else -1)


def stage(batches: Iterator[np.ndarray], directory: Path) -> int:
    """Write accepted rows as the files a driver would deliver, oldest first; returns the last second."""
    last = -1
    for rows in batches:
        for second in np.unique(rows[:, 1]).tolist():
            file = directory / f"t{second:06d}-g000.csv"
            # Batches are cut by half minutes, never inside a second.
            np.savetxt(file, rows[rows[:, 1] == second], fmt="%d", delimiter=",")
            os.utime(file, (1e9 + second, 1e9 + second))
            last = second
    return last


def warm_up(spark: Any) -> None:
    """A few hundred made-up rows, so that the JVM has compiled what it will and Python workers are there."""
    with tempfile.TemporaryDirectory() as directory:
        rows = [
            np.array([[0, t, v, 50, 0, 1, 0, 0, 100 + t, *([-1] * 6)] for v in range(20)]) for t in range(40)
        ]
        stage(iter(rows), Path(directory))
        feed = Feed(Path(directory), follow=False)
        pipeline = Pipeline(spark, Path(directory), Desk(History(None)), None, feed)
        pipeline.query.processAllAvailable()
        pipeline.query.stop()


def follow(pipeline: Pipeline, feed: Feed) -> None:
    """Until the driver is through and the last second it brought is answered."""
    while pipeline.query.isActive:
        if feed._is_over():
            pipeline.query.processAllAvailable()
            pipeline.query.stop()
            return
        time.sleep(0.5)
    raise SystemExit(f"the query failed: {pipeline.query.exception()}")


def mark_first_row(feed: Feed) -> None:
    """What comes before the first row is no cost of answering."""
    while feed.follow and not any(feed.source.glob("t*.csv")):
        time.sleep(0.05)
    feed.first_wall, feed.first_cpu = time.perf_counter(), cpu_of_tree()


def main() -> None:
    chosen = options(__doc__)
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise SystemExit(
            "transformWithState in Python needs the package protobuf: pip install penstock[bench]"
        )
    feed = feed_of(chosen)
    spark = session()
    warm_up(spark)
    with chosen.out.open("wb") as out, tempfile.TemporaryDirectory() as staged:
        directory = feed.source
        if not feed.follow:
            directory = Path(staged)
            stage(feed.batches(), directory)
            feed.rows = 0
        answers = Answers(out, feed)
        desk = Desk(History(chosen.history))
        watch = threading.Thread(target=mark_first_row, args=(feed,), daemon=True)
        watch.start()
        pipeline = Pipeline(spark, directory, desk, answers, feed)
        if chosen.ready:
            chosen.ready.write_text("ready\n", encoding="utf-8")
        if feed.follow:
            follow(pipeline, feed)
        else:
            pipeline.query.processAllAvailable()
            pipeline.query.stop()
        watch.join()
    report(chosen, feed, answers.rows)
    spark.stop()


if __name__ == "__main__":
    main()
