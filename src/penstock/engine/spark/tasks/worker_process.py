"""What a Python worker does for itself after a task.

Spark's daemon calls gc.collect() after each task. It walks all objects of all imported modules, which takes
tens of milliseconds, several times a train. What exists after the first tasks stays anyway, so we freeze it:
the collector then ignores it.

When the JVM has gone, a worker cannot tell it so any more. Spark's daemon prints the trace of that; nobody
needs it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

_AT = (1, 8, 64)  # by these tasks the worker has loaded what it needs
_tasks = 0


def after_task() -> None:
    """Do what is to be done; call this at the end of a task."""
    global _tasks  # noqa: PLW0603 - one count for each worker process
    _tasks += 1
    if _tasks in _AT:
        gc.collect()
        gc.freeze()
    if _tasks == 1:
        daemon = sys.modules["__main__"]
        if getattr(getattr(daemon, "__spec__", None), "name", "") == "pyspark.daemon":
            daemon.worker = ends_quietly(daemon.worker)  # type: ignore[attr-defined]  # Spark's loop calls it


def ends_quietly(serve: Callable[..., int]) -> Callable[..., int]:
    """The same, but a JVM that is gone is no error of the worker."""

    def served(*given: Any) -> int:
        try:
            return serve(*given)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return served
