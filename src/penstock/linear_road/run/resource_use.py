"""What a run costs: processor, memory and backlog, sampled once a second by a thread of the run.

Idea: a figure covers the whole process tree (this process, the JVM, the Python workers, the driver), so the
tree is summed up. Children that have ended stay in the sum with their last figure. Sampling takes a few
milliseconds a second.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

import psutil

from penstock.linear_road.run.machine_state import machine_state
from penstock.linear_road.run.record import Cost, Machine, SampleFigures
from penstock.process.cores import usable_cores

PACKAGES: tuple[str, ...] = ("penstock", "pyspark", "pyarrow", "numpy", "numba", "pandas", "duckdb")
_MEMORY_EVERY = 30
"""Memory is measured with every so many samples: the kernel walks all pages for it."""


@dataclass(frozen=True)
class Sample:
    """The run at one moment.

    `t` is on its clock, totals count from its begin, `backlog` is in seconds of input not yet answered.
    """

    t: float
    wall: float
    cpu_s: float
    memory_mb: float
    rows_in: int
    rows_out: int
    backlog_s: float
    stolen_s: float | None = None
    major_faults: int | None = None
    dirty_mb: float | None = None

    def as_json(self) -> SampleFigures:
        return cast("SampleFigures", asdict(self))


@dataclass(frozen=True)
class RunCounts:
    """What a run reports about itself to a sampler."""

    t: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    backlog_s: float = 0.0


@dataclass
class ProcessTree:
    """Processor seconds and memory of this process and all its descendants."""

    _seen: dict[tuple[int, float], float] = field(default_factory=dict)

    def processes(self) -> list[psutil.Process]:
        root = psutil.Process()
        return [root, *root.children(recursive=True)]

    def cpu(self) -> float:
        """User and system seconds so far; an ended process counts with its last figure."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                used = process.cpu_times()
                # The system uses numbers of processes again; with the time of its start a process is unique.
                self._seen[process.pid, process.create_time()] = used.user + used.system
        return sum(self._seen.values())

    def memory_mb(self) -> float:
        """Resident memory; pages that processes share count once."""
        return sum(self._one(process) for process in self.processes()) / 1e6

    def _one(self, process: psutil.Process) -> float:
        with contextlib.suppress(psutil.Error):
            # A forked worker shares most pages with its daemon: the resident size would count them again.
            used = process.memory_full_info()
            return float(getattr(used, "pss", used.rss))
        return 0.0


@dataclass
class Sampler:
    """Takes a sample every `every` seconds until stopped."""

    look: Callable[[], RunCounts]
    every: float = 1.0
    samples: list[Sample] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Sampler:
        self._thread = threading.Thread(target=self._loop, name="sampler", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def _loop(self) -> None:
        tree, begun, memory = ProcessTree(), time.monotonic(), 0.0
        while not self._stop.wait(self.every):
            # Counting the shared pages takes some 20 ms for each gigabyte.
            if len(self.samples) % _MEMORY_EVERY == 0:
                memory = tree.memory_mb()
            now = self.look()
            self.samples.append(
                Sample(
                    round(now.t, 3),
                    round(time.monotonic() - begun, 3),
                    round(tree.cpu(), 2),
                    round(memory, 1),
                    now.rows_in,
                    now.rows_out,
                    round(now.backlog_s, 3),
                    *machine_state(),
                )
            )

    def between(self, begin: float, end: float) -> Cost:
        """The cost of a stretch of the clock: cores used, rates in and out, peak memory and backlog."""
        return _cost([sample for sample in self.samples if begin <= sample.t <= end])

    def whole(self) -> Cost:
        """The cost of everything sampled."""
        return _cost(self.samples)

    def as_json(self) -> list[SampleFigures]:
        return [sample.as_json() for sample in self.samples]


def _cost(chosen: list[Sample]) -> Cost:
    if len(chosen) < 2:
        return {}
    first, last = chosen[0], chosen[-1]
    # Differences, not totals: what Spark used to start up is no cost of this stretch.
    wall = last.wall - first.wall
    return {
        "wall_s": round(wall, 1),
        "cores": round((last.cpu_s - first.cpu_s) / wall, 3),
        "cpu_s": round(last.cpu_s - first.cpu_s, 1),
        "cpu_s_per_million": _per_million(first, last),
        "tuples_in_per_s": round((last.rows_in - first.rows_in) / wall, 1),
        "tuples_out_per_s": round((last.rows_out - first.rows_out) / wall, 1),
        "memory_mb": max(sample.memory_mb for sample in chosen),
        "backlog_s": max(sample.backlog_s for sample in chosen),
    }


def _per_million(first: Sample, last: Sample) -> float | None:
    rows = last.rows_in - first.rows_in
    return round((last.cpu_s - first.cpu_s) / rows * 1e6, 3) if rows else None


def machine() -> Machine:
    """The machine that the figures come from; `load`: how busy it was at that moment."""
    return {
        "cores": usable_cores(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Python, Java and the packages that matter."""
    by_name = {"python": platform.python_version(), "java": _java()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            by_name[package] = version(package)
    return by_name


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    with contextlib.suppress(OSError):
        command = [f"{home}/bin/java" if home else "java", "-version"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        return said.stderr.splitlines()[0] if said.stderr else ""
    return ""
