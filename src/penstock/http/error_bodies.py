"""Errors as JSON: the parts that the text of an error has too, so that a page can show each of them."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from penstock.model.errors import PenstockError

Statuses = Sequence[tuple[type[PenstockError], int]]
"""Kinds of errors and their HTTP status; the first kind that fits decides."""

_FAILED = 503  # the request was good, but the network or its store is not


def error_body(error: PenstockError) -> dict[str, str]:
    """The whole text under `error`, its kind, and those of its parts that there are.

    >>> error_body(PenstockError("it has stopped"))
    {'error': 'it has stopped', 'kind': 'failed', 'problem': 'it has stopped'}
    """
    parts = {"problem": error.problem, "found": error.found, "expected": error.expected, "hint": error.hint}
    kind = str(getattr(error, "kind", "failed"))
    return {"error": str(error), "kind": kind, **{name: text for name, text in parts.items() if text}}


def answer_errors(app: FastAPI, statuses: Statuses) -> None:
    """Answer each PenstockError that a route raises with its status and body; an unlisted kind is a 503."""

    @app.exception_handler(PenstockError)
    def answer(_: Request, error: PenstockError) -> JSONResponse:
        status = next((status for kind, status in statuses if isinstance(error, kind)), _FAILED)
        return JSONResponse(error_body(error), status)
