"""JVM and Python workers of a local session talk over socket files, in a folder that only we can open.

Over loopback each job waits for 40 ms: the kernel delays an acknowledgement that the JVM waits for.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.store.durable import locked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENABLED, FOLDER = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
DAEMON = "spark.python.daemon.module"
UNSET = {ENABLED: "", FOLDER: "", DAEMON: ""}
_PREFIX = "penstock-sockets-"
_OWNER = "owner"
_OURS = ExitStack()  # locks that stay until this process ends
_LONGEST = 60 - len(f"/{_PREFIX}12345678")
"""Bytes of the path of the folder around ours: the kernel takes up to 107, and Spark's names take 43."""


def socket_files() -> dict[str, str]:
    """Settings with a new folder; none where there are no such files, or every path to them is too long."""
    around = [folder for folder in (tempfile.gettempdir(), "/tmp") if _fits(folder)]  # noqa: S108 - see mkdtemp
    if not hasattr(socket, "AF_UNIX") or not around:
        return {}
    delete_orphans(Path(around[0]))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=around[0]))
    # Locked before it has its name: a start beside this one must not take the folder for an orphan.
    _OURS.enter_context(locked(folder / "new", wait=False))
    (folder / "new").rename(folder / _OWNER)
    return {ENABLED: "true", FOLDER: str(folder), DAEMON: "penstock.engine.spark.pyspark.daemon"}


def delete_orphans(around: Path) -> None:
    """Delete the folders of processes that were killed before their JVM could do it."""
    for owner in around.glob(f"{_PREFIX}*/{_OWNER}"):
        with suppress(OSError):  # of another user, or deleted by another process
            if owner.parent.lstat().st_uid != os.getuid():
                continue
            with locked(owner, wait=False) as orphaned:
                if orphaned:
                    shutil.rmtree(owner.parent)


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
