"""Routes of Linear Road, where the network is Linear Road's."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Response

from penstock.model.json_types import JsonObject
from penstock.web.errors import LookingOnlyError, UnknownNameError
from penstock.web.look.road import road_json, vehicle_json
from penstock.web.routes.background import BackgroundWork, json_answer
from penstock.web.service import ConsoleService

_MINUTES = 2  # minutes that an accident is shown after its last sign


def add_road(app: FastAPI, work: BackgroundWork) -> None:
    """Add the routes."""
    service = work.service

    @app.get("/api/road", summary="Linear Road: segments, tolls, accidents, answers against their limits")
    async def road(
        expressway: Annotated[int | None, Query(ge=0)] = None,
        direction: Annotated[int, Query(ge=0, le=1)] = 0,
    ) -> Response:
        return json_answer(await work.look(lambda: _road(service, expressway, direction)))

    @app.get("/api/road/vehicles/{vid}", summary="One vehicle: position, tolls, account, why its toll")
    async def vehicle(vid: int) -> Response:
        """It is watched from the first request on; figures begin then."""
        return json_answer(await work.look(lambda: _vehicle(service, vid)))


def _road(service: ConsoleService, expressway: int | None, direction: int) -> JsonObject:
    watched = service.watched
    if not service.is_road():
        raise UnknownNameError("this network is not Linear Road's")
    seconds = watched.status().seconds
    return road_json(watched.checkpoint, expressway, direction, _wrecks(service), seconds)


def _wrecks(service: ConsoleService) -> list[tuple[int, int, int]] | None:
    """Accidents of the last minutes; None where the arrow that carries them cannot be watched."""
    if service.watched.runtime is None:
        return None
    rows = service.tuples("accidents:accidents_by_expressway:0", "", 0, 500)["rows"]
    newest = max((row["tuple"]["_ts"] for row in rows), default=0.0)
    recent = [row["tuple"] for row in rows if row["tuple"]["_ts"] > newest - _MINUTES * 60]
    return [(each["XWay"], each["Dir"], each["Seg"]) for each in recent]


def _vehicle(service: ConsoleService, vid: int) -> JsonObject:
    if not service.is_road():
        raise UnknownNameError("this network is not Linear Road's")
    if service.watched.runtime is None:
        raise LookingOnlyError(
            "a vehicle can be watched only while the network runs in the console's process",
            hint="penstock lr run --console",
        )
    condition = f"VID = {vid}"
    seen = _rows(service, "track:segments:0", condition)
    told = _rows(service, "quote:notices:0", condition)
    segments: list[JsonObject] = []
    if seen:
        last = seen[-1]
        segments = road_json(service.watched.checkpoint, last["XWay"], last["Dir"], (), {})["segments"]
    return vehicle_json(vid, seen, told, segments)


def _rows(service: ConsoleService, arrow: str, condition: str) -> list[JsonObject]:
    return [row["tuple"] for row in service.tuples(arrow, condition, 0, 500)["rows"]]
