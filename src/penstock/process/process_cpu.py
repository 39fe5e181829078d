"""The CPU time of processes and all that they started, to the nanosecond (Linux).

Every process has a clock of its CPU time that others may read: one system call, a microsecond. `/proc` has
the same figure, but in steps of 10 ms, which is as long as a short train.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

_LOOK_FOR_CHILDREN = 5.0  # seconds between two looks at the threads of a process with many
_MANY_THREADS = 8


def cpu_of(pid: int) -> float:
    """CPU-seconds that a process has used, all its threads together. Raises OSError if it is gone."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED, see clock_getcpuclockid(3)


class ProcessTreeCpu:
    """CPU-seconds of a process and its descendants, since it was made; never goes back.

    `beside`: another process, which counts without its descendants.
    """

    def __init__(self, root: int, beside: int | None = None) -> None:
        self._root, self._beside = root, beside
        self._known: dict[int, float] = {}
        self._children: dict[int, tuple[float, list[int]]] = {}
        self._sum = 0.0
        self.seconds()
        self._sum = 0.0

    @staticmethod
    def possible() -> bool:
        """Whether this system has such clocks."""
        return sys.platform == "linux"

    def seconds(self) -> float:
        """The sum so far. What a process used between the last look and its end is not in it."""
        now: dict[int, float] = {}
        waiting = [self._root]
        while waiting:
            pid = waiting.pop()
            with suppress(OSError):
                now[pid] = cpu_of(pid)
                waiting += self._children_of(pid)
        if self._beside is not None:
            now[self._beside] = cpu_of(self._beside)
        self._sum += sum(max(0.0, used - self._known.get(pid, 0.0)) for pid, used in now.items())
        self._known = now
        return self._sum

    def _children_of(self, pid: int) -> list[int]:
        """The children that any thread of a process has started.

        A JVM has a hundred threads and hardly ever a new child, so it is asked less often.
        """
        asked, known = self._children.get(pid, (0.0, []))
        if time.monotonic() < asked:
            return known
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children: list[int] = []
        for thread in threads:
            with suppress(OSError):  # a thread that has just ended
                children += map(int, (thread / "children").read_text().split())
        pause = _LOOK_FOR_CHILDREN if len(threads) > _MANY_THREADS and children else 0.0
        self._children[pid] = time.monotonic() + pause, children
        return children
