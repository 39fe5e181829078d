"""Routes that look: the network, its figures, its past, its dead letters, the stream of events."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import StreamingResponse

from penstock.control.report import ROAD_MAP
from penstock.store.catalog.decisions import Decisions
from penstock.web.events import PageEvents
from penstock.web.look.history import MOST_SECONDS, decisions_json, history_json
from penstock.web.look.letters_json import letters_csv, letters_json
from penstock.web.look.status_json import graphs_of
from penstock.web.routes.background import BackgroundWork, json_answer


def add_looking(app: FastAPI, work: BackgroundWork) -> None:
    """Add the routes."""
    _add_now(app, work)
    _add_past(app, work)
    _add_letters(app, work)


def _add_now(app: FastAPI, work: BackgroundWork) -> None:
    service = work.service

    @app.get("/api/network", summary="The network: its picture, nodes, arrows, groups and text")
    async def network(
        closed: Annotated[
            str, Query(description="Groups to show as one box each, separated by commas.", max_length=10_000)
        ] = "",
        direction: Annotated[
            Literal["across", "down"], Query(description="Where tuples flow: to the right, or down.")
        ] = "across",
    ) -> Response:
        """Every write carries the `version` that this answer has."""
        shut = [path for path in closed.split(",") if path]
        return json_answer(await work.look(lambda: service.network(shut, down=direction == "down")))

    @app.get("/api/status", summary="The figures now; null is unknown, never 0")
    async def status() -> Response:
        return json_answer(await work.look(service.status))

    @app.get("/api/events", summary="Server-sent events: status, network, decision, tuples, held")
    async def events(_: Request) -> StreamingResponse:
        """A status each second while somebody listens; of each kind, a slow page gets the newest only."""
        return PageEvents(service.events)

    @app.get("/api/arrows/{arrow}/tuples", summary="The last tuples that passed on an arrow tail:head:index")
    async def tuples(
        arrow: str,
        after: Annotated[int, Query(ge=0, description="Only from this number on.")] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        condition: Annotated[str, Query(max_length=2_000, description="Spark SQL over the columns.")] = "",
    ) -> Response:
        """Sampling starts with the first request, and ends ten seconds after the last one."""
        return json_answer(await work.look(lambda: service.tuples(arrow, condition, after, limit)))


def _add_past(app: FastAPI, work: BackgroundWork) -> None:
    watched = work.service.watched

    @app.get("/api/history", summary="Rates, delays, utilities, trains, decisions, events")
    async def history(seconds: Annotated[int, Query(ge=1, le=MOST_SECONDS)] = 600) -> Response:
        return json_answer(
            await work.look(lambda: history_json(watched.catalog, seconds, graphs_of(watched)))
        )

    @app.get("/api/decisions", summary="What control decided, oldest first")
    async def decisions(
        after: Annotated[int, Query(ge=0, description="Only those with a larger id.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> Response:
        decided = await work.look(lambda: decisions_json(watched.catalog, limit, after))
        return json_answer({"decisions": decided})

    @app.get("/api/road-map", summary="What the shedder would drop, row by row; null while no control runs")
    async def road_map() -> Response:
        kept = await work.look(lambda: Decisions(watched.catalog).state(ROAD_MAP))
        return json_answer({"map": None if kept is None else kept[1]})


def _add_letters(app: FastAPI, work: BackgroundWork) -> None:
    checkpoint = work.service.watched.checkpoint

    @app.get("/api/dead-letters", summary="Refused tuples: counts by reason, and the newest rows")
    async def dead_letters(
        box: Annotated[str | None, Query(description="Only of this box.")] = None,
        reason: Annotated[str | None, Query(description="Only of this reason, as counted.")] = None,
        limit: Annotated[int, Query(ge=0, le=1_000)] = 100,
    ) -> Response:
        return json_answer(await work.look(lambda: letters_json(checkpoint, box, reason, limit)))

    @app.get("/api/dead-letters.csv", summary="All refused tuples as a file")
    def download() -> StreamingResponse:
        headers = {"content-disposition": 'attachment; filename="dead-letters.csv"'}
        return StreamingResponse(letters_csv(checkpoint), media_type="text/csv", headers=headers)
