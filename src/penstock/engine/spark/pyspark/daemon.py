"""PySpark's daemon, whose workers end without a trace when their JVM has let them go.

A worker that is not needed any more tries to tell the JVM how it ended. Over a port the kernel takes that;
over a socket file it fails, and PySpark prints the trace, every time that workers were idle for a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import daemon


def ends_quietly(serve: Callable[..., int]) -> Callable[..., int]:
    """The same, but a JVM that is gone is no error of the worker."""

    def served(*given: Any) -> int:
        try:
            return serve(*given)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return served


if __name__ == "__main__":
    daemon.worker = ends_quietly(daemon.worker)
    daemon.manager()
