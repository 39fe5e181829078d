"""The web application of a console: the page, the API, the guard in front of both."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response

from penstock import __version__
from penstock.http.access import Access
from penstock.http.api_page import add_api_page
from penstock.http.error_bodies import answer_errors, json_response
from penstock.http.guard import Guard
from penstock.http.limits import ServerLimits
from penstock.http.rates import ChangeRates
from penstock.model.json_types import JsonObject
from penstock.web.look.history import decisions_json
from penstock.web.page import add_page, is_page
from penstock.web.routes.background import BackgroundWork
from penstock.web.routes.editing import add_editing
from penstock.web.routes.error_statuses import answer_console_errors
from penstock.web.routes.holding import add_holding
from penstock.web.routes.looking import add_looking
from penstock.web.routes.metrics import add_metrics
from penstock.web.routes.queries import Queries, QueriesMount, QueriesOfRuntime
from penstock.web.routes.questions import add_questions
from penstock.web.routes.road import add_road
from penstock.web.routes.session import add_session
from penstock.web.service import ConsoleService

_LOG = logging.getLogger("penstock.console")
_EVERY = 1.0  # seconds between two statuses
_RECENT = 100  # decisions that a slow page may miss at most
_ABOUT = "See, question, steer and edit a running network. Every write carries the network's version."


def console_app(
    service: ConsoleService, access: Access | None = None, limits: ServerLimits | None = None
) -> FastAPI:
    """The application of a console that stands alone."""
    app = FastAPI(
        title="Penstock console", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None
    )
    app.state.at_end = []
    app.add_middleware(Guard, access=access, limits=limits, is_open=is_page, rates=ChangeRates())
    answer_errors(app, ())
    add_api_page(app)
    add_health(app, service)
    queries = QueriesOfRuntime(service)
    app.state.at_end.append(queries.end)
    add_console(app, service, access or Access(), queries)
    return app


def add_console(app: FastAPI, service: ConsoleService, access: Access, queries: Queries) -> None:
    """Add the page and the API to an application that has a guard. `queries` serves /api/queries."""
    work = BackgroundWork(service)
    app.state.at_end.append(service.events.end)
    answer_console_errors(app)
    add_page(app)
    add_session(app, access)
    add_metrics(app, service.watched)
    add_looking(app, work)
    add_holding(app, work)
    add_questions(app, work)
    add_editing(app, work)
    add_road(app, work)
    app.mount("/api", QueriesMount(queries))
    before = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(served: FastAPI) -> AsyncIterator[Any]:
        async with before(served) as state, alive(work):
            yield state

    app.router.lifespan_context = lifespan


def add_health(app: FastAPI, service: ConsoleService) -> None:
    """Whether the run lives: the one thing that strangers may ask."""

    @app.get("/health", summary="Whether the network runs")
    async def health(_: Request) -> Response:
        state, _error = service.watched.state()
        return json_response({"ok": state != "failed", "state": state}, 503 if state == "failed" else 200)


@asynccontextmanager
async def alive(work: BackgroundWork) -> AsyncIterator[None]:
    """While the server runs, send what changes to the pages."""
    work.service.events.begin()
    task = asyncio.create_task(_tell(work))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        work.stop()


async def _tell(work: BackgroundWork) -> None:
    service, last = work.service, 0

    def fresh_decisions() -> list[JsonObject]:
        return decisions_json(service.watched.catalog, _RECENT, last)

    while True:
        await asyncio.sleep(_EVERY)
        try:
            if service.watched.runtime is not None:
                await work.look(service.tick)
            if not service.events.pages:
                continue
            service.events.publish("status", await work.look(service.status))
            fresh = await work.look(fresh_decisions)
        except Exception as error:
            # Pages stay with what they have; the next second may be better.
            _LOG.info("no status for the pages: %s", error)
            continue
        for decision in fresh:
            last = decision["id"]
            service.events.publish("decision", decision, key=f"decision {last % _RECENT}")
