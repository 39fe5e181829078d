"""Slow clients and slow work: each has an end, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from select import select

import pytest

from penstock.http.limits import ServerLimits

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi import FastAPI
from starlette.responses import Response

from penstock.http.errors import BusyError, TookTooLongError
from penstock.http.guard import Guard
from penstock.http.server import serving
from penstock.http.slow_work import SlowWork

LIMITS = ServerLimits(
    header_seconds=0.3, body_seconds=0.3, stall_seconds=0.3, connections=20, header_bytes=4096
)
LARGE = 32 << 20  # more than the buffers of two sockets hold


def small_app(sent: threading.Event, limits: ServerLimits = LIMITS) -> FastAPI:
    app = FastAPI()
    app.add_middleware(Guard, limits=limits)

    @app.get("/large")
    async def large() -> Response:
        return Watched(bytes(LARGE))

    @app.post("/echo")
    async def echo() -> str:
        return "done"

    class Watched(Response):
        async def __call__(self, *words) -> None:
            try:
                await super().__call__(*words)
            finally:
                sent.set()

    return app


@pytest.fixture
def sent() -> threading.Event:
    return threading.Event()


@pytest.fixture
def address(sent: threading.Event) -> Iterator[tuple[str, int]]:
    with serving(small_app(sent), limits=LIMITS) as url:
        yield "127.0.0.1", int(url.rpartition(":")[2])


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=120)


def rest(client: socket.socket) -> bytes:
    """What the server still says before it ends the connection."""
    parts = []
    try:
        while part := client.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET /he", b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345"],
    ids=["nothing", "headers", "body"],
)
def test_a_client_that_stops_sending_is_ended(address: tuple[str, int], begun: bytes) -> None:
    with connected(address) as client:
        client.sendall(begun)
        assert b"408" in rest(client)


def test_one_byte_now_and_then_does_not_help(address: tuple[str, int]) -> None:
    with connected(address) as client:
        client.settimeout(0.05)
        answer = None
        for byte in b"GET / HTTP/1.1\r\nX: " + b"a" * 4_000:
            client.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                answer = client.recv(1000)
                break
        assert answer is not None
        assert b"408" in answer


def test_headers_without_end_are_refused(address: tuple[str, int]) -> None:
    with connected(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000)
        assert b" 400 " in rest(client)


def test_a_client_that_does_not_read_is_ended(address: tuple[str, int], sent: threading.Event) -> None:
    with connected(address) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sent.wait(120)


def test_a_client_that_reads_gets_everything(address: tuple[str, int]) -> None:
    with connected(address) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert len(rest(client)) > LARGE


def test_connections_beyond_the_limit_are_ended(sent: threading.Event) -> None:
    # None is ended for being slow: that would make room for the next.
    limits = replace(LIMITS, header_seconds=600, body_seconds=600, stall_seconds=600)
    with serving(small_app(sent, limits), limits=limits) as url:
        address = "127.0.0.1", int(url.rpartition(":")[2])
        clients = [connected(address) for _ in range(LIMITS.connections + 5)]
        try:
            ended: set[socket.socket] = set()
            while len(ended) < 5:
                ready, _, _ = select([client for client in clients if client not in ended], [], [], 120)
                assert ready, "the server keeps them all"
                assert [rest(client) for client in ready] == [b""] * len(ready)
                ended.update(ready)
        finally:
            for client in clients:
                client.close()
        # They are gone, and there is room again as soon as the server has seen that.
        answer = b""
        for _ in range(1_000):
            with connected(address) as client:
                client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = rest(client)
            if answer:
                break
        assert b" 200 " in answer


# -- work beside the event loop


def run(coroutine):
    return asyncio.run(coroutine)


def test_work_that_takes_too_long_is_given_up() -> None:
    work, done = SlowWork("t", threads=1, waiting=10), threading.Event()

    async def body() -> None:
        with pytest.raises(TookTooLongError, match=r"at most 0\.05 seconds"):
            await work.run(lambda: done.wait(30), 0.05)
        done.set()
        assert await work.run(lambda: 7, 30) == 7

    run(body())
    work.stop()


def test_no_more_waits_than_may() -> None:
    work, gate = SlowWork("t", threads=1, waiting=2), threading.Event()

    async def body() -> None:
        jobs = [asyncio.create_task(work.run(gate.wait, 30)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await work.run(gate.wait, 30)
        gate.set()
        assert await asyncio.gather(*jobs) == [True] * 3
        assert await work.run(lambda: 1, 30) == 1

    run(body())
    work.stop()


def test_what_waits_is_bounded_in_bytes_too() -> None:
    """So thousands of short requests may wait, and large ones still cannot fill the memory."""
    work, gate = SlowWork("t", threads=1, waiting=100, waiting_bytes=1_000), threading.Event()

    async def body() -> None:
        jobs = [asyncio.create_task(work.run(gate.wait, 30, 300)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await work.run(gate.wait, 30, 300)
        jobs.append(asyncio.create_task(work.run(gate.wait, 30, 100)))
        gate.set()
        assert await asyncio.gather(*jobs) == [True] * 4
        assert await work.run(lambda: 1, 30, 1_000) == 1

    run(body())
    work.stop()
