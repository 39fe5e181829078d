"""kill -9 at any moment, and a restart: no query and no result is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runtime.streams import put
from standing.test_service import SLOW, rows, slow

ROOT = Path(__file__).parents[2]


class Worker:
    """The process, its commands and its end."""

    def __init__(self, folder: Path) -> None:
        script = Path(__file__).with_name("kill_worker.py")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
            start_new_session=True,
        )
        assert self.answer() == "ready"

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return json.loads(line[7:])
        raise AssertionError("the worker ended")

    def ask(self, line: str) -> Any:
        self.tell(line)
        return self.answer()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def pairs(found: list[list[int]]) -> list[tuple[int, int]]:
    return sorted((k, v) for k, v in found)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_query_and_no_result_is_lost(tmp_path: Path) -> None:
    put(tmp_path / "cars", "a", rows(0, 50))
    put(tmp_path / "tolls", "a", [(s, s % 5, s) for s in range(0, 40, 4)])
    worker = Worker(tmp_path)
    assert worker.ask("idle")
    handles = {mode: worker.ask(f"register {mode} {SLOW}") for mode in ("P", "C", "NoMat")}
    for mode, handle in handles.items():
        assert pairs(worker.ask(f"invoke {handle}")) == slow(49), mode
    put(tmp_path / "cars", "b", rows(50, 25))
    time.sleep(1.0)  # somewhere in the train, or between two
    worker.tell(f"register P {SLOW.replace('30', '20')}")
    worker.kill()
    worker = Worker(tmp_path)
    assert set(handles.values()) <= set(worker.ask("list"))
    assert worker.ask("idle")
    for mode, handle in handles.items():
        assert pairs(worker.ask(f"invoke {handle}")) == slow(74), mode
    put(tmp_path / "cars", "c", rows(75, 10))
    assert worker.ask("idle")
    for mode, handle in handles.items():
        assert pairs(worker.ask(f"invoke {handle}")) == slow(84), mode
    worker.kill()
