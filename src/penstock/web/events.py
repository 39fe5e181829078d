"""Server-sent events for pages: the newest state of each kind, never a queue that grows (latest wins).

A status is made once a second for all pages together, and only while somebody listens. A page that reads
slowly gets the newest status and misses those between; nobody waits for it. The server disconnects a page
that does not read at all (`http.connections`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.http.errors import BusyError
from penstock.model.json_types import JsonMapping

MOST_PAGES = 500
_BEAT = 15.0  # seconds after which a silent stream sends a sign of life
_SIGN_OF_LIFE = b": nothing new\n\n"
_END = b"event: end\ndata: {}\n\n"


@dataclass(eq=False)
class Page:
    """One connection. `waiting` holds at most one event of each key, in the order of the keys' arrival."""

    waiting: dict[str, bytes] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def offer(self, key: str, event: bytes) -> None:
        """Put an event in; an older one of the same key is dropped."""
        self.waiting.pop(key, None)
        self.waiting[key] = event
        self.news.set()

    async def next(self) -> bytes | None:
        """What waits, a sign of life if nothing does for a while, None at the end."""
        if not self.waiting and not self.ended:
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), _BEAT)
        if self.waiting:
            event, self.waiting = b"".join(self.waiting.values()), {}
            return event
        return None if self.ended else _SIGN_OF_LIFE


class Events:
    """All open pages. `publish` may be called from any thread; the rest runs in the event loop."""

    def __init__(self, most: int = MOST_PAGES) -> None:
        self._pages: set[Page] = set()
        self._last: dict[str, bytes] = {}
        self._most = most
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Remember the loop in which pages are served."""
        self._loop = asyncio.get_running_loop()

    @property
    def pages(self) -> int:
        """How many listen."""
        return len(self._pages)

    def join(self) -> Page:
        """A new page. It gets the last state of each kind at once."""
        if len(self._pages) >= self._most:
            raise BusyError(f"{self._most} pages are open already", hint="close some")
        page = Page()
        for key, event in self._last.items():
            page.offer(key, event)
        self._pages.add(page)
        return page

    def leave(self, page: Page) -> None:
        """Forget a page."""
        self._pages.discard(page)

    def publish(self, name: str, body: JsonMapping, *, key: str = "", keep: bool = False) -> None:
        """Send an event to all pages. Of events with one key, a slow page gets only the newest.

        `keep`: pages that come later get it too.
        """
        if self._loop is None or self._loop.is_closed() or not (keep or self._pages):
            return
        event = f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
        with contextlib.suppress(RuntimeError):  # the loop may end meanwhile
            self._loop.call_soon_threadsafe(self._spread, key or name, event, keep)

    def _spread(self, key: str, event: bytes, keep: bool) -> None:
        if keep:
            self._last[key] = event
        for page in self._pages:
            page.offer(key, event)

    def end(self) -> None:
        """End all streams, because the server ends."""
        for page in self._pages:
            page.offer("end", _END)
            page.ended = True

    async def stream(self, page: Page) -> AsyncIterator[bytes]:
        """The events for one page."""
        yield b"retry: 2000\n\n"
        while (event := await page.next()) is not None:
            yield event


class PageEvents(StreamingResponse):
    """The stream for one page; the page leaves when the response ends, however that comes about."""

    def __init__(self, events: Events, on_leave: Callable[[], None] = lambda: None) -> None:
        self._events, self._page, self._on_leave = events, events.join(), on_leave
        super().__init__(events.stream(self._page), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._events.leave(self._page)
            self._on_leave()
