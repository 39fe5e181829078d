"""The one HTTP server: it takes a port, serves an application in this thread or another, and ends cleanly."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from penstock.http.connections import timed_connection
from penstock.http.front_door import FrontDoor
from penstock.http.limits import ServerLimits
from penstock.model.errors import PenstockError
from penstock.process.open_files import allow_open_files
from penstock.process.stop_signal import StopSignal

_GRACE = 3  # seconds that open requests get at the end
_OTHER_FILES = 1_024  # open files beside connections


def take_port(host: str, port: int) -> socket.socket:
    """A socket with this address, 0 for any free port. Nobody can connect before it is served.

    Take it before anything slow starts: a port that is taken is then refused at once.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        problem = f"cannot listen on {host}:{port}"
        reason = getattr(error, "strerror", None) or str(error)
        hint = "choose another with --port or --host"
        raise PenstockError(problem, found=reason, hint=hint) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a client finds what is served on a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: FastAPI,
    listener: socket.socket,
    limits: ServerLimits | None = None,
    *,
    ended: threading.Event | None = None,
) -> None:
    """Serve until SIGINT, SIGTERM or `ended`, and return: what is left is the caller's own clean end."""
    # uvicorn ends at these signals and then raises them once more, for whoever had a handler before.
    StopSignal().take_signals()
    server = _server(app, limits or ServerLimits())
    if ended is not None:
        threading.Thread(target=_end_with, args=(server, ended), name="http-end", daemon=True).start()
    server.run(sockets=[listener])


def _end_with(server: uvicorn.Server, ended: threading.Event) -> None:
    ended.wait()
    server.should_exit = True


@contextmanager
def serving(
    app: FastAPI, host: str = "127.0.0.1", port: int = 0, limits: ServerLimits | None = None
) -> Iterator[str]:
    """Serve in a thread of its own, and give the URL; the server ends with the block."""
    with serving_on(app, take_port(host, port), limits) as url:
        yield url


@contextmanager
def serving_on(app: FastAPI, listener: socket.socket, limits: ServerLimits | None = None) -> Iterator[str]:
    """The same on a port that was taken before."""
    server = _server(app, limits or ServerLimits())
    thread = threading.Thread(target=server.run, args=([listener],), name="http", daemon=True)
    thread.start()
    server.begun.wait()
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(2 * _GRACE)


class _Server(uvicorn.Server):
    """Takes connections from its front door. At its end it calls `app.state.at_end`.

    `begun` tells when clients can connect, or that they never will.
    """

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.app = app
        self.begun = threading.Event()
        self._door: FrontDoor | None = None
        self._taking: set[asyncio.Task[object]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup([])  # the door listens
            loop = asyncio.get_running_loop()
            self._door = FrontDoor(
                sockets or [], self.config, lambda clients: _hand_over(loop, self._take, clients)
            )
            self._door.open()
        finally:
            self.begun.set()

    def _take(self, clients: list[socket.socket]) -> None:
        """Serve connections that the door has accepted."""
        loop = asyncio.get_running_loop()
        for client in clients:
            client.setblocking(False)
            work = loop.connect_accepted_socket(self._protocol, client)
            task: asyncio.Task[object] = loop.create_task(work)
            self._taking.add(task)
            task.add_done_callback(self._taken)

    def _taken(self, task: asyncio.Task[object]) -> None:
        self._taking.discard(task)
        if not task.cancelled():
            task.exception()  # a client that is gone already is no news

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]  # of uvicorn's own protocols
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._door is not None:
            self._door.close()
        # Answers without end, such as streams of events, end now; uvicorn would wait and then break them.
        for end in getattr(self.app.state, "at_end", ()):
            end()
        await super().shutdown(sockets)


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    take: Callable[[list[socket.socket]], None],
    clients: list[socket.socket],
) -> None:
    try:
        loop.call_soon_threadsafe(take, clients)
    except RuntimeError:  # the service has ended
        for client in clients:
            client.close()


def _server(app: FastAPI, limits: ServerLimits) -> _Server:
    allow_open_files(limits.connections + _OTHER_FILES)
    config = uvicorn.Config(
        app,
        http=timed_connection(limits),
        ws="none",
        log_level="error",  # a malformed request is the client's affair
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=_GRACE,
        server_header=False,
        proxy_headers=False,  # nobody may say for others where they come from
    )
    return _Server(app, config)
