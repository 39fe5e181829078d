"""A standalone cluster on loopback: a master and two workers, one of which is killed in mid-run. The same rows."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from runtime.expectation import check, kill_family, recorded, start, write_input


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def spark_class(folder: Path, log: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """One of Spark's own daemons, from the Python package's files, in a session of its own."""
    import pyspark

    home = Path(pyspark.__file__).parent
    variables = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
    }
    with (folder / log).open("wb") as out:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        return subprocess.Popen(command, env=variables, stdout=out, stderr=out, start_new_session=True)


def listening(port: int, seconds: float = 90.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_worker_dies_in_mid_run(tmp_path):
    write_input(tmp_path, 1200)
    port, started = free_port(), []
    url = f"spark://127.0.0.1:{port}"
    try:
        started.append(
            spark_class(
                tmp_path,
                "master.txt",
                "master.Master",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--webui-port",
                str(free_port()),
            )
        )
        assert listening(port), (tmp_path / "master.txt").read_text()[-2000:]
        for number in (1, 2):
            place = tmp_path / f"worker-{number}"
            own = [
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                str(free_port()),
                "--work-dir",
                str(place),
            ]
            started.append(spark_class(tmp_path, f"worker-{number}.txt", "worker.Worker", *own, url))
        driver = start(tmp_path, url)
        started.append(driver)
        end = time.monotonic() + 300
        while len(recorded(tmp_path)) < 4 and driver.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        assert driver.poll() is None, (tmp_path / "log.txt").read_text()[-3000:]
        kill_family(started[2].pid)  # the second worker, with its executor and that one's Python processes
        assert driver.wait(timeout=500) == 0, (tmp_path / "log.txt").read_text()[-3000:]
    finally:
        for process in started:
            kill_family(process.pid)
    assert list((tmp_path / "worker-1").glob("app-*/*")), "the first worker had nothing to do"
    assert list((tmp_path / "worker-2").glob("app-*/*")), "the second worker had nothing to do"
    print(check(tmp_path))
