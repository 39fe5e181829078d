"""Whether anybody can stop the service of standing queries, and how long others wait meanwhile.

The service runs in a process of its own, without Spark, over tuples that are put in by hand. One attack after
the other is tried against it, each by many connections. Meanwhile `/health` is asked fifty times a second.

Figure: milliseconds of `/health` under each attack (half of the answers, 99 %, the slowest), the statuses
        that the attack got, and the megabytes that the service grew to.
Time:   about 3 minutes; --quick about 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import penstock as ps
from benchmarks.common.command_line import given, options
from benchmarks.common.facts import ROOT
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import quantile, show
from penstock.cli.standing.serve import SWITCH_INTERVAL
from penstock.http.server import serve, take_port, url_of
from penstock.standing import StandingQueries
from penstock.standing.serving.routes import standing_app

CROWD = "honest clients"
HEALTHY = 0.1  # seconds within which `/health` answers
MEMORY = 512 << 20
BACKSLASHES = "SELECT vid FROM reports WHERE " + '"\\' * 24_000
LONG_LIST = "SELECT vid FROM reports WHERE vid IN (" + ",".join(str(i) for i in range(9_000)) + ")"
SELF_JOIN = "SELECT COUNT(*) FROM reports a, reports b WHERE a.seg = b.seg"
EVERYTHING = "SELECT time, vid, seg, spd FROM reports"


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--tuples", type=int, default=500_000, help="in the stream")
    parser.add_argument("--clients", type=int, default=2_000, help="honest ones at once")
    parser.add_argument("--followers", type=int, default=1_000, help="that do not read")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each attack")
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS), help="attacks to try")
    parser.add_argument("--serve", action="store_true", help="only serve, for the process under attack")
    chosen = parser.parse_args()
    if chosen.quick:
        vars(chosen).update(tuples=50_000, clients=100, followers=50, seconds=3.0)
    return chosen


def main() -> int:
    chosen = parse()
    if chosen.serve:
        return be_attacked(chosen)
    config = {name: value for name, value in given(chosen).items() if name != "serve"}
    with recording("standing-hostile", chosen, **config) as record, scratch() as folder:
        record.figures = {}
        with attacked(chosen, folder) as (port, process):
            for name in dict.fromkeys(["nobody", *chosen.only]):
                measure(name, Attack(port, chosen, ATTACKS[name]), process, record)
        report(record.figures)
    return record.exit_code


# -- the service under attack


class ByHand(StandingQueries):
    """A service whose streams are not followed."""

    def _need(self, streams: Any) -> None:
        del streams


def be_attacked(chosen: argparse.Namespace) -> int:
    sys.setswitchinterval(SWITCH_INTERVAL)
    network = ps.Network("road")
    schema = "time TIMESTAMP, vid INT, seg INT, spd DOUBLE"
    network.source("cars", ps.csv("in", schema), timestamp="time").connection_point("reports", keep="30 days")
    runtime: Any = SimpleNamespace(
        network=network,
        checkpoint=Path("checkpoint"),
        records=object(),
        queries={},
        check=lambda: None,
        settings=SimpleNamespace(take_over=False),
    )
    service = ByHand(runtime, memory=MEMORY)
    rng = np.random.default_rng(chosen.seed)
    for first in range(0, chosen.tuples, 1 << 16):
        put(service, first, min(1 << 16, chosen.tuples - first), rng)
    gc.collect()
    gc.freeze()  # as `penstock standing serve`
    listener = take_port("127.0.0.1", 0)
    print(url_of(listener), flush=True)
    threading.Thread(target=trains, args=(service, chosen.tuples, rng), daemon=True).start()
    serve(standing_app(service), listener)
    return 0


def put(service: StandingQueries, first: int, count: int, rng: np.random.Generator) -> None:
    at = np.arange(first, first + count)
    columns = {
        "time": pa.array(at * 1_000_000).cast(pa.timestamp("us", "UTC")),
        "vid": at.astype(np.int32),
        "seg": rng.integers(0, 100, count).astype(np.int32),
        "spd": rng.random(count) * 100,
    }
    service.engine.insert("reports", pa.table({**columns, "_ts": at * 1_000_000, "_seq": at}))


def trains(service: StandingQueries, first: int, rng: np.random.Generator) -> None:
    """A train twice a second, so that followers have something to hear."""
    while True:
        time.sleep(0.5)
        put(service, first, 1_000, rng)
        first += 1_000


@contextmanager
def attacked(chosen: argparse.Namespace, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    words = ["-m", "benchmarks.standing.hostile", "--serve", f"--tuples={chosen.tuples}"]
    env = {**os.environ, "PYTHONPATH": ":".join([str(ROOT), *sys.path])}
    child = subprocess.Popen([sys.executable, *words], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        url = child.stdout.readline().strip()
        port = int(url.rpartition(":")[2])
        wait_for(port)
        yield port, psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(30)


def wait_for(port: int) -> None:
    """Wait until the service answers."""
    until = time.monotonic() + 60
    while True:
        try:
            health(port)
        except ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


# -- the attackers


class Attack:
    """One kind of attack, by connections of its own."""

    def __init__(
        self, port: int, chosen: argparse.Namespace, body: Callable[[Attack], Awaitable[None]]
    ) -> None:
        self.port, self.chosen, self._body = port, chosen, body
        self.statuses: Counter[int] = Counter()
        self.until = 0.0

    def run(self) -> Counter[int]:
        """Attack for some seconds; returns how often each status came."""
        self.until = time.monotonic() + self.chosen.seconds
        asyncio.run(self._wholly())
        return self.statuses

    async def _wholly(self) -> None:
        await self._body(self)

    async def many(self, count: int, one: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(*(self._again(one) for _ in range(count)))

    async def _again(self, one: Callable[[], Awaitable[None]]) -> None:
        while time.monotonic() < self.until:
            try:
                await one()
            except (OSError, asyncio.IncompleteReadError):
                self.statuses[0] += 1
                await asyncio.sleep(0.05)

    async def ask(self, method: str, path: str, body: object = None) -> bytes:
        data = b"" if body is None else json.dumps(body).encode()
        return await self.send(_head(method, path, len(data)) + data)

    async def send(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        try:
            writer.write(request)
            answer = await reader.read(1 << 16)
            while await reader.read(1 << 20):
                pass
        finally:
            writer.close()
        self.statuses[int(answer.split(b" ", 2)[1]) if answer else 0] += 1
        return answer.partition(b"\r\n\r\n")[2]

    async def registered(self, query: str) -> str:
        while True:
            with contextlib.suppress(ValueError, KeyError, OSError):  # busy: again
                return str(json.loads(await self.ask("POST", "/queries", {"query": query}))["handle"])
            await asyncio.sleep(0.2)


def _head(method: str, path: str, length: int) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


async def honest_clients(attack: Attack) -> None:
    async def one() -> None:
        text = "SELECT vid, spd FROM reports WHERE spd < 1 BEGIN now - 5000 seconds"
        handle = await attack.registered(text)
        await attack.ask("GET", f"/queries/{handle}/result")
        await attack.ask("DELETE", f"/queries/{handle}")
        await asyncio.sleep(1.0)

    await attack.many(attack.chosen.clients, one)


async def hostile_texts(attack: Attack) -> None:
    async def one() -> None:
        for text in (BACKSLASHES, LONG_LIST, LONG_LIST.replace(" IN", " NOT IN")):
            await attack.ask("POST", "/queries", {"query": text})

    await attack.many(8, one)


async def self_joins(attack: Attack) -> None:
    handle = await attack.registered(SELF_JOIN)

    async def one() -> None:
        await attack.ask("GET", f"/queries/{handle}/result")
        await attack.ask("POST", "/queries", {"query": SELF_JOIN})

    await attack.many(8, one)


async def large_answers(attack: Attack) -> None:
    handle = await attack.registered(EVERYTHING)

    async def one() -> None:
        await attack.ask("GET", f"/queries/{handle}/result")

    await attack.many(8, one)


async def large_bodies(attack: Attack) -> None:
    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", attack.port)
        try:
            head = b"POST /queries HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head)
            for _ in range(200):
                writer.write(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
                await writer.drain()
            await reader.read()
        finally:
            writer.close()

    await attack.many(8, one)


async def slow_requests(attack: Attack) -> None:
    async def one() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", attack.port)
        try:
            for byte in b"POST /queries HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.2)
                if time.monotonic() > attack.until:
                    return
        finally:
            writer.close()

    await attack.many(attack.chosen.followers, one)


async def silent_followers(attack: Attack) -> None:
    handle = await attack.registered("SELECT time, vid, seg, spd FROM reports BEGIN now - 5000 seconds")
    loop = asyncio.get_running_loop()

    async def one() -> None:
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            await loop.sock_connect(client, ("127.0.0.1", attack.port))
            await loop.sock_sendall(client, _head("GET", f"/queries/{handle}/changes", 0))
            await asyncio.sleep(max(0.0, attack.until - time.monotonic()))
        finally:
            client.close()

    await attack.many(attack.chosen.followers, one)


async def nobody(attack: Attack) -> None:
    await asyncio.sleep(attack.chosen.seconds)


ATTACKS: dict[str, Callable[[Attack], Awaitable[None]]] = {
    "nobody": nobody,
    CROWD: honest_clients,
    "hostile texts": hostile_texts,
    "self-joins": self_joins,
    "large answers": large_answers,
    "200 MB bodies": large_bodies,
    "slow requests": slow_requests,
    "silent followers": silent_followers,
}


# -- what is measured


def measure(name: str, attack: Attack, process: psutil.Process, record: Record) -> None:
    # In a process of its own: here its threads would delay what is measured.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as attackers:
        attackers.submit(time.time).result()  # it has started
        ended = attackers.submit(attack.run)
        waits, most = [], 0
        while not ended.done():
            waits.append(health(attack.port))
            most = max(most, process.memory_info().rss)
            time.sleep(0.02)
        statuses = ended.result()
    figures: dict[str, Any] = {
        "half_ms": quantile(waits, 0.5) * 1e3,
        "p99_ms": quantile(waits, 0.99) * 1e3,
        "slowest_ms": max(waits) * 1e3,
        "asked": len(waits),
        "above": sum(wait > HEALTHY for wait in waits),
        "megabytes": most / 1e6,
        "statuses": dict(sorted(statuses.items())),
    }
    record.figures[name] = figures
    # Above what the machine itself takes, for others may be busy on it too. Honest clients are no attack:
    # 2,000 of them take all that the service has, and `/health` waits in the same queue.
    if name != CROWD and figures["p99_ms"] > HEALTHY * 1e3 + record.figures["nobody"]["p99_ms"]:
        record.found_wrong(f"{name}: /health took {figures['p99_ms']:.0f} ms")
    if statuses[500]:
        record.found_wrong(f"{name}: {statuses[500]} answers were 500")


def health(port: int) -> float:
    """Seconds until `/health` has answered."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(_head("GET", "/health", 0))
        answer = client.recv(4096)
    assert b" 200 " in answer.partition(b"\r\n")[0], answer
    return time.perf_counter() - began


def report(figures: dict[str, dict[str, Any]]) -> None:
    rows = [{"attack": name, **each, "statuses": str(each["statuses"])} for name, each in figures.items()]
    show("/health under attack", rows)


if __name__ == "__main__":
    sys.exit(main())
