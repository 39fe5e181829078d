"""The guard in front of every service: it refuses a request before any route sees it.

A check is a function of the request's headers that gives a refusal or None. `CHECKS` holds those that apply
to every service; whoever hardens the services adds theirs to it. The body is read here too, so that none
grows beyond `MAX_BODY`. Services bind to loopback and do not know who a client is: whoever opens one to
others puts a proxy with accounts in front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1 << 20
"""Bytes: a query is text, and a thousand times shorter."""


@dataclass(frozen=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    problem: str
    expected: str

    def response(self) -> JSONResponse:
        """In the form of all our errors."""
        text = f"{self.problem}\n  expected: {self.expected}"
        body = {"error": text, "kind": "refused", "problem": self.problem, "expected": self.expected}
        return JSONResponse(body, self.status)


Check = Callable[[Headers], Refusal | None]

_TOO_LARGE = Refusal(413, "the request is too large", f"at most {MAX_BODY:,} bytes")


def declared_size(headers: Headers) -> Refusal | None:
    """Refuse a body that says itself that it is too large, without reading it.

    >>> declared_size(Headers({"content-length": "20000000"})).status
    413
    >>> declared_size(Headers({}))
    """
    length = headers.get("content-length", "0")
    return _TOO_LARGE if length.isdecimal() and int(length) > MAX_BODY else None


CHECKS: tuple[Check, ...] = (declared_size,)


class Guard:
    """ASGI middleware: `app.add_middleware(Guard)`."""

    def __init__(self, app: ASGIApp, checks: tuple[Check, ...] = CHECKS) -> None:
        self._app, self._checks = app, checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or hand it on with its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = next((refused for check in self._checks if (refused := check(headers)) is not None), None)
        body = await _body(receive) if refusal is None else None
        if body is None:
            await (refusal or _TOO_LARGE).response()(scope, receive, send)
        else:
            await self._app(scope, _replayed(body, receive), send)


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large: a chunked one does not say its size beforehand."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            return None
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body once, then what still comes: the end of the connection."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
