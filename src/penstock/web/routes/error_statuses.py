"""Which HTTP status each kind of error gets, and the body of a conflict."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from penstock.control.loop.deployment import ImpossibleQosError
from penstock.http.error_bodies import Statuses, error_body, json_response
from penstock.model.errors import ExpressionError, NetworkError, PenstockError
from penstock.runtime.checkpoint_identity import CheckpointError
from penstock.web.errors import (
    EditingOffError,
    LookingOnlyError,
    RefusedChangeError,
    UnknownNameError,
    VersionMovedError,
)

STATUSES: Statuses = (
    (LookingOnlyError, 409),
    (EditingOffError, 409),
    (UnknownNameError, 404),
    (RefusedChangeError, 400),
    (ImpossibleQosError, 400),
    (CheckpointError, 400),
    (NetworkError, 400),
    (ExpressionError, 400),
)


def answer_console_errors(app: FastAPI) -> None:
    """Answer the console's own kinds of errors, beside those that an application answers already."""
    for kind, status in STATUSES:
        app.add_exception_handler(kind, _answer_with(status))
    app.add_exception_handler(VersionMovedError, _moved)
    app.add_exception_handler(RecursionError, _too_deep)


def _answer_with(status: int) -> Callable[[Request, Exception], Response]:
    def answer(_: Request, error: Exception) -> Response:
        assert isinstance(error, PenstockError)
        return json_response(error_body(error), status)

    return answer


def _moved(_: Request, error: Exception) -> Response:
    """A conflict says what changed."""
    assert isinstance(error, VersionMovedError)
    body = {**error_body(error), "version": error.now, "difference": error.difference}
    return json_response(body, 409)


def _too_deep(_: Request, __: Exception) -> Response:
    """A text whose parentheses or lists nest without end."""
    problem = "the text is nested too deeply"
    return json_response({"error": problem, "kind": "refused", "problem": problem}, 400)
