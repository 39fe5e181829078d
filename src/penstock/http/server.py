"""The one HTTP server: it takes a port, serves an application in this thread or another, and ends cleanly."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from penstock.model.errors import PenstockError
from penstock.process.stop_signal import StopSignal

_GRACE = 3  # seconds that open requests get at the end


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


def serve(app: FastAPI, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, and return: what is left to do is the caller's own clean end."""
    # uvicorn ends at these signals and then raises them once more, for whoever had a handler before.
    StopSignal().take_signals()
    _server(app).run(sockets=[listener])


@contextmanager
def serving(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve in a thread of its own, and give the URL; the server ends with the block."""
    listener = take_port(host, port)
    server = _server(app)
    thread = threading.Thread(target=server.run, args=([listener],), name="http", daemon=True)
    thread.start()
    server.begun.wait()
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(2 * _GRACE)


class _Server(uvicorn.Server):
    """Tells when clients can connect, or that they never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.begun = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.begun.set()


def _server(app: FastAPI) -> _Server:
    return _Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_GRACE))
