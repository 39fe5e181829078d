"""Start the JVM under a session: with a suitable Java, without Spark's banner, at a lower priority if asked.

PENSTOCK_VERBOSE=1 leaves Spark's own logging unchanged.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from penstock.engine.spark.java import find_java

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JVM = Path(__file__).parent / "jvm"
_LOWEST = 19  # the lowest priority


def verbose() -> bool:
    """Whether the user wants to see Spark's own log."""
    return os.environ.get("PENSTOCK_VERBOSE", "") not in ("", "0")


def quiet(settings: dict[str, str]) -> dict[str, str]:
    """Add our log4j file to the settings, unless the user has one."""
    options = settings.get(JAVA_OPTIONS, "")
    if verbose() or "log4j" in options:
        return settings
    log4j = (_JVM / "log4j2.properties").as_uri()
    return {**settings, JAVA_OPTIONS: f"{options} -Dlog4j2.configurationFile={log4j}".strip()}


def quiet_python() -> None:
    """Keep PySpark and Py4J from printing the trace of each error that they also raise."""
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # If the JVM dies, Py4J prints the trace of whatever waited for it. Some of that goes to the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)
    # Likewise, the server for accumulators would print a trace of its own.
    AccumulatorTCPServer.handle_error = _ignore  # type: ignore[method-assign, assignment]  # on purpose
    AccumulatorUnixServer.handle_error = _ignore  # type: ignore[method-assign, assignment]  # on purpose


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _ignore(*_: object) -> None:
    """A request that failed because the other side is gone."""


def launch(settings: dict[str, str], environment: Mapping[str, str], nice: int = 0) -> None:
    """Start the JVM, unless this process has one, with the environment; the user's own values win."""
    from pyspark import SparkConf, SparkContext

    def start() -> None:
        if nice and sys.platform == "linux":
            ours = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(ours + nice, _LOWEST))
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))

    if "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:
        return
    # On Linux a priority belongs to a thread, and only root can raise it again. So a thread of its own lowers
    # it and then ends.
    variables = {**environment, **_local_address(settings)}
    with process_environment(variables), _java_home(), ThreadPoolExecutor(1, "launch-spark") as thread:
        thread.submit(start).result()


def _local_address(settings: Mapping[str, str]) -> dict[str, str]:
    """Bind a local Spark to this machine: it needs no host name, which may not resolve."""
    return {"SPARK_LOCAL_IP": "127.0.0.1"} if settings.get("spark.master", "").startswith("local") else {}


@contextmanager
def _java_home() -> Iterator[None]:
    """Point Spark to a Java; on POSIX through our own `java`, which suppresses a warning (jvm/bin/java)."""
    java = find_java()
    wrapped = os.access(_JVM / "bin/java", os.X_OK) and not (verbose() and java.has_vector_module)
    homes = {"PENSTOCK_JAVA_HOME": str(java.home), "JAVA_HOME": str(_JVM if wrapped else java.home)}
    before = {name: os.environ[name] for name in homes if name in os.environ}
    os.environ.update(homes)
    try:
        yield
    finally:
        for name in homes:
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def process_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes started inside; those that the user has set stay unchanged."""
    missing = variables.keys() - os.environ.keys()
    os.environ.update({name: variables[name] for name in missing})
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
