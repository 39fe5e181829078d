"""The ways of doing Linear Road that are compared, what each is given, and how its answers are judged."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.common.process_tree import kit_command, run_child, tree


@dataclass(frozen=True)
class Setting:
    """Where everything lies: room for answers, the rows cut out of three hours, and their history."""

    scratch: Path
    source: Path
    history: Path
    persist: bool = False
    """System X keeps its tables in a file."""


@dataclass(frozen=True)
class Cut:
    """How much traffic is generated, and how many of its last seconds are used."""

    xways: float
    minutes: int
    seconds: int
    days: int
    seed: int


class PeerError(RuntimeError):
    """A peer, or a tool of the kit, ended with an error."""


def kit(*words: object, **more: Any) -> None:
    """Run a command of the kit."""
    ended = subprocess.run(kit_command(*words), check=False, stderr=subprocess.PIPE, **more)
    if ended.returncode:
        raise PeerError(f"lr {words[0]} ended with {ended.returncode}: {ended.stderr.decode()[-500:]}")


def prepare(scratch: Path, cut: Cut) -> Setting:
    """Generate the traffic, cut out its last seconds as slices, and make a history that all copies share."""
    traffic, slices, history = (scratch / name for name in ("traffic", "slices", "history"))
    size = ["--xways", cut.xways, "--minutes", cut.minutes, "--seed", cut.seed]
    kit("generate", *size, "--format", "parquet", "--out", traffic)
    kit("drive", "--input", traffic, "--from", cut.minutes * 60 - cut.seconds, "--prepare", slices)
    kit("history", "--input", traffic, "--days", cut.days, "--copies", 1000, "--out", history)
    return Setting(scratch, slices, history)


def flat(setting: Setting, length: float | None) -> Path:
    """The rows of a cut as one flat file, for so many expressways."""
    file = setting.scratch / f"rows-{length or 'one'}.dat"
    copies = ["--xways", length] if length else []
    with file.open("wb") as out:
        kit("drive", "--input", setting.source, "--speed", "max", "--to", "-", *copies, stdout=out)
    return file


def peer_command(name: str, *words: object) -> list[str]:
    """A script of this folder as a command."""
    module = f"benchmarks.peers.{name.replace('-', '_')}"
    return [sys.executable, "-m", module, *map(str, words)]


def python_peer(name: str) -> Callable[[Setting, Path, Path], dict[str, Any]]:
    """A peer that is a script of this folder and reports its own cost."""

    def run(setting: Setting, rows: Path, out: Path) -> dict[str, Any]:
        cost = out.with_suffix(".json")
        words = ["--input", rows, "--history", setting.history, "--out", out, "--json", cost]
        ended = subprocess.run(peer_command(name, *words), check=False, stderr=subprocess.PIPE)
        if ended.returncode:
            raise PeerError(f"{name} ended with {ended.returncode}: {ended.stderr.decode()[-500:]}")
        return dict(json.loads(cost.read_text(encoding="utf-8")))

    return run


def oracle(setting: Setting, rows: Path, out: Path) -> dict[str, Any]:
    """The validator's own answers. It is one batch, so all of its work comes after the first row."""
    command = kit_command("validate", "--input", rows, "--history", setting.history, "--expected", out)
    used = run_child(command)
    if used.exit_code:
        raise PeerError(f"the oracle ended with {used.exit_code}: {used.errors}")
    return {"cpu_s": used.cpu_s, "cpu_s_after_start": used.cpu_s, "wall_s": used.wall_s}


def cpu_by_process(pid: int) -> dict[int, float]:
    """Processor seconds so far of a process and of each that it has started."""
    seconds: dict[int, float] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in tree(pid):
            used = process.cpu_times()
            seconds[process.pid] = used.user + used.system
    return seconds


def penstock(setting: Setting, rows: Path, out: Path) -> dict[str, Any]:
    """Penstock itself, state persisted, at maximum speed."""
    work, began = setting.scratch / f"penstock-run-{time.time_ns()}", time.perf_counter()
    words = ["--input", rows, "--history", setting.history, "--max-speed", "--quiet", "--out", work]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(kit_command("run", *words), stdout=quiet, stderr=quiet)
    cpu: dict[int, float] = {}
    while process.poll() is None:
        # Nobody waits for the JVM, so the kernel does not add its time to its parent. Keep the last figure of
        # each process.
        cpu |= cpu_by_process(process.pid)
        time.sleep(0.2)
    if process.returncode:
        raise PeerError(f"lr run ended with {process.returncode}")
    record = json.loads((work / "run.json").read_text(encoding="utf-8"))
    if not record["cost"]:
        raise PeerError("lr run ended before its cost could be sampled; take more --seconds")
    (work / "answers.csv").replace(out)
    return {
        "cpu_s": sum(cpu.values()),
        "cpu_s_after_start": record["cost"]["cpu_s"],
        "wall_s": record["cost"]["wall_s"],
        "wall_s_in_all": time.perf_counter() - began,
    }


WAYS: dict[str, Callable[[Setting, Path, Path], dict[str, Any]]] = {
    "kernel": python_peer("kernel"),
    "oracle": oracle,
    "penstock": penstock,
    "system-x": python_peer("system-x"),
    "spark-vehicles": python_peer("spark-vehicles"),
}


def is_right(setting: Setting, rows: Path, answers: Path) -> bool:
    """Whether every answer holds, response times aside."""
    words = ["--input", rows, "--history", setting.history, "--answers", answers, "--no-response-times"]
    ended = subprocess.run(kit_command("validate", *words), check=False, stdout=subprocess.PIPE)
    if ended.returncode:
        print(ended.stdout.decode()[:3000])
    return ended.returncode == 0
