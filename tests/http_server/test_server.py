"""The shared HTTP server: ports, the guard's limits, and errors as JSON."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from penstock.model.errors import NetworkError, PenstockError

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi import FastAPI
from starlette.requests import Request as Asked

from penstock.http.error_bodies import answer_errors
from penstock.http.guard import Guard
from penstock.http.limits import ServerLimits
from penstock.http.server import serving, take_port

MAX_BODY = ServerLimits().body_bytes
JSON = {"Content-Type": "application/json"}


class TooBusyError(PenstockError):
    kind = "busy"


def small_app() -> FastAPI:
    app = FastAPI()
    app.add_middleware(Guard)
    answer_errors(app, [(TooBusyError, 429)])

    @app.post("/size")
    async def size(asked: Asked) -> int:
        return len(await asked.body())

    @app.get("/fail/{kind}")
    def fail(kind: str) -> None:
        if kind == "busy":
            raise TooBusyError("too many at once")
        raise NetworkError("no such box", box="windows", found="'window'", hint="did you mean 'windows'?")

    return app


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(small_app()) as address:
        yield address


def refused(url: str, data: bytes | None = None) -> tuple[int, dict[str, str]]:
    with pytest.raises(HTTPError) as caught:
        urlopen(Request(url, data))
    return caught.value.code, json.loads(caught.value.read())


def test_a_body_within_the_limit_reaches_the_route(url):
    with urlopen(Request(f"{url}/size", b"x" * MAX_BODY, JSON)) as answer:
        assert json.loads(answer.read()) == MAX_BODY


def test_a_body_that_says_it_is_too_large_is_refused_unread(url):
    client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    client.putrequest("POST", "/size")
    client.putheader("Content-Length", str(MAX_BODY + 1))
    client.endheaders()
    assert client.getresponse().status == 413
    client.close()


def test_a_body_that_grows_too_large_is_refused(url):
    client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    client.request(
        "POST",
        "/size",
        iter([b"x" * (MAX_BODY // 2)] * 3),
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    answer = client.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["expected"] == f"at most {MAX_BODY:,} bytes"
    client.close()


def test_an_error_has_its_status_its_text_and_its_parts(url):
    text = "too many at once"
    assert refused(f"{url}/fail/busy") == (429, {"error": text, "kind": "busy", "problem": text})
    status, body = refused(f"{url}/fail/network")
    # what is wrong inside is one line: the rest may not be the client's to know
    assert status == 503
    assert body["error"] == "box 'windows': no such box"
    assert "found" not in body


def test_a_port_that_is_taken_is_refused_before_anything_starts():
    with take_port("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(
            PenstockError, match=r"cannot listen on 127.0.0.1:\d+\n  found:    Address already"
        ):
            take_port("127.0.0.1", taken.getsockname()[1])


def test_a_port_out_of_range_is_refused():
    with pytest.raises(PenstockError, match="cannot listen on"):
        take_port("127.0.0.1", 70_000)


def test_the_port_is_free_again_when_the_server_has_ended():
    with serving(small_app()) as address:
        port = int(address.rpartition(":")[2])
    take_port("127.0.0.1", port).close()


def asked(address: tuple[str, int], path: str, header: str = "Accept: */*") -> socket.socket:
    client = socket.create_connection(address, timeout=60)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode())
    return client


@pytest.mark.parametrize("header", ["Accept: */*", "Content-Length: 0"])
def test_health_is_told_while_the_loop_is_busy(header: str) -> None:
    """Neither for a turn of the event loop nor behind hundreds that have just connected does it wait."""
    app, gate, busy = FastAPI(), threading.Event(), threading.Event()
    app.add_middleware(Guard)

    @app.get("/stall")
    async def stall() -> str:
        busy.set()
        gate.wait(60)
        return "done"

    @app.get("/health")
    async def health() -> str:
        return "well"

    with serving(app) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        clients = [asked(address, "/stall")]
        assert busy.wait(60)
        clients += [asked(address, "/none") for _ in range(200)]
        with asked(address, "/health", header) as client:
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        assert b" 200 " in answer
        assert b"well" in answer
        assert b"connection: close" in answer
        with (
            asked(address, "/health?x") as client,
            asked(address, "/healthy") as other,
        ):  # no business of the door
            gate.set()
            assert b" 200 " in client.recv(4096)
            assert b" 404 " in other.recv(4096)
        assert all(b" 404 " in client.recv(4096) for client in clients[1:])
        for client in clients:
            client.close()


def test_the_door_guards_too() -> None:
    app = FastAPI()
    app.add_middleware(Guard)
    with serving(app) as url:
        client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60)
        client.sendall(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert b" 421 " in client.recv(4096)
        client.close()
