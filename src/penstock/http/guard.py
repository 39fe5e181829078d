"""The guard in front of every service: it refuses a request before any route sees it.

It knows where a request comes from (`access`), reads the body within its limit, and gives every answer the
headers that keep browsers from doing more with it than showing it. There is no CORS: no page of another site
may read an answer. The owner that a token names is in `request.state.owner`. A client whose token is for
looking only is refused here, whatever route would change something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.http.access import SAFE_METHODS, Access, from_own_page
from penstock.http.error_bodies import json_response
from penstock.http.limits import ServerLimits
from penstock.http.rates import ChangeRates

OPEN_PATHS = frozenset({"/health"})
"""What needs no token: whether the service lives."""

IsOpen = Callable[[str], bool]
"""Whether a path needs no token."""

_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    problem: str
    expected: str

    def body(self) -> dict[str, str]:
        """In the form of all our errors."""
        text = f"{self.problem}\n  expected: {self.expected}"
        return {"error": text, "kind": "refused", "problem": self.problem, "expected": self.expected}


class RefusedError(Exception):
    """A request that gets a refusal for an answer."""

    def __init__(self, status: int, problem: str, expected: str) -> None:
        super().__init__(problem)
        self.refusal = Refusal(status, problem, expected)


class ClientGone(Exception):  # noqa: N818 - not an error
    """The client has ended the connection before its request was whole."""


class Guard:
    """ASGI middleware: `app.add_middleware(Guard, access=..., limits=...)`.

    `is_open` names paths that need no token. `rates` limits how often one client may change something.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access | None = None,
        limits: ServerLimits | None = None,
        is_open: IsOpen = OPEN_PATHS.__contains__,
        rates: ChangeRates | None = None,
    ) -> None:
        self._app, self._access, self._limits = app, access or Access(), limits or ServerLimits()
        self._is_open, self._rates = is_open, rates
        self._reading = 0  # bytes of all bodies that are being read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or hand it on with its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, answer = Headers(scope=scope), _with_headers(send)
        try:
            scope.setdefault("state", {})["owner"] = self._admitted(scope, headers)
            if "content-length" in headers or "transfer-encoding" in headers:
                receive = await self._with_body(headers, receive)
        except RefusedError as refused:
            refusal = refused.refusal
            challenge = {"www-authenticate": "Bearer"} if refusal.status == 401 else {}
            response = json_response(refusal.body(), refusal.status, {"connection": "close", **challenge})
            await response(scope, receive, answer)
        except ClientGone:
            return
        else:
            await self._app(scope, receive, answer)

    def _admitted(self, scope: Scope, headers: Headers) -> str | None:
        """The owner of the request; None for a stranger at an open path."""
        if not self._access.knows(headers.get("host", "")):
            expected = "an address, or a name of this service (--allow-host)"
            raise RefusedError(421, "this service does not answer to that host name", expected)
        if not from_own_page(scope["method"], headers):
            raise RefusedError(
                403, "a page of another site has sent this request", "a page of this service, or none"
            )
        owner, is_open = self._access.owner(headers), self._is_open(scope["path"])
        if owner is None and not is_open:
            raise RefusedError(
                401, "the request has no valid token", "the header Authorization: Bearer SECRET"
            )
        if scope["method"] not in SAFE_METHODS:
            self._may_change(owner, headers, is_open=is_open)
        return owner

    def _may_change(self, owner: str | None, headers: Headers, *, is_open: bool) -> None:
        if not is_open and not self._access.may_change(headers):
            raise RefusedError(403, "this token is for looking only", "a token given with --token")
        if self._rates is not None and not self._rates.allows(owner or ""):
            raise RefusedError(429, "too many changes in a short time", "another try a little later")

    async def _with_body(self, headers: Headers, receive: Receive) -> Receive:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 20 or int(length) > self._limits.body_bytes:
            raise self._too_large()
        kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json":  # forms, which a page of another site may send without asking
            raise RefusedError(415, "the body is not JSON", "the header Content-Type: application/json")
        return _replayed(await self._body(receive), receive)

    async def _body(self, receive: Receive) -> bytes:
        """The whole body; a chunked one does not say its size beforehand."""
        parts: list[bytes] = []
        size, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                part = message.get("body", b"")
                parts.append(part)
                size, self._reading = size + len(part), self._reading + len(part)
                more = message.get("more_body", False)
                if size > self._limits.body_bytes:
                    raise self._too_large()
                if self._reading > self._limits.bodies_bytes:
                    raise RefusedError(503, "too many requests are being read", "another try a little later")
        finally:
            self._reading -= size
        return b"".join(parts)

    def _too_large(self) -> RefusedError:
        return RefusedError(413, "the request is too large", f"at most {self._limits.body_bytes:,} bytes")


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


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("content-security-policy", _POLICY)
        await send(message)

    return answer
