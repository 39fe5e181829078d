"""What every benchmark of the engine shares: the session, processor seconds and memory of the whole process tree, results.

A figure of one machine on one day says little; so results carry machine, versions, seed and load, and what is claimed
is a ratio within one run. Processor seconds are those of the driver, the JVM and all Python workers together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from penstock.linear_road.run.resource_use import machine, versions

RESULTS = Path(__file__).parent / "results"


def options(doc: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a minute or so, for `make bench`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-result", action="store_true", help="print only, write no JSON")
    return parser


def session(*, nice: int = 0, **settings: str) -> Any:
    """A Spark session with the engine's own settings, on two cores."""
    from penstock.engine.spark.session import local_session

    # workers import the benchmark's own functions
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    )
    defaults = {"spark.log.level": "ERROR"}
    return local_session("local[2]", "penstock-bench", nice=nice, **{**defaults, **settings})


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- the process tree


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
    """Resident memory by role: driver (this Python), JVM, workers. Shared pages of forked workers count once (PSS)."""
    found = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for i, process in enumerate(p for p in tree(pid) if p.pid != exclude):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            role = "driver" if i == 0 else "jvm" if "java" in process.name() else "workers"
            used = process.memory_full_info()
            found[role] += getattr(used, "pss", used.rss) / 1e6
    return found


@dataclass
class Spent:
    """What a stretch of work took."""

    wall: float = 0.0
    cpu: float = 0.0


@contextlib.contextmanager
def spent() -> Iterator[Spent]:
    """Wall and processor seconds of the body."""
    found, wall, cpu = Spent(), time.perf_counter(), cpu_seconds()
    yield found
    found.wall, found.cpu = time.perf_counter() - wall, cpu_seconds() - cpu


# -- figures


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return (
        ordered[min(len(ordered) - 1, max(0, int(-(-q * len(ordered) // 1)) - 1))]
        if ordered
        else float("nan")
    )


def show(title: str, rows: Sequence[dict[str, Any]], note: str = "") -> None:
    """A table of the figures; columns as in the first row."""
    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        table.add_column(name.replace("_", " "), justify="right" if _number(rows[0][name]) else "left")
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in rows[0]))
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(table)
    if note:
        console.print(note)


def _number(value: Any) -> bool:
    return value is None or isinstance(value, int | float)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def write_result(name: str, chosen: argparse.Namespace, config: dict[str, Any], figures: Any) -> Path | None:
    """A dated file that is never overwritten."""
    if chosen.no_result:
        return None
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now().astimezone()
    file = RESULTS / f"{now:%Y-%m-%d-%H%M%S}-{name}.json"
    result = {
        "benchmark": name,
        "date": now.isoformat(timespec="seconds"),
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "machine": machine(),
        "versions": {**versions(), "commit": _commit()},
        "seed": chosen.seed,
        "config": {"quick": chosen.quick, **config},
        "figures": figures,
    }
    with file.open("x", encoding="utf-8") as stream:
        json.dump(_rounded(result), stream, indent=2)
        stream.write("\n")
    Console().print(f"written: {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")
    return file


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value


def _commit() -> str:
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=RESULTS.parent,
    )
    return said.stdout.strip()


# -- feeding and watching a running network


class Feeder(threading.Thread):
    """Drops prepared files into a directory, `batch` of them every `period` seconds, each whole from the start."""

    def __init__(self, prepared: Sequence[Path], into: Path, period: float, batch: int = 1) -> None:
        super().__init__(name="feeder", daemon=True)
        self.prepared, self.into, self.period, self.batch = list(prepared), into, period, batch
        self.given: list[float] = []  # when each batch was there
        self._stopped = threading.Event()
        into.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        begun = time.time()
        for number in range(0, len(self.prepared), self.batch):
            if self._stopped.wait(max(0.0, begun + len(self.given) * self.period - time.time())):
                return
            for path in self.prepared[number : number + self.batch]:
                path.rename(self.into / path.name)
            self.given.append(time.time())

    def stop(self) -> None:
        """Give no more, and be done when this returns."""
        self._stopped.set()
        self.join()


class TrainWatch:
    """Notes every committed train of a sub-network: when it was ready, when it was done, what state it wrote."""

    def __init__(self, query: Any) -> None:
        self.seen: list[dict[str, Any]] = []
        self._listen, query.listen = query.listen, self._note

    def _note(self, done: Any) -> None:
        self.seen.append({
            "train": done.ticket.train, "rows": done.ticket.rows, "arrival": done.ticket.arrival, "started": done.started,
            "done": time.time(), "cpu": cpu_seconds(), "state_bytes": done.outcome.state_bytes,
        })  # fmt: skip
        if self._listen is not None:
            self._listen(done)

    def rows(self) -> int:
        return sum(train["rows"] for train in self.seen)
