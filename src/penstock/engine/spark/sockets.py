"""JVM and Python workers of a local session talk over socket files, in a folder that only we can open.

Over loopback each job waits for 40 ms: the kernel delays an acknowledgement that the JVM waits for.
"""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENABLED, FOLDER = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
UNSET = {ENABLED: "", FOLDER: ""}
_PREFIX = "penstock-sockets-"
_LONGEST = 60 - len(f"/{_PREFIX}12345678")
"""Bytes of the path of the folder around ours: the kernel takes up to 107, and Spark's names take 43."""


def socket_files() -> dict[str, str]:
    """Settings with a new folder; none where there are no such files, or every path to them is too long."""
    around = [folder for folder in (tempfile.gettempdir(), "/tmp") if _fits(folder)]  # noqa: S108 - see mkdtemp
    if not hasattr(socket, "AF_UNIX") or not around:
        return {}
    return {ENABLED: "true", FOLDER: tempfile.mkdtemp(prefix=_PREFIX, dir=around[0])}


def _fits(folder: str) -> bool:
    return len(os.fsencode(folder)) <= _LONGEST and os.access(folder, os.W_OK)


def own_by_jvm(spark: SparkSession) -> None:
    """Let the JVM delete the folder at its end: it also ends if we are killed."""
    folder = spark.sparkContext.getConf().get(FOLDER) or ""
    if Path(folder).name.startswith(_PREFIX):
        jvm: Any = spark.sparkContext._jvm
        jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(folder))


def collect_over_port(spark: SparkSession) -> None:
    """Let what jobs return come over a port: the JVM never forgets the name of a file that it came over."""
    settings = spark.sparkContext._jsc.sc().conf()
    if settings.get(ENABLED, "false") == "true":
        settings.set(ENABLED, "false")
        spark.sparkContext.emptyRDD().collect()  # the first collect decides it, for as long as the JVM lives
        settings.set(ENABLED, "true")
