"""Slow work of the console, beside the event loop. Looking has its own threads: it waits for no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import Request, Response

from penstock.http.error_bodies import json_response
from penstock.http.slow_work import SlowWork
from penstock.web.service import ConsoleService

T = TypeVar("T")
_LOOK, _CHANGE = 20.0, 300.0  # seconds: a change waits for trains


class BackgroundWork:
    """A console and its threads."""

    def __init__(self, service: ConsoleService) -> None:
        self.service = service
        self._looking = SlowWork("console-look", threads=2, waiting=200)
        self._changing = SlowWork("console-change", threads=2, waiting=50)

    async def look(self, function: Callable[[], T]) -> T:
        """Read something."""
        return await self._looking.run(function, _LOOK)

    async def change(self, function: Callable[[], T]) -> T:
        """Change something."""
        return await self._changing.run(function, _CHANGE)

    def stop(self) -> None:
        """Take no more work."""
        self._looking.stop()
        self._changing.stop()


def client(request: Request) -> str:
    """The name of the token that a request came with; empty where there are no tokens."""
    return str(getattr(request.state, "owner", "") or "")


def json_answer(body: object, status: int = 200) -> Response:
    """JSON, also of a list."""
    if isinstance(body, dict):
        return json_response(body, status)
    import json

    return Response(json.dumps(body).encode(), status, media_type="application/json")
