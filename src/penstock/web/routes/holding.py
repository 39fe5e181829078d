"""Routes that hold, step and release sub-networks, and set breakpoints."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import FastAPI, Request, Response

from penstock.model.json_types import JsonObject
from penstock.web.routes.background import BackgroundWork, client, json_answer
from penstock.web.routes.bodies import BreakpointBody, HoldBody, ReleaseBody, StepBody


def add_holding(app: FastAPI, work: BackgroundWork) -> None:
    """Add the routes."""
    service = work.service

    @app.post("/api/hold", summary="Hold a sub-network: its input waits, the others run on")
    async def hold(body: HoldBody, request: Request) -> Response:
        """Ask again before `until` to stay; a page that closes lets go."""
        who = client(request)

        def do() -> JsonObject:
            # A page asks again and again while it is open: that is no further change.
            new = not service.holds.holds(body.subnetwork)
            with service.changing(body.version, who, f"hold {body.subnetwork}", tell=False, log=new):
                return asdict(service.holds.hold(body.subnetwork, who or "somebody here", body.seconds))

        return json_answer(await work.change(do))

    @app.post("/api/step", summary="Let one train of a held sub-network leave")
    async def step(body: StepBody, request: Request) -> Response:
        """What each box took and gave. The train counts as any other."""
        who = client(request)

        def do() -> JsonObject:
            with service.changing(body.version, who, f"step {body.subnetwork}", tell=False):
                pass  # not inside: others must not wait for the train
            return service.holds.step(body.subnetwork, body.tuples)

        return json_answer(await work.change(do))

    @app.post("/api/release", summary="Let a held sub-network go on")
    async def release(body: ReleaseBody, request: Request) -> Response:
        def do() -> JsonObject:
            with service.changing(body.version, client(request), f"release {body.subnetwork}", tell=False):
                service.holds.release(body.subnetwork)
            return {"subnetwork": body.subnetwork}

        return json_answer(await work.change(do))

    _add_breakpoints(app, work)


def _add_breakpoints(app: FastAPI, work: BackgroundWork) -> None:
    service = work.service

    @app.post("/api/breakpoints", status_code=201, summary="Hold after the train with a tuple like this")
    async def add(body: BreakpointBody, request: Request) -> Response:
        who = client(request)

        def do() -> JsonObject:
            what = f"breakpoint {body.condition} on {body.arrow}"
            with service.changing(body.version, who, what, tell=False):
                tail, head, _ = service.arrow(body.arrow)
                homes = service.watched.homes()
                network = service.watched.network()
                kept = network is not None and tail in network.points
                # Tuples of a point are looked at where they are read.
                home = homes.get(head if kept else tail, "")
                breakpoint_ = service.holds.break_at(
                    body.arrow, tail, home, body.condition, who or "somebody here"
                )
                return asdict(breakpoint_)

        return json_answer(await work.change(do), 201)

    @app.get("/api/breakpoints", summary="All breakpoints")
    async def listed() -> Response:
        return json_answer({"breakpoints": service.asked()["breakpoints"]})

    @app.delete("/api/breakpoints/{number}", status_code=204, summary="Remove a breakpoint")
    async def remove(number: str, request: Request) -> Response:
        await work.change(lambda: service.holds.remove(number))
        await work.change(lambda: service.log(client(request), f"remove breakpoint {number}"))
        return Response(status_code=204)
