"""The routes of standing queries: register, invoke, list, unregister, follow changes.

Clients come and go (PSoup, Sect. 1; P09). A handle is a name that anyone may use until it is unregistered.
Answers are JSON, or Arrow for clients that accept it. `/docs` is the OpenAPI page. The server, the guard in
front of it and the form of errors are in `penstock.http`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypedDict

import pyarrow as pa
from fastapi import FastAPI, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from penstock import __version__
from penstock.http.error_bodies import Statuses, answer_errors, error_body
from penstock.http.guard import Guard
from penstock.model.errors import PenstockError
from penstock.standing.answers.changes import ChangeFollower
from penstock.standing.answers.registered_query import QueryDescription
from penstock.standing.errors import LimitError, NotRetainedError, QueryError, UnknownHandleError
from penstock.standing.serving.service import StandingQueries, StreamDescription
from penstock.standing.serving.wakeups import Wakeups
from penstock.store.ipc import ipc_bytes

ARROW = "application/vnd.apache.arrow.stream"
_BEAT = 1.0  # seconds after which a silent stream of changes sends a sign of life
_STATUSES: Statuses = [
    (UnknownHandleError, 404),
    (LimitError, 429),
    (NotRetainedError, 410),
    (QueryError, 400),
]
_EXAMPLE = (
    "SELECT vid, spd FROM reports WHERE spd < 20 AND seg BETWEEN 40 AND 60 BEGIN now - 10 minutes END now"
)


JsonValue = None | bool | int | float | str
JsonRow = dict[str, JsonValue]


class Answer(TypedDict):
    """An answer as JSON."""

    handle: str
    columns: list[str]
    count: int
    rows: list[JsonRow]


class NewQuery(BaseModel):
    """A query to register."""

    query: str = Field(description="SELECT ... FROM ... WHERE ... BEGIN ... END ...", examples=[_EXAMPLE])
    client: str = Field("", description="Limits are counted for each client.", examples=["dashboard"])
    mode: str | None = Field(None, description="How results are kept: P, C or NoMat; by a rule if left out.")


def standing_app(service: StandingQueries) -> FastAPI:
    """The web application on a service."""
    app = FastAPI(
        title="Penstock standing queries",
        version=__version__,
        description="Register a query once, invoke it any time, over data from before and after.",
    )
    app.add_middleware(Guard)
    answer_errors(app, _STATUSES)
    _add_query_routes(app, service)
    _add_answer_routes(app, service)
    _add_status_routes(app, service)
    return app


def _add_query_routes(app: FastAPI, service: StandingQueries) -> None:
    """Register, list, describe, unregister."""

    @app.post("/queries", status_code=201, summary="Register a query", response_model=None)
    def register(new: NewQuery) -> QueryDescription:
        """The handle is what all other calls take; the query is on disk when this answers."""
        return service.register(new.query, client=new.client, mode=new.mode).describe()

    @app.get("/queries", summary="List the registered queries", response_model=None)
    def list_queries(
        client: Annotated[str | None, Query(description="Only this client's.")] = None,
    ) -> list[QueryDescription]:
        return service.list(client)

    @app.get("/queries/{handle}", summary="Describe a query", response_model=None)
    def describe(handle: str) -> QueryDescription:
        return service.handle(handle).describe()

    @app.delete("/queries/{handle}", status_code=204, summary="Unregister a query")
    def unregister(handle: str) -> None:
        service.unregister(handle)


def _add_answer_routes(app: FastAPI, service: StandingQueries) -> None:
    """The current answer, and the stream of its changes."""
    wakeups = Wakeups(service.engine)

    @app.get("/queries/{handle}/result", summary="Invoke a query: its current answer", response_model=None)
    def invoke(
        handle: str,
        at: Annotated[
            str | None, Query(description="An earlier `now`: ISO time, or seconds since 1970.")
        ] = None,
        accept: Annotated[str, Header(description=f"`{ARROW}` gives Arrow instead of JSON.")] = "",
    ) -> Response | Answer:
        return _answer(service.invoke(handle, at=_moment(at)), handle, accept)

    @app.post("/queries/{handle}/invoke", summary="Invoke a query (as GET result)", response_model=None)
    def invoke_by_post(handle: str, accept: Annotated[str, Header()] = "") -> Response | Answer:
        return _answer(service.invoke(handle), handle, accept)

    @app.get("/queries/{handle}/changes", summary="The stream of changes (server-sent events)")
    def follow(handle: str) -> StreamingResponse:
        """First the whole answer as `added`, then the rows that enter and leave it, train by train."""
        service.handle(handle)
        return StreamingResponse(_events(service, wakeups, handle), media_type="text/event-stream")


def _add_status_routes(app: FastAPI, service: StandingQueries) -> None:
    """What can be asked, and whether the service is ready."""

    @app.get("/streams", summary="What queries may name", response_model=None)
    def streams() -> list[StreamDescription]:
        return service.streams()

    @app.get("/health", summary="Whether trains run")
    def health(response: Response) -> dict[str, bool | int | str]:
        try:
            service.runtime.check()
        except PenstockError as error:
            response.status_code = 503
            return {"ok": False, "error": str(error)}
        return {"ok": True, "version": service.engine.version, "queries": len(service.engine.queries)}


def _moment(at: str | None) -> str | float | None:
    try:
        return None if at is None else float(at)
    except ValueError:
        return at


def _answer(table: pa.Table, handle: str, accept: str) -> Response | Answer:
    if ARROW not in accept:
        return Answer(handle=handle, columns=table.column_names, count=table.num_rows, rows=rows_of(table))
    return Response(ipc_bytes(table), media_type=ARROW)


def rows_of(table: pa.Table) -> list[JsonRow]:
    """Rows as JSON values: times as ISO text, NaN and infinities as words.

    >>> rows_of(pa.table({"v": [1.5, float("nan")]}))
    [{'v': 1.5}, {'v': 'NaN'}]
    """
    return [{name: _json_value(value) for name, value in row.items()} for row in table.to_pylist()]


def _json_value(value: Any) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return value.hex()
    # Dates and times of Arrow's columns; everything else is JSON already.
    return value.isoformat() if hasattr(value, "isoformat") else value  # type: ignore[no-any-return]


async def _events(service: StandingQueries, wakeups: Wakeups, handle: str) -> AsyncIterator[str]:
    """Events for one follower. It waits without a thread, so thousands may follow while others ask."""
    following = ChangeFollower(service.engine, handle)
    with wakeups.subscribed() as news:
        try:
            while True:
                news.clear()
                text = await run_in_threadpool(_event, following)
                if text:
                    yield text
                try:
                    await asyncio.wait_for(news.wait(), _BEAT)
                except TimeoutError:
                    yield ": nothing new\n\n"
        except UnknownHandleError:
            yield "event: end\ndata: {}\n\n"
        except QueryError as error:
            yield f"event: error\ndata: {json.dumps(error_body(error))}\n\n"


def _event(following: ChangeFollower) -> str:
    change = following.step()
    if change is None:
        return ""
    body = {"version": change.version, "added": rows_of(change.added), "removed": rows_of(change.removed)}
    return f"event: change\nid: {change.version}\ndata: {json.dumps(body)}\n\n"
