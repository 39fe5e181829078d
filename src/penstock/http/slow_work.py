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
    """Threads for one kind of work. `waiting` is how many may wait for a thread."""

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most, self._given = threads + waiting, 0

    async def run(self, function: Callable[[], T], seconds: float) -> T:
        """The result of a function, or an error when it has not come after so many seconds.

        Nobody can stop a thread. Work that may take longer looks at a time limit itself.
        """
        if self._given >= self._most:
            raise BusyError("the service is busy", hint="try again a little later")
        self._given += 1
        future = self._pool.submit(function)
        future.add_done_callback(self._done(asyncio.get_running_loop()))
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

    def _done(self, loop: asyncio.AbstractEventLoop) -> Callable[[object], None]:
        def one_less() -> None:
            self._given -= 1

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
