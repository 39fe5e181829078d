"""The CPU of each train, by a meter of everything that trains use.

A meter shows the CPU-seconds of all processes together: Spark, its Python workers, this one. While one train
runs, what the meter shows is that train's: reading and decoding, native boxes, stages, Spark's own work. What
several trains use at the same time is divided evenly between them, and they are marked as not alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuUsed:
    """CPU-seconds of one train. `alone`: no other train ran meanwhile."""

    seconds: float
    alone: bool = True


class TrainCpu:
    """Divides what a meter shows between the trains that run; all threads may use it.

    >>> shown = iter([0.0, 1.0, 3.0, 4.0])
    >>> cpu = TrainCpu(lambda: next(shown))
    >>> cpu.begin("tolls"); cpu.begin("alerts")
    >>> cpu.end("tolls"), cpu.end("alerts")
    (CpuUsed(seconds=2.0, alone=False), CpuUsed(seconds=2.0, alone=False))
    """

    def __init__(self, meter: Callable[[], float]) -> None:
        self._meter, self._lock = meter, threading.Lock()
        self._running: dict[str, CpuUsed] = {}
        self._shown = 0.0

    def begin(self, subnetwork: str) -> None:
        """A train starts."""
        with self._lock:
            self._divide()
            alone = not self._running
            self._running = {name: CpuUsed(used.seconds, False) for name, used in self._running.items()}
            self._running[subnetwork] = CpuUsed(0.0, alone)

    def end(self, subnetwork: str) -> CpuUsed | None:
        """A train has ended: what it used; None if it never began."""
        with self._lock:
            self._divide()
            return self._running.pop(subnetwork, None)

    def _divide(self) -> None:
        shown = self._meter()
        used, self._shown = max(0.0, shown - self._shown), shown
        share = used / len(self._running) if self._running else 0.0
        self._running = {
            name: CpuUsed(mine.seconds + share, mine.alone) for name, mine in self._running.items()
        }
