"""What a Python worker does for itself after a task.

Spark's daemon calls gc.collect() after each task. It walks all objects of all imported modules, which takes
tens of milliseconds, several times a train. What exists after the first tasks stays anyway, so we freeze it:
the collector then ignores it.
"""

from __future__ import annotations

import gc

_AT = (1, 8, 64)  # by these tasks the worker has loaded what it needs
_tasks = 0


def after_task() -> None:
    """Do what is to be done; call this at the end of a task."""
    global _tasks  # noqa: PLW0603 - one count for each worker process
    _tasks += 1
    if _tasks in _AT:
        gc.collect()
        gc.freeze()
