"""The front door: it accepts connections in a thread of its own, and answers `/health` there.

The event loop of a service has as much to do as its clients make it do: a thousand that connect at once, each
with a request, take it seconds. Whoever asks whether the service lives must not wait behind them, neither for
a turn of that loop nor in the queue of connections that nobody has accepted yet. So a second, small loop
accepts all of them. It looks at the first bytes: a whole request for `/health` is answered at once, anything
else is handed to the service's own loop.

While that loop computes, each call to the system costs the door its turn: the interpreter goes to the other
thread, and comes back after the switch interval. So the door makes as few calls for a connection as it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Callable

from uvicorn.config import Config
from uvicorn.server import ServerState

HEALTH = b"GET /health "
_WAITING = 2_048  # connections that the system keeps until they are accepted
_A_TURN = 64  # connections that one turn accepts: those who wait for an answer here have theirs first
_LOOK = 4_096  # bytes
_PATIENCE = 0.05  # seconds for the first bytes to come; the service's own loop knows how to wait longer
_LONGEST_ANSWER = 5.0
_BODY = re.compile(rb"\r\n(?:transfer-encoding:|content-length:(?![ \t]*0[ \t]*\r\n))", re.IGNORECASE)

HandOver = Callable[[list[socket.socket]], None]


def is_health(start: bytes) -> bool:
    r"""Whether these bytes are one whole request for `/health`, without a body.

    >>> is_health(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"), is_health(b"GET /healthy HTTP/1.1\r\n\r\n")
    (True, False)
    >>> is_health(b"GET /health HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    True
    >>> is_health(b"GET /health HTTP/1.1\r\nContent-Length: 05\r\n\r\n")
    False
    """
    return (
        start.startswith(HEALTH)
        and start.endswith(b"\r\n\r\n")
        and start.count(b"\r\n\r\n") == 1
        and _BODY.search(start) is None
    )


class FrontDoor:
    """Accepts from some listening sockets until it is closed. `hand_over` is called in the door's thread."""

    def __init__(self, listeners: list[socket.socket], config: Config, hand_over: HandOver) -> None:
        self._listeners, self._config, self._hand_over = listeners, config, hand_over
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="http-door", daemon=True)
        # One answer a connection: a later request on it may be for any route, and those belong elsewhere.
        self._state = ServerState()
        self._state.default_headers = [(b"connection", b"close")]
        self._tasks: set[asyncio.Task[None]] = set()
        self._for_service: list[socket.socket] = []

    def open(self) -> None:
        """Begin."""
        for listener in self._listeners:
            listener.setblocking(False)
            listener.listen(_WAITING)
            self._loop.add_reader(listener, self._accept, listener)
        self._thread.start()

    def close(self) -> None:
        """Accept no more."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LONGEST_ANSWER)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for listener in self._listeners:
            self._loop.remove_reader(listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_A_TURN):
            try:
                client, _address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                # No file descriptor is left. Those who wait stay in the queue; look again a little later.
                self._loop.remove_reader(listener)
                self._loop.call_later(_PATIENCE, self._loop.add_reader, listener, self._accept, listener)
                return
            start = _peek(client)
            if start is None:
                self._start(self._wait_for_bytes(client))
            else:
                self._receive(client, start)

    def _start(self, work: asyncio._CoroutineLike[None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_for_bytes(self, client: socket.socket) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._readable(client), _PATIENCE)
        self._receive(client, _peek(client) or b"")

    def _receive(self, client: socket.socket, start: bytes) -> None:
        """Decide by the first bytes who reads them. They have not been taken."""
        if is_health(start):
            self._start(self._answer(client))
            return
        if not self._for_service:
            self._loop.call_soon(self._hand_all_over)
        self._for_service.append(client)

    def _hand_all_over(self) -> None:
        clients, self._for_service = self._for_service, []
        self._hand_over(clients)

    async def _answer(self, client: socket.socket) -> None:
        client.setblocking(False)
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(self._protocol, client)

    async def _readable(self, client: socket.socket) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(client, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(client)

    def _protocol(self) -> asyncio.Protocol:
        return self._config.http_protocol_class(  # type: ignore[call-arg]  # of uvicorn's own protocols
            config=self._config, server_state=self._state, app_state={}, _loop=self._loop
        )


def _peek(client: socket.socket) -> bytes | None:
    """The first bytes, which stay where they are; None: they have not come yet."""
    try:
        return client.recv(_LOOK, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""
