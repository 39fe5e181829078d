"""Processor seconds and memory of a process tree: driver, JVM and Python workers together."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil


def tree(pid: int | None = None) -> list[psutil.Process]:
    """A process (this one) and all that it has started."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu_seconds(pid: int | None = None) -> float:
    """User and system seconds of the tree so far, ended children included once they were waited for."""
    total = 0.0
    for process in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system + used.children_user + used.children_system
    return total


def memory_mb(pid: int | None = None, exclude: int | None = None) -> dict[str, float]:
    """Resident memory of the driver (this Python), the JVM and the workers; shared pages count once (PSS)."""
    by_role = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for i, process in enumerate(p for p in tree(pid) if p.pid != exclude):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            role = "driver" if i == 0 else "jvm" if "java" in process.name() else "workers"
            used = process.memory_full_info()
            by_role[role] += getattr(used, "pss", used.rss) / 1e6
    return by_role


@dataclass(frozen=True)
class DiskReads:
    """What a process had to get from the disk so far: pages of its memory, and bytes of files."""

    major_faults: int = 0
    bytes: int = 0


def disk_reads(pid: int | None = None) -> dict[int, DiskReads]:
    """By process of the tree. What the page cache had is not counted."""
    reads = {}
    for process in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
            # After the name, which may hold anything: state, ppid, ..., and majflt as the tenth.
            status = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
            faults = int(status.rpartition(")")[2].split()[9])
            reads[process.pid] = DiskReads(faults, process.io_counters().read_bytes)
    return reads


def worker_count(pid: int | None = None, exclude: int | None = None) -> int:
    """How many Python processes there are beside the driver: Spark's daemons, and the workers they fork."""
    others = [p for p in tree(pid) if p.pid != exclude][1:]
    count = 0
    for process in others:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            count += "java" not in process.name()
    return count


@dataclass
class Spent:
    """What a stretch of work took, in seconds."""

    wall: float = 0.0
    cpu: float = 0.0


@contextlib.contextmanager
def spent() -> Iterator[Spent]:
    """Wall and processor seconds of the body."""
    took, wall, cpu = Spent(), time.perf_counter(), cpu_seconds()
    yield took
    took.wall, took.cpu = time.perf_counter() - wall, cpu_seconds() - cpu


@dataclass(frozen=True)
class ChildUsage:
    """How one child process ended, and what it alone used."""

    exit_code: int
    wall_s: float
    cpu_s: float
    memory_mb: float
    errors: str


def run_child(command: Sequence[object], *, one_core: bool = False) -> ChildUsage:
    """Run a command to its end. `one_core` pins it to one core."""
    began, cores = time.perf_counter(), os.sched_getaffinity(0)
    with tempfile.TemporaryFile() as errors:
        # The child inherits our cores, so we narrow them for its start.
        os.sched_setaffinity(0, {min(cores)} if one_core else cores)
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=errors)
        os.sched_setaffinity(0, cores)
        # wait4 gives the figures of this child alone, not the largest of all children so far.
        _, status, used = os.wait4(process.pid, 0)
        wall, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace")[-500:]
    return ChildUsage(
        process.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said.strip()
    )


def kit_command(*words: object) -> list[str]:
    """`penstock lr ...` as a command of this Python."""
    return [sys.executable, "-m", "penstock.cli.lr.commands", *map(str, words)]
