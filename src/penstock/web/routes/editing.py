"""Routes of edits, versions, QoS graphs and bookmarks."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from penstock.http.error_bodies import error_body
from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonObject
from penstock.web.act.qos_graphs import judged, qos_of
from penstock.web.act.query_text import placed
from penstock.web.act.steps import edited, python_text
from penstock.web.errors import EditingOffError, LookingOnlyError, RefusedChangeError, UnknownNameError
from penstock.web.look.network_json import qos_json
from penstock.web.look.status_json import graphs_of
from penstock.web.routes.background import BackgroundWork, client, json_answer
from penstock.web.routes.bodies import BookmarkBody, EditBody, JudgeBody, QosBody, UndoBody
from penstock.web.service import ConsoleService


def add_editing(app: FastAPI, work: BackgroundWork) -> None:
    """Add the routes."""
    _add_edits(app, work)
    _add_versions(app, work)
    _add_qos(app, work)
    _add_bookmarks(app, work)


def _add_edits(app: FastAPI, work: BackgroundWork) -> None:
    service = work.service

    @app.post("/api/edit/preview", summary="What an edit will do, in words; nothing changes")
    async def preview(body: EditBody, request: Request) -> Response:
        def do() -> JsonObject:
            with service.changing(body.version, client(request), "preview an edit", tell=False, log=False):
                return _preview(service, body)

        return json_answer(await work.change(do))

    @app.post("/api/edit/apply", summary="Make an edit; one that fails leaves the old network running")
    async def apply(body: EditBody, request: Request) -> Response:
        who = client(request)

        def do() -> JsonObject:
            with service.changing(body.version, who, "apply an edit"):
                text = _text(service, body)
                return service.edits.apply(text, who or "somebody here", fresh_state=body.fresh_state)

        return json_answer(await work.change(do))

    @app.post("/api/edit/undo", summary="Go back to the network before the last edit")
    async def undo(body: UndoBody, request: Request) -> Response:
        who = client(request)

        def do() -> JsonObject:
            with service.changing(body.version, who, "undo an edit"):
                return service.edits.undo(who or "somebody here", fresh_state=body.fresh_state)

        return json_answer(await work.change(do))


def _text(service: ConsoleService, body: EditBody) -> str:
    if (body.yaml is None) == (body.steps is None):
        raise RefusedChangeError("an edit is either a text or steps", expected="`yaml` or `steps`")
    return body.yaml if body.yaml is not None else edited(service.edits.text(), body.steps or ())


def _preview(service: ConsoleService, body: EditBody) -> JsonObject:
    text = None
    try:
        text = _text(service, body)
        return {"version": body.version, **service.edits.preview(text).plain()}
    except (EditingOffError, LookingOnlyError):
        raise
    except PenstockError as error:
        box = getattr(error, "box", "") or None
        where = getattr(error, "where", None)
        line = (
            {"line": where.line, "column": 1}
            if where is not None and where.line
            else placed(error, text or "")
        )
        failed: JsonObject = {"ok": False, "version": body.version, "yaml": text, "words": [], "effects": []}
        return {**failed, "subnetworks": [], "error": {**error_body(error), **line, "box": box}}


def _add_versions(app: FastAPI, work: BackgroundWork) -> None:
    service = work.service

    @app.get("/api/versions", summary="All versions of the network, and who made them")
    async def versions() -> Response:
        return json_answer({"versions": await work.look(service.versions)})

    @app.get("/api/versions/{number}", summary="One version, with its text")
    async def version(number: int) -> Response:
        record = await work.look(lambda: service.watched.catalog.network(number))
        if record is None:
            raise UnknownNameError(f"no version {number}", hint="see /api/versions")
        text = record.text if record.form == "yaml" else None
        return json_answer({"version": number, "time": record.time, "form": record.form, "yaml": text})

    @app.get("/api/network.yaml", summary="The network as a YAML file")
    async def as_yaml() -> Response:
        text = await work.look(service.watched.text)
        if text.yaml is None:
            raise EditingOffError("this network has no text form", found=text.why_not)
        return _file(text.yaml, f"{service.watched.name()}.yaml", "application/yaml")

    @app.get("/api/network.py", summary="The network as a Python file")
    async def as_python() -> Response:
        text = await work.look(service.watched.text)
        if text.yaml is None:
            raise EditingOffError("this network has no text form", found=text.why_not)
        return _file(python_text(text.yaml), f"{service.watched.name()}.py", "text/x-python")


def _file(text: str, name: str, kind: str) -> Response:
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    headers = {"content-disposition": f'attachment; filename="{safe}"'}
    return Response(text.encode(), media_type=kind, headers=headers)


def _add_qos(app: FastAPI, work: BackgroundWork) -> None:
    service = work.service

    @app.post("/api/qos/{output}/judge", summary="How another QoS would have judged the last seconds")
    async def judge(output: str, body: JudgeBody) -> Response:
        def do() -> JsonObject:
            now = graphs_of(service.watched).get(output)
            return judged(service.watched.catalog, output, now, qos_of(body.qos), body.seconds)

        return json_answer(await work.look(do))

    @app.post("/api/qos/{output}", summary="Set the QoS of a running output; no train is disturbed")
    async def set_qos(output: str, body: QosBody, request: Request) -> Response:
        who = client(request)

        def do() -> JsonObject:
            with service.changing(body.version, who, f"set the QoS of {output}") as runtime:
                qos = qos_of(body.qos)
                if output not in {*runtime.network.outputs, *runtime.network.points}:
                    raise UnknownNameError(f"no output '{output}'")
                runtime.set_qos(output, qos)
                version = service.watched.catalog.version()
                words = [f"output '{output}': its QoS changes"]
                runtime.running_records().event("edit", output, version=version, by=who, words=words)
                return {"version": version, "output": output, "qos": qos_json(qos)}

        return json_answer(await work.change(do))


def _add_bookmarks(app: FastAPI, work: BackgroundWork) -> None:
    service, bookmarks = work.service, work.service.bookmarks

    @app.get("/api/bookmarks", summary="Named places in the picture")
    async def listed() -> Response:
        return json_answer({"bookmarks": await work.look(bookmarks.list)})

    @app.put("/api/bookmarks/{name}", summary="Keep a place under a name")
    async def put(name: str, body: BookmarkBody, request: Request) -> Response:
        await work.change(lambda: bookmarks.put(name, body.view))
        await work.change(lambda: service.log(client(request), f"bookmark {name}"))
        return json_answer({"name": name, "view": body.view})

    @app.delete("/api/bookmarks/{name}", status_code=204, summary="Forget a place")
    async def remove(name: str, request: Request) -> Response:
        await work.change(lambda: bookmarks.remove(name))
        await work.change(lambda: service.log(client(request), f"forget bookmark {name}"))
        return Response(status_code=204)
