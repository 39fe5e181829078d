"""Hostile requests and many clients: no answer is a 500, memory stays bounded, honest clients are served."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fuzz.hostile_requests import QUERIES, HostileRequest, hostile_request
from penstock.standing.limits import Limits
from soak import count
from standing.test_http import ByHand, ask, put, service_at

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from penstock.http.server import serving
from penstock.standing.serving.routes import standing_app

FINE = {200, 201, 204, 400, 401, 403, 404, 405, 408, 413, 415, 421, 429, 503}
MOST_GROWN = 512 << 20


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ByHand]:
    service = service_at(tmp_path)
    service.engine.limits = Limits(queries=100, parse_seconds=3.0)
    put(service, 0, 1_000)
    yield service
    service.stop()


@pytest.fixture
def url(service: ByHand) -> Iterator[str]:
    with serving(standing_app(service)) as address:
        yield address


def answered(client: http.client.HTTPConnection, request: HostileRequest) -> tuple[int, bytes]:
    """Status and body; 0 if the server has ended the connection without a word."""
    try:
        client.request(request.method, request.path, request.body, request.headers)
        answer = client.getresponse()
        return answer.status, answer.read()
    except (ConnectionError, http.client.HTTPException):
        return 0, b""
    finally:
        client.close()


@pytest.mark.timeout(7200)
def test_no_request_is_too_hostile(url: str, service: ByHand, record_property) -> None:
    many, rng = count(200, soak=10_000), random.Random(14)
    client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    memory, statuses, slowest = psutil.Process(), Counter[int](), 0.0
    before = memory.memory_info().rss
    for turn in range(many):
        request = hostile_request(rng)
        began = time.monotonic()
        status, body = answered(client, request)
        slowest = max(slowest, time.monotonic() - began)
        statuses[status] += 1
        # Without a word only where headers are no HTTP, or a body is refused while it is still being sent.
        silent = status == 0 and (request.kind == "headers" or len(request.body or b"") > 1 << 20)
        assert status in FINE or silent, (request, body)
        assert b"Traceback" not in body
        assert b"site-packages" not in body
        if turn % 50 == 49:
            for query in service.list():
                service.unregister(query["handle"])
    grown = memory.memory_info().rss - before
    assert json.loads(ask(f"{url}/health"))["ok"]
    record_property("hostile_requests", many)
    record_property("statuses", dict(sorted(statuses.items())))
    record_property("slowest_seconds", round(slowest, 2))
    record_property("megabytes_grown", grown >> 20)
    assert grown < MOST_GROWN


class HonestClient:
    """Registers, invokes, lists and unregisters, again and again, over one connection at a time."""

    def __init__(self, host: str, seed: int) -> None:
        self._host, self._port = host.split(":")
        self._rng = random.Random(seed)
        self.statuses = Counter[int]()

    async def work(self, until: float) -> None:
        while True:
            try:
                body = await self._ask("POST", "/queries", {"query": self._rng.choice(QUERIES)})
                if body:
                    handle = json.loads(body).get("handle", "none")
                    await self._ask("GET", f"/queries/{handle}/result")
                    await self._ask("GET", "/queries")
                    await self._ask("DELETE", f"/queries/{handle}")
            except (OSError, asyncio.IncompleteReadError):
                self.statuses[0] += 1
            if time.monotonic() > until:
                return
            await asyncio.sleep(self._rng.random())

    async def _ask(self, method: str, path: str, body: object = None) -> bytes:
        reader, writer = await asyncio.open_connection(self._host, int(self._port))
        try:
            data = json.dumps(body).encode() if body is not None else b""
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            head += f"Content-Length: {len(data)}\r\nContent-Type: application/json\r\n\r\n"
            writer.write(head.encode() + data)
            answer = await reader.read()
        finally:
            writer.close()
        status = int(answer.split(b" ", 2)[1]) if answer else 0
        self.statuses[status] += 1
        return answer.partition(b"\r\n\r\n")[2]


@pytest.mark.timeout(600)
def test_many_clients_at_once(url: str, service: ByHand, record_property) -> None:
    many, seconds = count(20, soak=2_000), count(1, soak=60)
    service.engine.limits = Limits(queries=10_000)
    memory = psutil.Process()
    before = memory.memory_info().rss
    clients = [HonestClient(url.removeprefix("http://"), seed) for seed in range(many)]

    async def all_of_them() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(client.work(until) for client in clients))

    asyncio.run(all_of_them())
    gc.collect()
    grown = memory.memory_info().rss - before
    statuses = sum((client.statuses for client in clients), Counter[int]())
    record_property("clients", many)
    record_property("seconds_of_clients", seconds)
    record_property("statuses_of_clients", dict(sorted(statuses.items())))
    record_property("megabytes_grown_by_clients", grown >> 20)
    assert set(statuses) <= FINE | {0}
    assert statuses[200] > many // 10
    assert statuses[0] <= statuses.total() // 100
    assert grown < MOST_GROWN
