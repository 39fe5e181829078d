"""Work that may take long, beside the event loop: a few threads, a short queue, an end.

The event loop only moves bytes. So a service answers `/health` at once, whatever its clients make it compute.
Few threads, because all share one interpreter: each busy thread is one more that the loop waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from penstock.http.errors import BusyError, TookTooLongError

T = TypeVar("T")


class SlowWork:
    """Threads for one kind of work.

    `waiting` is how many may wait for a thread, `waiting_bytes` what they may hold together.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, waiting_bytes: int = 64 << 20) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most, self._given = threads + waiting, 0
        self._most_bytes, self._held = waiting_bytes, 0

    async def run(self, function: Callable[[], T], seconds: float, size: int = 0) -> T:
        """The result of a function, or an error when it has not come after so many seconds.

        Nobody can stop a thread. Work that may take longer looks at a time limit itself. `size`: the bytes
        that a request holds while it waits.
        """
        if self._given >= self._most or self._held + size > self._most_bytes:
            raise BusyError("the service is busy", hint="try again a little later")
        self._given, self._held = self._given + 1, self._held + size
        future = self._pool.submit(function)
        future.add_done_callback(self._done(asyncio.get_running_loop(), size))
        result = asyncio.wrap_future(future)
        result.add_done_callback(_look_at)
        try:
            return await asyncio.wait_for(asyncio.shield(result), seconds)
        except TimeoutError:
            future.cancel()  # helps if it still waits
            raise TookTooLongError(
                "the request takes too long and was cancelled",
                expected=f"at most {seconds:g} seconds",
                hint="ask for less, or try again a little later",
            ) from None

    def _done(self, loop: asyncio.AbstractEventLoop, size: int) -> Callable[[object], None]:
        def one_less() -> None:
            self._given, self._held = self._given - 1, self._held - size

        def tell(_: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(one_less)

        return tell

    def stop(self) -> None:
        """Take no more work; what runs may end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _look_at(result: asyncio.Future[T]) -> None:
    """An error that comes after nobody waits any more is no news: without a look it would be logged."""
    if not result.cancelled():
        result.exception()
