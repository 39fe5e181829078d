"""A console without a run behind it: the built page, the picture of a network, figures that a test plays.

Tests of the page alone use it, and the benchmark of frame times: they need 300 boxes, a held sub-network or a
network that somebody else has changed, at once and without Spark. What the real server does is tested against
a real run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import penstock as ps
from penstock.model.text.yaml_form import to_yaml
from penstock.web.look.network_json import NetworkText, network_json
from penstock.web.page import POLICY, STATIC

Json = dict[str, Any]
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


@dataclass
class Played:
    """The state that a test plays. `answers`: what a route gives, `(status, body)` or a function."""

    network: ps.Network
    version: int = 1
    status: Json = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, str, Json]] = field(default_factory=list)
    streams: int = 0
    beat: float = 0.5

    def network_json(self, *, down: bool = False) -> Json:
        """The picture, as the real console gives it."""
        homes = dict.fromkeys(self.network.nodes, "main")
        text = NetworkText(self.version, to_yaml(self.network))
        more = {"subnetworks": ["main"], "linear_road": self.network.name == "linear_road"}
        return network_json(self.network, text, homes, (), down=down) | more

    def status_json(self) -> Json:
        """Figures of all arrows, and what the test has set."""
        return played_status(self.network, self.version) | self.status

    def answer(self, method: str, path: str, body: Json) -> tuple[int, Any]:
        """What a request gets."""
        self.requests.append((method, path, body))
        own = self.answers.get(f"{method} {path}")
        if own is not None:
            status, answer = own(body) if callable(own) else own
            return status, answer
        if path == "/api/network":
            return 200, self.network_json(down=body.get("direction") == "down")
        if path == "/api/status":
            return 200, self.status_json()
        return 200, _EMPTY.get(path, {})


_EMPTY: Mapping[str, Json] = {
    "/api/me": {"name": "ann", "may_change": True, "tokens": False},
    "/api/bookmarks": {"bookmarks": []},
    "/api/decisions": {"decisions": []},
    "/api/versions": {"versions": []},
    "/api/history": {
        "seconds": 600,
        "newest": None,
        "inputs": {},
        "outputs": {},
        "decisions": [],
        "events": [],
    },
}


def played_status(network: ps.Network, version: int) -> Json:
    """A status with figures that move: every third arrow is bad, the last one unknown."""
    now = time.time()
    arrows = list(network.arrows)
    return {
        "network": network.name,
        "version": version,
        "time": now,
        "state": "running",
        "error": None,
        "changeable": True,
        "why_not": None,
        "dead": 0,
        "subnetworks": [_subnetwork(now)],
        "boxes": {name: _box(at) for at, name in enumerate(network.nodes)},
        "arrows": {
            f"{a.tail}:{a.head}:{a.index}": _arrow(at, len(arrows), now) for at, a in enumerate(arrows)
        },
        "worst": [f"{a.tail}:{a.head}:{a.index}" for a in arrows[::3]],
        "outputs": [_output(name) for name in network.outputs],
        "sources": [],
        "points": {},
        "valves": [],
        "load": None,
        "capacity": None,
        "qos": None,
        "held": [],
        "breakpoints": [],
        "attached": [],
        "seconds": {},
    }


def _subnetwork(now: float) -> Json:
    figures = {"trains": 7, "rows": 70, "rate": 10.0, "length": 10, "train": 0.2, "trigger": 0.3, "idle": []}
    return {"name": "main", **figures, "held": False, "running": int(now) % 2 == 0, "waiting": 3}


def _box(at: int) -> Json:
    counts = {"rows_in": 100 * at, "rows_out": 50 * at, "dead": 0, "dropped": 0, "wall": 0.1, "cpu": 0.1}
    return {**counts, "selectivity": 0.5, "rate_in": 20.0, "rate_out": 10.0}


def _arrow(at: int, most: int, now: float) -> Json:
    unknown = at == most - 1
    moving = 10 ** (at % 5) * (1 + now % 7 / 10)
    return {
        "rate": None if unknown else moving,
        "train": 10,
        "tuples": 1000 + at,
        "estimated": False,
        "waiting": at if at % 3 == 0 else None,
        "waiting_bytes": None,
        "age": 1.5 if at % 3 == 0 else None,
        "selectivity": 0.5,
        "utility": None if unknown else (0.2 if at % 3 == 0 else 0.95),
        "serves": [],
    }


def _output(name: str) -> Json:
    figures = {"weight": 1.0, "utility": 0.8, "utility_minute": 0.7, "delay_p50": 6.0, "delay_p99": 9.0}
    return {"name": name, **figures, "share": 1.0, "in_zone": False, "exact_since": None}


@contextmanager
def playing(played: Played) -> Iterator[str]:
    """Serve it on a free port, and give the URL."""
    server = _Server(played)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, played: Played) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.played = played


class _Requests(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Tests tell what they see themselves."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/api/events":
            self._stream()
        elif path.startswith("/api/"):
            self._answer("GET")
        else:
            self._file("index.html" if path == "/" else path.removeprefix("/static/"))

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        address = urlsplit(self.path)
        length = int(self.headers.get("content-length", 0))
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        body = json.loads(self.rfile.read(length)) if length else query
        status, answer = self.server.played.answer(method, unquote(address.path), body)
        self._send(status, "application/json", json.dumps(answer).encode())

    def _file(self, name: str) -> None:
        path = STATIC / name
        if not path.is_file():
            self._send(404, "text/plain", b"no such file")
            return
        self._send(200, _KINDS[path.suffix], path.read_bytes())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        played = self.server.played
        played.streams += 1
        try:
            while True:
                data = json.dumps(played.status_json())
                self.wfile.write(f"event: status\ndata: {data}\n\n".encode())
                time.sleep(played.beat)
        except OSError:
            pass  # the page is gone
        finally:
            played.streams -= 1
