"""A standalone cluster on loopback: a master and two workers. A worker that a test kills can be replaced."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from runtime.kills.expectation import kill_family


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening(port: int, seconds: float = 90.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False


class Cluster:
    """Use it as a context: leaving it kills every daemon that it started."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._start("master", "master.Master", "--port", str(self.port))
        assert listening(self.port), (self.folder / "master.txt").read_text()[-2000:]
        for _ in range(2):
            self.add_worker()
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self.daemons:
            kill_family(daemon.pid)

    def add_worker(self) -> None:
        """One more worker with one core; worker-1, worker-2 and so on in the order of their start."""
        name = f"worker-{sum(d not in self.daemons[:1] for d in self.daemons) + 1}"
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name)]
        self.workers.append(self._start(name, "worker.Worker", *size, self.url))

    def kill_worker(self) -> None:
        """Kill the newest worker, with its executor and that one's Python processes."""
        kill_family(self.workers.pop().pid)

    def worked(self, number: int) -> bool:
        """Whether this worker was given an executor."""
        return any((self.folder / f"worker-{number}").glob("app-*/*"))

    def _start(self, log: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """One of Spark's own daemons, from the Python package's files, in a session of its own."""
        import pyspark

        home = Path(pyspark.__file__).parent
        own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        command += ["--host", "127.0.0.1", "--webui-port", str(free_port()), *arguments]
        with (self.folder / f"{log}.txt").open("wb") as out:
            daemon = subprocess.Popen(
                command, env={**os.environ, **own}, stdout=out, stderr=out, start_new_session=True
            )
        self.daemons.append(daemon)
        return daemon
