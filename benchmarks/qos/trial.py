"""One run of one contender: the runtime here, driver and watcher as processes beside it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.common import facts
from benchmarks.common.process_tree import DiskReads, cpu_seconds, disk_reads, memory_mb
from benchmarks.qos.processes.watcher import files_in
from benchmarks.qos.traffic import PERIOD, arrivals_in
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions

MakeNetwork = Callable[[Path, Path], ps.Network]
"""A network over a folder of input and a folder of outputs."""
_MEMORY_EVERY = 5.0
_DECISIONS = 40  # that a result tells


@dataclass(frozen=True)
class Observed:
    """What was seen of a run, from outside; `events`: (time, valves by place) as the runtime noted them.

    `cpu` and `memory`: (time, CPU-seconds so far) and (time, MB) of the whole process tree. `from_disk`: what
    its processes read from the disk, and not from the page cache.
    """

    folder: Path
    arrivals: list[float]
    seen: list[tuple[str, str, float]]
    deadline: float
    load: float
    cpu: list[tuple[float, float]] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    events: list[tuple[float, str, Mapping[str, float]]] = field(default_factory=list)
    control_failure: str | None = None
    decisions: list[str] = field(default_factory=list)
    from_disk: DiskReads = field(default_factory=DiskReads)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def cpu_between(self, begin: float, end: float) -> float:
        """CPU-seconds in a stretch, in seconds since the first file.

        Sums what each sample added: a process that has ended takes what it used out of the tree.
        """
        start = self.arrivals[0]
        inside = [used for at, used in self.cpu if begin <= at - start <= end]
        if len(inside) < 2:
            return float("nan")
        return sum(max(0.0, after - before) for before, after in pairwise(inside))


def run_trial(
    spark: Any,
    folder: Path,
    prepared: Path,
    make: MakeNetwork,
    control: Any,
    *,
    patience: float,
    period: float = PERIOD,
) -> Observed:
    """Drive the prepared input through the network, a file every `period` seconds.

    What is not there `patience` seconds after the last one is lost.
    """
    into, out = folder / "in", folder / "out"
    into.mkdir(parents=True)
    out.mkdir()
    net = make(into, out)
    for name in net.outputs:
        (out / name).mkdir()
    cpu: list[tuple[float, float]] = []
    memory: list[tuple[float, float]] = []
    before = disk_reads()
    reads: dict[int, DiskReads] = {}
    with ps.Runtime(net, spark, folder / "checkpoint", control=control) as running:
        with beside("watcher", out, folder / "seen") as watcher:
            with beside("driver", prepared, into, folder / "given", period) as driver:
                _sample_until(running, lambda: driver.poll() is not None, cpu, memory, reads)
            load, deadline = facts.load(), time.time() + patience
            _sample_until(running, lambda: time.time() > deadline, cpu, memory, reads)
            assert watcher.poll() is None, "the watcher has died"
        failure = getattr(control, "failure", None)
    return Observed(
        folder=folder,
        arrivals=arrivals_in(folder / "given"),
        seen=files_in(folder / "seen"),
        deadline=deadline,
        load=load,
        cpu=cpu,
        memory=memory,
        events=valve_events(folder / "checkpoint"),
        control_failure=None if failure is None else str(failure),
        decisions=decisions_in(folder / "checkpoint"),
        from_disk=_added(before, reads),
    )


@contextlib.contextmanager
def beside(name: str, *words: object) -> Iterator[subprocess.Popen[bytes]]:
    """The driver or the watcher as a process; it ends when its input is closed."""
    command = [sys.executable, "-m", f"benchmarks.qos.processes.{name}", *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=facts.ROOT, env=os.environ) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)
            if process.returncode:
                raise RuntimeError(f"the {name} ended with {process.returncode}")


def _sample_until(
    running: Any,
    over: Any,
    cpu: list[tuple[float, float]],
    memory: list[tuple[float, float]],
    reads: dict[int, DiskReads],
) -> None:
    while not over():
        running.check()
        now = time.time()
        cpu.append((now, cpu_seconds()))
        if not memory or now - memory[-1][0] >= _MEMORY_EVERY:
            memory.append((now, sum(memory_mb().values())))
            reads.update(disk_reads())
        time.sleep(0.5)


def _added(before: Mapping[int, DiskReads], after: Mapping[int, DiskReads]) -> DiskReads:
    """What processes have read since; `after` keeps the last look at one that has ended."""
    nothing = DiskReads()
    return DiskReads(
        sum(now.major_faults - before.get(pid, nothing).major_faults for pid, now in after.items()),
        sum(now.bytes - before.get(pid, nothing).bytes for pid, now in after.items()),
    )


def valve_events(checkpoint: Path) -> list[tuple[float, str, Mapping[str, float]]]:
    """(time, sub-network, share by place) whenever valves were set, oldest first."""
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        events = catalog.events("valves", last=100_000)
    finally:
        catalog.close()
    settings = [
        (each.time, each.subject, {valve["at"]: valve["share"] for valve in each.detail["valves"]})
        for each in events
    ]
    return sorted(settings, key=lambda event: event[0])


def decisions_in(checkpoint: Path) -> list[str]:
    """The last decisions of control, as sentences, oldest first."""
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        last = Decisions(catalog).last(_DECISIONS)
    finally:
        catalog.close()
    return [f"{each.time:.1f} {each.sentence}" for each in sorted(last, key=lambda each: each.time)]


def exact_run(spark: Any, folder: Path, prepared: Path, make: MakeNetwork) -> Path:
    """All answers to the prepared input, from a run over it to its end; where they are."""
    out = folder / "out"
    net = make(prepared, out)
    for name in net.outputs:
        (out / name).mkdir(parents=True)
    with ps.Runtime(net, spark, folder / "checkpoint", once=True, close=True) as running:
        running.wait()
    return out
