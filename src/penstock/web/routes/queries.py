"""Standing queries under /api: the same calls as `penstock standing serve` has at the root."""

from __future__ import annotations

import threading
from typing import Protocol

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.http.error_bodies import error_body, json_response
from penstock.http.slow_work import SlowWork
from penstock.model.errors import PenstockError
from penstock.standing.serving.routes import bare_standing_app
from penstock.standing.serving.service import StandingQueries
from penstock.web.service import ConsoleService

_PATHS = ("/queries", "/streams")
_MEMORY = 256 << 20  # bytes for tuples and results beside a run
_STARTING = 120.0  # seconds


class Queries(Protocol):
    """Where standing queries are answered."""

    async def app(self) -> ASGIApp:
        """The application that answers them."""


class QueriesMount:
    """Hands requests below /api/queries on, as if they had come without /api."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix("/api")
        if not path.startswith(_PATHS):
            response = json_response({"error": "Not Found", "kind": "refused", "problem": "Not Found"}, 404)
            await response(scope, receive, send)
            return
        try:
            app = await self._queries.app()
        except PenstockError as error:
            await json_response(error_body(error), 409)(scope, receive, send)
            return
        await app({**scope, "path": path, "raw_path": path.encode(), "root_path": ""}, receive, send)


class SameApp:
    """The application itself answers them at its root."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def app(self) -> ASGIApp:
        """The application."""
        return self._app


class QueriesOfRuntime:
    """Starts a service for standing queries on the console's runtime, when somebody first asks for one."""

    def __init__(self, service: ConsoleService) -> None:
        self._console, self._lock = service, threading.Lock()
        self._starting = SlowWork("queries-start", threads=1, waiting=20)
        self._service: StandingQueries | None = None
        self._app: FastAPI | None = None

    async def app(self) -> ASGIApp:
        """The application, once the service runs."""
        if self._app is None:
            await self._starting.run(self._start, _STARTING)
        assert self._app is not None
        return self._app

    def _start(self) -> None:
        with self._lock:
            if self._app is None:
                runtime = self._console.running()
                self._service = StandingQueries(runtime, memory=_MEMORY)
                self._app = bare_standing_app(self._service)

    def end(self) -> None:
        """End the service, if there is one."""
        with self._lock:
            if self._service is not None and self._app is not None:
                for stop in self._app.state.at_end:
                    stop()  # followers get a last word
                self._service.stop()
                self._service = None
