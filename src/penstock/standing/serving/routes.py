"""The routes of standing queries: register, invoke, list, unregister, follow changes.

Clients come and go (PSoup, Sect. 1; P09). A handle is a name that its owner may use until it is unregistered.
Answers are JSON, or Arrow for clients that accept it. `/docs` is a page of all routes. The server, the guard
in front of it and the form of errors are in `penstock.http`.

Routes run in the event loop and do nothing slow themselves: reading a query, registering it and answering it
have threads of their own, so none of the three has to wait for the others.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Literal, TypeVar

import pyarrow as pa
from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from penstock import __version__
from penstock.http.access import Access
from penstock.http.api_page import add_api_page
from penstock.http.error_bodies import Statuses, answer_errors, json_response
from penstock.http.guard import OPEN_PATHS, Guard, IsOpen
from penstock.http.limits import ServerLimits
from penstock.http.slow_work import SlowWork
from penstock.standing.answers.registered_query import QueryDescription
from penstock.standing.deadline import time_limit
from penstock.standing.errors import (
    LimitError,
    NotRetainedError,
    OutOfTimeError,
    QueryError,
    StaleError,
    UnknownHandleError,
)
from penstock.standing.serving.followers import EventsResponse, Followers
from penstock.standing.serving.json_rows import json_object
from penstock.standing.serving.outgoing import OutgoingAnswers, PiecesResponse
from penstock.standing.serving.parser_process import PARSER
from penstock.standing.serving.service import StandingQueries
from penstock.store.ipc import ipc_bytes

ARROW = "application/vnd.apache.arrow.stream"
_STATUSES: Statuses = [
    (UnknownHandleError, 404),
    (LimitError, 429),
    (NotRetainedError, 410),
    (StaleError, 503),
    (OutOfTimeError, 503),
    (QueryError, 400),
]
_EXAMPLE = (
    "SELECT vid, spd FROM reports WHERE spd < 20 AND seg BETWEEN 40 AND 60 BEGIN now - 10 minutes END now"
)
_LOADING = 600.0  # seconds: the first query on a stream waits until its history is loaded
_WAITING = ServerLimits().connections
_WAIT = 2  # a request may wait for a thread about as long as it may take
_LISTED = 500  # descriptions that are written together
T = TypeVar("T")


class NewQuery(BaseModel):
    """A query to register."""

    query: str = Field(description="SELECT ... FROM ... WHERE ... BEGIN ... END ...", examples=[_EXAMPLE])
    client: str = Field(
        "", max_length=200, description="A label, by which `GET /queries` can choose.", examples=["dashboard"]
    )
    mode: Literal["P", "C", "NoMat"] | None = Field(
        None, description="How results are kept: P, C or NoMat; by a rule if left out."
    )


def standing_app(
    service: StandingQueries,
    access: Access | None = None,
    limits: ServerLimits | None = None,
    is_open: IsOpen = OPEN_PATHS.__contains__,
) -> FastAPI:
    """The web application on a service. `is_open`: which paths need no token."""
    app = bare_standing_app(service)
    app.add_middleware(Guard, access=access, limits=limits, is_open=is_open)
    add_api_page(app)
    return app


def bare_standing_app(service: StandingQueries) -> FastAPI:
    """The routes alone, for an application that has a guard of its own."""
    work = _Work(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        work.stop()

    app = FastAPI(
        title="Penstock standing queries",
        version=__version__,
        description="Register a query once, invoke it any time, over data from before and after.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.at_end = [work.followers.end]
    answer_errors(app, _STATUSES)
    _add_query_routes(app, work)
    _add_answer_routes(app, work)
    _add_status_routes(app, work)
    return app


class _Work:
    """What clients make a service do, each kind in threads of its own."""

    def __init__(self, service: StandingQueries) -> None:
        self.service, self.limits = service, service.engine.limits
        # As many may wait as can be connected: a crowd of honest clients waits, it is not refused. What
        # hostile ones make the service hold is bounded in bytes.
        self._parsing = SlowWork("parse", threads=1, waiting=_WAITING)
        self._registering = SlowWork("register", threads=2, waiting=_WAITING)
        self._answering = SlowWork("answer", threads=4, waiting=_WAITING)
        self.followers = Followers(service, SlowWork("follow", threads=2, waiting=self.limits.followers))
        self.outgoing = OutgoingAnswers(4 * self.limits.answer_bytes)

    async def register(self, new: NewQuery, owner: str) -> dict[str, object]:
        """Read the query where it can be cancelled, then register it where its stream may be loaded."""
        service = self.service
        service.add_streams()
        query = await self._parsing.run(
            lambda: PARSER.parse(new.query, service.engine.streams, self.limits), _LOADING, len(new.query)
        )
        handle = await self.change(
            lambda: self.service.register(query, owner=owner, client=new.client, mode=new.mode),
            len(new.query),
        )
        return dict(handle.describe())

    async def change(self, function: Callable[[], T], size: int = 0) -> T:
        """Do something that changes the registry."""
        return await self._registering.run(function, _LOADING, size)

    async def answer(self, function: Callable[[], T]) -> T:
        """Compute something for a client within its time."""

        def limited() -> T:
            with time_limit(self.limits.seconds):
                return function()

        return await self._answering.run(limited, _WAIT * self.limits.seconds)

    def stop(self) -> None:
        for work in (self._parsing, self._registering, self._answering):
            work.stop()


def _add_query_routes(app: FastAPI, work: _Work) -> None:
    """Register, list, describe, unregister."""
    service = work.service

    @app.post("/queries", status_code=201, summary="Register a query", response_model=None)
    async def register(new: NewQuery, request: Request) -> Response:
        """The handle is what all other calls take; the query is on disk when this answers."""
        return json_response(await work.register(new, _owner(request)), 201)

    @app.get("/queries", summary="List your queries", response_model=None)
    async def list_queries(
        request: Request,
        client: Annotated[str | None, Query(description="Only those with this label.")] = None,
    ) -> Response:
        pieces = await work.answer(lambda: _list_pieces(service.list(client, _owner(request))))
        return PiecesResponse(pieces, work.outgoing, "application/json")

    @app.get("/queries/{handle}", summary="Describe a query", response_model=None)
    async def describe(handle: str, request: Request) -> Response:
        return json_response(dict(service.handle(handle, _owner(request)).describe()))

    @app.delete("/queries/{handle}", status_code=204, summary="Unregister a query", response_model=None)
    async def unregister(handle: str, request: Request) -> Response:
        await work.change(lambda: service.unregister(handle, _owner(request)))
        return Response(status_code=204)


def _list_pieces(queries: Sequence[QueryDescription]) -> list[bytes]:
    parts = [json.dumps(queries[i : i + _LISTED])[1:-1] for i in range(0, len(queries), _LISTED)]
    return [b"[", *(f"{', ' if i else ''}{part}".encode() for i, part in enumerate(parts)), b"]"]


def _add_answer_routes(app: FastAPI, work: _Work) -> None:
    """The current answer, and the stream of its changes."""
    service = work.service

    async def answer(handle: str, request: Request, at: str | None, accept: str) -> Response:
        service.handle(handle, _owner(request))
        pieces = _arrow_pieces if ARROW in accept else _json_pieces
        moment, most = _moment(at), work.limits.answer_bytes
        body = await work.answer(lambda: pieces(service.invoke(handle, at=moment), handle, most))
        kind = ARROW if ARROW in accept else "application/json"
        return PiecesResponse(body, work.outgoing, kind)

    @app.get("/queries/{handle}/result", summary="Invoke a query: its current answer", response_model=None)
    async def invoke(
        handle: str,
        request: Request,
        at: Annotated[
            str | None, Query(description="An earlier `now`: ISO time, or seconds since 1970.")
        ] = None,
        accept: Annotated[str, Header(description=f"`{ARROW}` gives Arrow instead of JSON.")] = "",
    ) -> Response:
        """`as_of` is the event time up to which tuples count, `age` the seconds since the network moved."""
        return await answer(handle, request, at, accept)

    @app.post("/queries/{handle}/invoke", summary="Invoke a query (as GET result)", response_model=None)
    async def invoke_by_post(
        handle: str, request: Request, accept: Annotated[str, Header()] = ""
    ) -> Response:
        return await answer(handle, request, None, accept)

    @app.get("/queries/{handle}/changes", summary="The stream of changes (server-sent events)")
    async def follow(handle: str, request: Request) -> StreamingResponse:
        """First the whole answer as `added`, then the rows that enter and leave it, train by train."""
        service.handle(handle, _owner(request))
        service.freshness.check()
        return EventsResponse(work.followers, handle)


def _json_pieces(table: pa.Table, handle: str, most: int) -> list[bytes]:
    said = table.schema.metadata
    fields = {
        "handle": handle,
        "as_of": said[b"as_of"].decode() or None,
        "age": float(said[b"age"]),
        "columns": table.column_names,
        "count": table.num_rows,
    }
    return json_object(fields, {"rows": table}, most)


def _arrow_pieces(table: pa.Table, _handle: str, _most: int) -> list[bytes]:
    return [ipc_bytes(table)]


def _add_status_routes(app: FastAPI, work: _Work) -> None:
    """What can be asked, and whether the service is ready."""
    service = work.service

    @app.get("/streams", summary="What queries may name", response_model=None)
    async def streams() -> Response:
        described = await work.answer(service.streams)
        return Response(json.dumps(described).encode(), media_type="application/json")

    @app.get("/health", summary="Whether trains run", response_model=None)
    async def health(request: Request) -> Response:
        """Answered in the event loop from what is known: it never waits for anything."""
        try:
            age = service.freshness.check()
        except StaleError as error:
            return json_response({"ok": False, "error": str(error)}, 503)
        if request.state.owner is None:  # a stranger, where clients have tokens
            return json_response({"ok": True})
        engine = service.engine
        return json_response(
            {"ok": True, "age": round(age, 3), "version": engine.version, "queries": len(engine.queries)}
        )


def _owner(request: Request) -> str:
    owner: str = request.state.owner
    return owner


def _moment(at: str | None) -> str | float | None:
    try:
        return None if at is None else float(at)
    except ValueError:
        return at
