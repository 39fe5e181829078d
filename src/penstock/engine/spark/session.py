"""The Spark session: the one we are given, or a local one made for trains.

Everything that runs on Spark comes through here, so a missing PySpark is reported here.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.spark import sockets
from penstock.engine.spark.launch import launch, quiet, quiet_python, verbose
from penstock.engine.spark.master import cores, default_master, names_this_host
from penstock.model.errors import MissingPackageError
from penstock.process.cores import usable_cores
from penstock.store.durable import UMASK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if find_spec("pyspark") is None or find_spec("pandas") is None:
    raise MissingPackageError("Running on Spark needs PySpark: pip install 'penstock[spark]'")

# Measured in docs/performance.md. The user's own session may set each differently.
SETTINGS = {
    # One JVM and its Python workers talk over loopback. A host name that does not resolve must not stop them.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Spark keeps for its web page: at the default of a thousand each, it grows by tens of megabytes.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.session.timeZone": "UTC",
    # Texts in expressions are what they say: `${env:HOME}` is no variable, and a backslash escapes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # A train's plan is small and known. Measuring it at run time costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    # Halves the floor of a micro-batch on a local file system.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Our own tickets close windows when no data comes.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.parquet.compression.codec": "snappy",
    # Otherwise a train's shuffle files stay until the JVM happens to collect its plan: gigabytes, written to
    # disk for nothing.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # Packed records are large and short-lived. The default collector treats them as old and collects them
    # concurrently. With half the heap for young objects, they are gone before they need copying.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:NewRatio=1",
    # As the tasks write them: UTC, to the microsecond. Readers take Spark's default form for local time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark's file systems set modes themselves, whatever the umask of the process.
    "spark.hadoop.fs.permissions.umask-mode": f"{UMASK:03o}",
}

# For the JVM and its Python workers. Buffers of megabytes come and go with every train. By default each is
# returned to the kernel and faulted in again, page by page, which took a seventh of the processor
# (docs/performance/linear-road.md). So the allocator keeps them, in pages of 2 MB.
MEMORY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # Arrow's own pool returns what is free for 10 ms
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the most that glibc allows
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(16 << 20),
}
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


# Results depend on these. If the given session has other values, trains run in a second one with these.
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def local_session(
    master: str | None = None, name: str = "penstock", *, nice: int = 0, **settings: str
) -> SparkSession:
    """A session for trains, or the one that already runs.

    Under spark-submit, its options and the user's configuration win: only what they leave open is set.
    `settings` take precedence, with Spark's own names (dots as written). `nice` lowers the priority of Spark
    and its workers below our own, for a process whose clients wait.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    if not verbose():
        quiet_python()
    active = SparkSession.getActiveSession()  # of this thread
    if active is not None or one_runs():
        return active or SparkSession.builder.getOrCreate()
    defaults = {
        "spark.app.name": name,
        "spark.master": default_master(),
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.driver.memory": f"{heap_mb(_memory_mb())}m",
        **SETTINGS,
        **{f"spark.executorEnv.{name}": value for name, value in MEMORY.items()},
    }
    if _huge_pages():
        defaults["spark.driver.extraJavaOptions"] += " -XX:+UseTransparentHugePages"
    given = {**settings, **({"spark.master": master} if master else {})}
    left_open = _left_open(defaults)
    here = names_this_host({**left_open, **given}.get("spark.master", "given to spark-submit"))
    if here and _left_open(sockets.UNSET) == sockets.UNSET:
        left_open |= sockets.socket_files()
    chosen = quiet({**left_open, **given})
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    # Without the daemon: who looks for processes of that name must not find the JVM.
    launch({key: value for key, value in chosen.items() if key != sockets.DAEMON}, MEMORY, nice)
    spark = builder.getOrCreate()
    sockets.own_by_jvm(spark)
    sockets.collect_over_port(spark)
    if not verbose():
        spark.sparkContext.setLogLevel("FATAL")
    return spark


def heap_mb(machine: float) -> int:
    """The heap of a local session, tasks included: a quarter of the machine, within limits.

    >>> [heap_mb(gb * 1024) for gb in (2, 8, 24, 256)]
    [1024, 2048, 6144, 8192]
    """
    return int(min(max(machine / 4, 1024), 8192))


def _memory_mb() -> float:
    """The memory of this machine, or of the container around us."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        whole = min(whole, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return whole / (1 << 20)


def _huge_pages() -> bool:
    """Whether the kernel gives large pages on request; other JVMs do not know the option."""
    with suppress(OSError):
        return "[never]" not in _HUGE_PAGES.read_text()
    return False


def _left_open(defaults: dict[str, str]) -> dict[str, str]:
    """The settings that spark-submit, if it started us, has not been given."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return defaults
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # the JVM already runs and knows its settings
    told = SparkConf()
    return {key: value for key, value in defaults.items() if not told.contains(key)}


def is_local(spark: SparkSession) -> bool:
    """Whether all tasks run on this host."""
    return names_this_host(str(spark.sparkContext.master))


def cores_of(spark: SparkSession) -> int:
    """How many cores trains can use: no more than a local session has tasks at once."""
    master = str(spark.sparkContext.master)
    tasks = re.match(r"local\[(\d+)", master)
    at_once = 1 if master == "local" else int(tasks[1]) if tasks else inf
    return int(min(usable_cores(), at_once))


def runs_here(spark: SparkSession | None, master: str | None) -> bool:
    """The same of a run that may not have a session yet: with its own, or with that of `local_session`."""
    return is_local(spark) if spark is not None else names_this_host(master)


def one_runs() -> bool:
    """Whether Spark already runs in this process: then it is not ours to end."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def for_trains(spark: SparkSession) -> SparkSession:
    """The session, or one beside it if its settings would change a network's results."""
    differing = {k: value for k, value in MEANING.items() if str(spark.conf.get(k)).lower() != value.lower()}
    if not differing:
        return spark
    beside = spark.newSession()
    for key, value in {**_set_by_the_user(spark), **differing}.items():
        beside.conf.set(key, value)
    return beside


def _set_by_the_user(spark: SparkSession) -> dict[str, str]:
    """Settings that were changed since the session was made: a new session does not know them."""
    return {key: value for key, value in spark.conf.getAll.items() if spark.conf.isModifiable(key)}
