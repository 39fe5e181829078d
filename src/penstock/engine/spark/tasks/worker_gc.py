"""Python workers that do not look through their whole memory after every task.

Spark's daemon calls gc.collect() after each task, which walks all objects of all imported modules: tens of
milliseconds, several times a train. What was there after the first tasks stays for ever anyway, so it is put
out of the collector's sight.
"""

from __future__ import annotations

import gc

_AT = (1, 8, 64)  # tasks after which the worker has grown by what it needs
_tasks = 0


def calm() -> None:
    """Call it at the end of a task."""
    global _tasks  # noqa: PLW0603 - one count for each worker process
    _tasks += 1
    if _tasks in _AT:
        gc.collect()
        gc.freeze()
