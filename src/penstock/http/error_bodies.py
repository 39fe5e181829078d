"""Errors as JSON: the parts that the text of an error has too, so that a page can show each of them.

A client learns what is wrong with its own request. What is wrong inside goes to the log: it may hold paths,
traces, or the texts of other clients.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from penstock.http.errors import BusyError, TookTooLongError
from penstock.model.errors import NetworkError, PenstockError, refusal_text

Statuses = Sequence[tuple[type[PenstockError], int]]
"""Kinds of errors and their HTTP status; the first kind that fits decides."""

_LOG = logging.getLogger("penstock")
_FAILED = 503  # the request was good, but the network or its store is not
_COMMON: Statuses = ((BusyError, 503), (TookTooLongError, 503))
_PATH = re.compile(r"(?:file:)?/[\w.@%+~-]+(?:/[\w.@%+~-]*)+")
_MOST = 300  # characters of an error from inside


def json_response(
    body: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """JSON in ASCII: whatever a client has sent, its answer can be encoded."""
    return Response(json.dumps(body).encode(), status, dict(headers or {}), "application/json")


def error_body(error: PenstockError) -> dict[str, str]:
    """The whole text under `error`, its kind, and those of its parts that there are.

    >>> error_body(PenstockError("it has stopped"))
    {'error': 'it has stopped', 'kind': 'failed', 'problem': 'it has stopped'}
    """
    parts = {"problem": error.problem, "found": error.found, "expected": error.expected, "hint": error.hint}
    return {
        "error": _text(error),
        "kind": _kind(error),
        **{name: text for name, text in parts.items() if text},
    }


def _text(error: PenstockError) -> str:
    """The whole text. A place in the client's own text stays, `<edit>:3`; a line of a file here is ours."""
    if not isinstance(error, NetworkError) or error.where.file.startswith("<"):
        return str(error)
    head = f"box '{error.box}': " if error.box else ""
    return refusal_text(head + error.problem, error.found, error.expected, error.hint)


def inner_error_body(error: PenstockError) -> dict[str, str]:
    """One line without paths, for an error that is not about the request.

    >>> inner_error_body(PenstockError("cannot read /data/x/y.parquet", hint="look at it"))["error"]
    'cannot read …'
    """
    line = _PATH.sub("…", str(error).partition("\n")[0])[:_MOST]
    return {"error": line, "kind": _kind(error), "problem": line, "hint": "the log of the service says more"}


def _kind(error: PenstockError) -> str:
    return str(getattr(error, "kind", "failed"))


def answer_errors(app: FastAPI, statuses: Statuses) -> None:
    """Answer each PenstockError that a route raises with its status and body; an unlisted kind is a 503."""

    @app.exception_handler(PenstockError)
    async def refuse(_: Request, error: PenstockError) -> Response:
        listed = (*statuses, *_COMMON)
        status = next((status for kind, status in listed if isinstance(error, kind)), None)
        if status is not None:
            later = {"retry-after": "1"} if isinstance(error, BusyError) else None
            return json_response(error_body(error), status, later)
        _LOG.error("a request failed: %s", error)
        return json_response(inner_error_body(error), _FAILED)

    @app.exception_handler(RequestValidationError)
    async def refuse_form(_: Request, error: RequestValidationError) -> Response:
        return json_response(_form_body(error), 400)

    @app.exception_handler(HTTPException)
    async def refuse_route(_: Request, error: HTTPException) -> Response:
        text = str(error.detail)
        return json_response(
            {"error": text, "kind": "refused", "problem": text}, error.status_code, error.headers
        )

    @app.exception_handler(Exception)
    async def fail(_: Request, __: Exception) -> Response:
        # Starlette raises it again behind this answer, so the server's log holds the trace.
        return json_response({"error": "the service failed", "kind": "failed"}, 500)


def _form_body(error: RequestValidationError) -> dict[str, str]:
    """What is wrong with the form of a request, without the values that were sent."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
    problem, fault = f"the request has a wrong form at {where}", str(first["msg"])
    return {"error": f"{problem}\n  found:    {fault}", "kind": "refused", "problem": problem, "found": fault}
