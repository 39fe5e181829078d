"""What open pages cost the console's process: its CPU with no page, one, and a hundred.

`penstock console` serves a checkpoint of 60 boxes; no network runs, so all CPU is the console's. Pages are
connections that follow `/api/events` and read everything at once. One more experiment has pages that read
nothing: the server must not grow.

Figure: seconds of CPU a second, and the memory of the process in MB, for each number of pages.
Time:   about two minutes; --quick half a minute.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.tables import show
from penstock.store.catalog.catalog import Catalog

_BOXES = 60
_REQUEST = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="that each figure is measured")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seconds = 8.0
    with recording("web-open-pages", chosen, seconds=chosen.seconds, boxes=_BOXES) as record:
        with tempfile.TemporaryDirectory() as folder:
            record.figures = measure(checkpoint(Path(folder)), chosen.seconds)
        show("the console's process", record.figures)
    return record.exit_code


def checkpoint(folder: Path) -> Path:
    """A checkpoint whose network has this many boxes."""
    net = ps.Network("pages")
    stream = net.source("cars", ps.csv("in/", "time TIMESTAMP, v INT"), timestamp="time")
    for number in range(_BOXES - 2):
        stream = stream.filter(f"v > {number}", name=f"f{number}")
    qos = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)])
    net.output("out", stream, to=ps.parquet("out/rows"), qos=qos)
    catalog = Catalog(folder / "catalog.db")
    catalog.record_network(
        net.name, ps.to_yaml(net), net.nodes.values(), subnetworks=dict.fromkeys(net.nodes, "out")
    )
    catalog.close()
    return folder


def measure(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """The cost of more and more pages of one server."""
    words = ["-m", "penstock.cli.main", "console", str(folder), "--port", "0"]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            process.stderr.readline()  # that it only looks
            host, port = process.stderr.readline().split()[-1].removeprefix("http://").split(":")
            return _figures(psutil.Process(process.pid), (host, int(port)), seconds)
        finally:
            process.terminate()


def _figures(process: psutil.Process, address: tuple[str, int], seconds: float) -> list[dict[str, Any]]:
    figures = [{"pages": 0, "reading": True, **_cost(process, seconds)}]
    pages: list[socket.socket] = []
    read = _Reader()
    for number in (1, 100):
        pages += [read.take(_page(address)) for _ in range(number - len(pages))]
        figures.append({"pages": number, "reading": True, **_cost(process, seconds)})
    silent = [_page(address) for _ in range(100)]
    figures.append({"pages": 200, "reading": False, **_cost(process, seconds)})
    for page in (*pages, *silent):
        page.close()
    return figures


def _page(address: tuple[str, int]) -> socket.socket:
    page = socket.create_connection(address)
    page.sendall(_REQUEST)
    return page


class _Reader:
    """Reads all that comes to some pages, in a thread of its own."""

    def __init__(self) -> None:
        self._pages = selectors.DefaultSelector()
        threading.Thread(target=self._read, daemon=True).start()

    def take(self, page: socket.socket) -> socket.socket:
        page.setblocking(False)
        self._pages.register(page, selectors.EVENT_READ)
        return page

    def _read(self) -> None:
        while True:
            for key, _ in self._pages.select(0.2) if self._pages.get_map() else ():
                try:
                    key.fileobj.recv(1 << 20)  # type: ignore[union-attr]  # a socket
                except OSError:
                    self._pages.unregister(key.fileobj)
            time.sleep(0.01)


def _cost(process: psutil.Process, seconds: float) -> dict[str, float]:
    time.sleep(2.0)  # what the change of pages itself costs
    before = process.cpu_times()
    time.sleep(seconds)
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    return {"cpu": used / seconds, "megabytes": process.memory_info().rss / 2**20}


if __name__ == "__main__":
    sys.exit(main())
