"""The routes of standing queries: register, invoke, list, unregister, and the stream of changes. `/docs` is the OpenAPI page.

Clients come and go (PSoup, Sect. 1; P09): a handle is a name, valid until it is unregistered, whoever asks. Answers are
JSON, or Arrow for those who accept it. The server, the guard in front and the form of errors are in `penstock.http`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Annotated, Any

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
from penstock.standing.errors import LimitError, NotRetainedError, QueryError, UnknownHandleError
from penstock.standing.serving.service import StandingQueries
from penstock.standing.serving.wakeups import Wakeups
from penstock.store.ipc import ipc_bytes

ARROW = "application/vnd.apache.arrow.stream"
_BEAT = 1.0  # seconds after which a silent stream of changes shows that it lives
_STATUSES: Statuses = [
    (UnknownHandleError, 404),
    (LimitError, 429),
    (NotRetainedError, 410),
    (QueryError, 400),
]
_EXAMPLE = (
    "SELECT vid, spd FROM reports WHERE spd < 20 AND seg BETWEEN 40 AND 60 BEGIN now - 10 minutes END now"
)


class NewQuery(BaseModel):
    """A query to be registered."""

    query: str = Field(description="SELECT ... FROM ... WHERE ... BEGIN ... END ...", examples=[_EXAMPLE])
    client: str = Field("", description="Limits are counted for each client.", examples=["dashboard"])
    mode: str | None = Field(None, description="How results are kept: P, C or NoMat; by a rule if left out.")


def standing_app(service: StandingQueries) -> FastAPI:
    """The web application on a service."""
    app = FastAPI(
        title="Penstock standing queries", version=__version__,
        description="Register a query once, invoke it any time: the answer covers data from before and after.",
    )  # fmt: skip
    app.add_middleware(Guard)
    answer_errors(app, _STATUSES)
    wakeups = Wakeups(service.engine)

    @app.post("/queries", status_code=201, summary="Register a query")
    def register(new: NewQuery) -> dict[str, Any]:
        """The handle is what all other calls take; the query is on disk when this answers."""
        return service.register(new.query, client=new.client, mode=new.mode).describe()

    @app.get("/queries", summary="List the registered queries")
    def listed(
        client: Annotated[str | None, Query(description="Only this client's.")] = None,
    ) -> list[dict[str, Any]]:
        return service.list(client)

    @app.get("/queries/{handle}", summary="Describe a query")
    def described(handle: str) -> dict[str, Any]:
        return service.handle(handle).describe()

    @app.delete("/queries/{handle}", status_code=204, summary="Unregister a query")
    def unregister(handle: str) -> None:
        service.unregister(handle)

    @app.get("/queries/{handle}/result", summary="Invoke a query: its current answer", response_model=None)
    def invoke(
        handle: str,
        at: Annotated[
            str | None, Query(description="An earlier `now`: ISO time, or seconds since 1970.")
        ] = None,
        accept: Annotated[str, Header(description=f"`{ARROW}` gives Arrow instead of JSON.")] = "",
    ) -> Response | dict[str, Any]:
        return _answer(service.invoke(handle, at=_moment(at)), handle, accept)

    @app.post("/queries/{handle}/invoke", summary="Invoke a query (as GET result)", response_model=None)
    def invoke_too(handle: str, accept: Annotated[str, Header()] = "") -> Response | dict[str, Any]:
        return _answer(service.invoke(handle), handle, accept)

    @app.get("/queries/{handle}/changes", summary="The stream of changes (server-sent events)")
    def changed(handle: str) -> StreamingResponse:
        """First the whole answer as `added`, then what comes and what leaves, train by train."""
        service.handle(handle)
        return StreamingResponse(_events(service, wakeups, handle), media_type="text/event-stream")

    @app.get("/streams", summary="What queries may name")
    def streams() -> list[dict[str, Any]]:
        return service.streams()

    @app.get("/health", summary="Whether trains run")
    def health(response: Response) -> dict[str, Any]:
        try:
            service.runtime.check()
        except PenstockError as error:
            response.status_code = 503
            return {"ok": False, "error": str(error)}
        return {"ok": True, "version": service.engine.version, "queries": len(service.engine.queries)}

    return app


def _moment(at: str | None) -> str | float | None:
    try:
        return None if at is None else float(at)
    except ValueError:
        return at


def _answer(table: pa.Table, handle: str, accept: str) -> Response | dict[str, Any]:
    if ARROW not in accept:
        return {
            "handle": handle,
            "columns": table.column_names,
            "count": table.num_rows,
            "rows": rows_of(table),
        }
    return Response(ipc_bytes(table), media_type=ARROW)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows that JSON can carry: times as ISO text, numbers that are none as words.

    >>> rows_of(pa.table({"v": [1.5, float("nan")]}))
    [{'v': 1.5}, {'v': 'NaN'}]
    """
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else value


async def _events(service: StandingQueries, wakeups: Wakeups, handle: str) -> AsyncIterator[str]:
    """Events for one follower. It waits without a thread of its own: thousands may follow while others ask."""
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
