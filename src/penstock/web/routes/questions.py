"""Routes of ad-hoc queries: check, attach, read, detach."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from penstock.http.error_bodies import error_body
from penstock.model.errors import ExpressionError, NetworkError, PenstockError
from penstock.model.json_types import JsonObject
from penstock.web.act.query_text import QueryTextError, placed
from penstock.web.act.questions import checked
from penstock.web.errors import LookingOnlyError
from penstock.web.routes.background import BackgroundWork, client, json_answer
from penstock.web.routes.bodies import AttachBody, DetachBody, QueryBody

_SAID = 300  # characters of a query in the log of changes


def add_questions(app: FastAPI, work: BackgroundWork) -> None:
    """Add the routes."""
    service = work.service

    @app.post("/api/attach/check", summary="Check a query while it is written; nothing changes")
    async def check(body: QueryBody) -> Response:
        def do() -> JsonObject:
            network = service.watched.network()
            if network is None:
                raise LookingOnlyError("the columns of this network are not known here")
            try:
                return {"ok": True, "columns": checked(network, body.point, body.query)}
            except PenstockError as error:
                return {"ok": False, "error": {**error_body(error), **placed(error, body.query)}}

        return json_answer(await work.look(do))

    @app.post("/api/attach", status_code=201, summary="Ask at a connection point: history first, then live")
    async def attach(body: AttachBody, request: Request) -> Response:
        who = client(request)

        def do() -> JsonObject:
            with service.changing(body.version, who, f"attach to {body.point}: {body.query[:_SAID]}"):
                return service.questions.attach(body.point, body.query, body.name, body.keep, who)

        try:
            return json_answer(await work.change(do), 201)
        except (NetworkError, ExpressionError, QueryTextError) as error:
            # The page marks the place in the text.
            return json_answer({**error_body(error), **placed(error, body.query)}, 400)

    @app.get("/api/attached", summary="The queries that are attached")
    async def attached() -> Response:
        return json_answer({"attached": service.asked()["attached"]})

    @app.get("/api/attached/{name}/rows", summary="The rows of an attached query")
    async def rows(
        name: str,
        after: Annotated[int, Query(ge=0, description="Only from this number on.")] = 0,
        limit: Annotated[int, Query(ge=1, le=2_000)] = 500,
    ) -> Response:
        return json_answer(await work.look(lambda: service.questions.rows(name, after, limit)))

    @app.post("/api/detach", summary="End an attached query or view")
    async def detach(body: DetachBody, request: Request) -> Response:
        def do() -> JsonObject:
            with service.changing(body.version, client(request), f"detach {body.name}"):
                service.questions.detach(body.name)
            return {"name": body.name}

        return json_answer(await work.change(do))
