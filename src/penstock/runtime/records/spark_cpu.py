"""The CPU of Spark and this process, where both are on one Linux machine.

Spark's own task metrics know the CPU of its threads, but not that of the Python workers, which decode and run
stages. They also come late and cost a dozen calls into the JVM for each train. The clocks of the processes
know all of it and cost microseconds. On a cluster the work is elsewhere, and the CPU of trains is unknown.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.engine.contract.train_cpu import TrainCpu
from penstock.process.process_cpu import ProcessTreeCpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def train_cpu(spark: SparkSession) -> TrainCpu | None:
    """What measures the CPU of trains in this session; None if it runs elsewhere."""
    context = spark.sparkContext
    if not ProcessTreeCpu.possible() or not str(context.master).startswith("local"):
        return None
    assert context._jvm is not None
    jvm = int(context._jvm.java.lang.ProcessHandle.current().pid())
    return TrainCpu(ProcessTreeCpu(jvm, beside=os.getpid()).seconds)
