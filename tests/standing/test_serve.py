"""`penstock standing serve` as a process: network, service and clients, until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from file_modes import open_to_others
from penstock.cli.standing.serve import NICE
from runtime.streams import put
from standing.test_http import command
from standing.test_service import rows

pytest.importorskip("uvicorn")
ROOT = Path(__file__).parents[2]
NETWORK = """
import penstock as ps

net = ps.Network("road")
cars = net.source("cars", ps.csv("cars", "time TIMESTAMP, k INT, v INT"), timestamp="time")
cars.connection_point("reports", keep="1 hour")
"""


def serve(folder: Path, port: int, *more: str) -> Any:
    words = [
        "-m",
        "penstock.cli.main",
        "standing",
        "serve",
        *more,
        "--port",
        str(port),
        "--master",
        "local[2]",
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with (folder / "stderr").open("w") as said:
        # not at the highest priority itself: Spark's is relative to it
        return subprocess.Popen(
            ["nice", "-n", "1", sys.executable, *words],
            cwd=folder,
            env=env,
            stderr=said,
            start_new_session=True,
        )


def wait_for(url: str, process: Any, folder: Path, seconds: float = 200.0) -> None:
    until = time.monotonic() + seconds
    while command(url, "streams").exit_code:
        assert process.poll() is None, (folder / "stderr").read_text()[-2000:]
        assert time.monotonic() < until
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_serve_and_stop(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    put(tmp_path / "cars", "a", rows(0, 20))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = serve(tmp_path, port, "net.py:net", "--checkpoint", "ckpt")
    try:
        wait_for(url, process, tmp_path)
        handle = command(
            url, "register", "SELECT v FROM reports WHERE k = 3 BEGIN now - 10 seconds"
        ).stdout.strip()
        expected = "v\n" + "".join(f"{v}\n" for t, k, v in rows(0, 20) if k == 3 and t >= 9)
        until = time.monotonic() + 300
        while (
            said := command(url, "invoke", handle, "--format", "csv").stdout
        ) != expected and time.monotonic() < until:
            time.sleep(0.5)
        assert said == expected
        ours = psutil.Process(process.pid)
        below = [child.nice() - ours.nice() for child in ours.children(recursive=True)]
        assert below
        assert set(below) == {NICE}  # clients wait for the service, not for Spark
        process.send_signal(signal.SIGTERM)
        assert process.wait(150) == 0
        assert open_to_others(tmp_path / "ckpt") == {}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_network_that_fails_ends_the_service(tmp_path: Path) -> None:
    """Before, the last rows were given as 200 for ever."""
    (tmp_path / "net.py").write_text(NETWORK)
    put(tmp_path / "cars", "a", rows(0, 20))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = serve(tmp_path, port, "net.py:net", "--checkpoint", "ckpt")
    try:
        wait_for(url, process, tmp_path)
        handle = command(url, "register", "SELECT v FROM reports WHERE k = 3").stdout.strip()
        assert "as of " in command(url, "invoke", handle).stderr
        [jvm] = [c for c in psutil.Process(process.pid).children(recursive=True) if "java" in c.name()]
        jvm.kill()
        until = time.monotonic() + 300
        while (answer := command(url, "invoke", handle)).exit_code == 0:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert "the network has failed" in answer.stderr
        assert process.wait(150) == 1
        assert "the network has failed, so the service has ended" in (tmp_path / "stderr").read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_what_is_served_if_nothing_is_named(tmp_path: Path) -> None:
    from penstock.cli.standing.serve import _found_here
    from penstock.model.errors import PenstockError

    with pytest.raises(PenstockError, match="nothing to serve"):
        _found_here(tmp_path)
    (tmp_path / "other.py").write_text("print('no network')")
    (tmp_path / "net.yaml").write_text((Path(__file__).parents[2] / "examples" / "traffic.yaml").read_text())
    assert _found_here(tmp_path) == (str(tmp_path / "net.yaml"), None)
    (tmp_path / "net.py").write_text("import penstock as ps\nnet = ps.Network('n')\n")
    with pytest.raises(PenstockError, match=r"several: .*net\.py, .*net\.yaml"):
        _found_here(tmp_path)
    for name in ("one", "two"):
        (tmp_path / ".penstock" / name).mkdir(parents=True)
    (tmp_path / ".penstock" / "one" / "catalog.db").touch()
    assert _found_here(tmp_path) == (None, tmp_path / ".penstock" / "one")
    (tmp_path / ".penstock" / "two" / "catalog.db").touch()
    with pytest.raises(PenstockError, match="several: "):
        _found_here(tmp_path)
