"""Followers: one computation for all, a queue for each, and an end for those who do not read."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from penstock.standing.errors import LimitError
from penstock.standing.limits import Limits
from soak import count
from standing.test_http import ByHand, ask, put, service_at

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from penstock.http.limits import ServerLimits
from penstock.http.server import serving
from penstock.http.slow_work import SlowWork
from penstock.standing.serving.followers import Follower, Followers
from penstock.standing.serving.routes import standing_app

TEXT = "SELECT vid, spd FROM reports BEGIN now - 5 seconds"


def followers(folder: Path, **limits: int) -> tuple[ByHand, Followers, str]:
    service = service_at(folder)
    service.engine.limits = Limits(**{"rows": 1_000_000, **limits})
    put(service, 0, 10)
    work = SlowWork("follow", threads=1, waiting=100)
    return service, Followers(service, work), service.register(TEXT).id


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


async def event_of(follower: Follower) -> tuple[str, dict[str, Any]]:
    while True:
        event = await follower.next()
        assert event is not None
        if not event.startswith(b":"):
            kind, *_, data = event.decode().strip().splitlines()
            return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_one_computation_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, all_, handle = followers(tmp_path)
    answers = []
    invoke = service.engine.invoke
    monkeypatch.setattr(service.engine, "invoke", lambda *a, **k: answers.append(1) or invoke(*a, **k))

    async def body() -> None:
        some = [all_.join(handle) for _ in range(50)]
        for follower in some:
            assert len((await event_of(follower))[1]["added"]) == 6
        put(service, 10, 1)
        for follower in some:
            assert (await event_of(follower))[1]["added"] == [{"vid": 10, "spd": 10.0}]
        late = all_.join(handle)
        assert [row["vid"] for row in (await event_of(late))[1]["added"]] == [5, 6, 7, 8, 9, 10]
        for follower in [*some, late]:
            all_.leave(handle, follower)
        assert all_.count == 0
        assert all_.nbytes > 0
        await asyncio.gather(*all_._tasks)
        assert all_.nbytes == 0

    run(body())
    assert len(answers) <= 4


def test_a_slow_one_is_dropped_with_a_reason(tmp_path: Path) -> None:
    service, all_, handle = followers(tmp_path, queued_events=3)

    async def body() -> None:
        slow, quick = all_.join(handle), all_.join(handle)
        await event_of(quick)
        for i in range(6):
            put(service, 10 + i, 1)
            assert (await event_of(quick))[0] == "change"
        kind, said = await event_of(slow)
        assert kind == "error"
        assert "reads too slowly and was dropped" in said["error"]
        assert await slow.next() is None
        put(service, 16, 1)
        assert (await event_of(quick))[0] == "change"

    run(body())


def test_there_are_so_many_and_no_more(tmp_path: Path) -> None:
    _, all_, handle = followers(tmp_path, followers=2)

    async def body() -> None:
        first, _ = all_.join(handle), all_.join(handle)
        with pytest.raises(LimitError, match="2 follow already"):
            all_.join(handle)
        all_.leave(handle, first)
        all_.join(handle)

    run(body())


@pytest.mark.parametrize(
    ("limit", "problem"), [("followed_rows", "to be followed"), ("followed_bytes", "memory")]
)
def test_an_answer_that_is_too_large_is_not_followed(tmp_path: Path, limit: str, problem: str) -> None:
    _, all_, handle = followers(tmp_path, **{limit: 5})

    async def body() -> None:
        follower = all_.join(handle)
        kind, said = await event_of(follower)
        if kind == "change":
            kind, said = await event_of(follower)
        assert kind == "error"
        assert problem in said["error"]

    run(body())


def test_a_query_that_ends_ends_its_followers(tmp_path: Path) -> None:
    service, all_, handle = followers(tmp_path)

    async def body() -> None:
        follower = all_.join(handle)
        await event_of(follower)
        service.unregister(handle)
        assert await event_of(follower) == ("end", {})
        assert await follower.next() is None

    run(body())


@pytest.mark.timeout(600)
def test_followers_that_do_not_read_stop_nobody(tmp_path: Path, record_property) -> None:
    """Before, 1,000 of them stopped the service."""
    many = count(20, soak=1_000)
    service = service_at(tmp_path)
    service.engine.limits = Limits(queued_events=8)
    put(service, 0, 2_000)
    handle = service.register("SELECT vid, spd FROM reports BEGIN now - 2000 seconds").id
    process = psutil.Process()
    with serving(standing_app(service), limits=ServerLimits(stall_seconds=1.0)) as url:
        port = int(url.rpartition(":")[2])
        before = process.memory_info().rss
        silent = [_silent(port, handle) for _ in range(many)]
        with urlopen(f"{url}/queries/{handle}/changes") as reader:
            events = (json.loads(line[6:]) for line in reader if line.startswith(b"data: "))
            next(events)
            # each train replaces the whole answer, so that the queues of the silent ones overflow
            for i in range(1, 12):
                put(service, i * 5_000, 2_000)
                while max((row["vid"] for row in next(events)["added"]), default=0) < i * 5_000 + 1_999:
                    pass
            grown = process.memory_info().rss - before
            assert json.loads(ask(f"{url}/health"))["ok"]
            assert len(json.loads(ask(f"{url}/queries/{handle}/result"))["rows"]) == 2_000
        until = time.monotonic() + 60
        while _connected(process, port) > 5:
            assert time.monotonic() < until, "followers that do not read are still connected"
            time.sleep(0.1)
        for follower in silent:
            follower.close()
    service.stop()
    record_property("followers_that_do_not_read", many)
    record_property("megabytes_grown", grown >> 20)
    assert grown < 512 << 20


def _connected(process: psutil.Process, port: int) -> int:
    return sum(c.status == "ESTABLISHED" and c.laddr.port == port for c in process.net_connections())


def _silent(port: int, handle: str) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET /queries/{handle}/changes HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return client


def test_a_turn_of_the_loop_wakes_only_some(tmp_path: Path) -> None:
    """A thousand at once would hold up `/health` for as long as all of them take."""
    service, all_, handle = followers(tmp_path)
    turn, woken, all_here = 0, Counter[int](), asyncio.Event()

    async def one() -> None:
        follower = all_.join(handle)
        for _ in range(2):  # the whole answer, then a change
            await event_of(follower)
            woken[turn] += 1
            if woken.total() == 300:
                all_here.set()
        all_.leave(handle, follower)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def body() -> None:
        counting = asyncio.create_task(count_turns())
        many = [asyncio.create_task(one()) for _ in range(300)]
        await all_here.wait()
        put(service, 10, 20)
        await asyncio.gather(*many)
        counting.cancel()

    run(body())
    assert woken.total() == 600
    assert max(woken.values()) <= 64
