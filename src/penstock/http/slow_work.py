"""Work that may take long, beside the event loop: a few threads, a short queue, an end.

The event loop only moves bytes. So a service answers `/health` at once, whatever its clients make it compute.
Few threads, because all share one interpreter: each busy thread is one more that the loop waits for.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from penstock.model.errors import PenstockError

T = TypeVar("T")


class BusyError(PenstockError):
    """More work waits than the service takes on; the client may try again."""

    kind = "busy"


class TookTooLongError(PenstockError):
    """Work was given up because its time was over."""

    kind = "out of time"


class _InterruptedWork(BaseException):
    """Raised inside a thread from outside; not an Exception, so that nobody below swallows it."""


class SlowWork:
    """Threads for one kind of work.

    `waiting` is how many may wait for a thread. `pure` work changes nothing, so it can be interrupted
    anywhere, also inside a library that does not look at a time limit.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, pure: bool = False) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._name, self._pure = name, pure
        self._most, self._given = threads + waiting, 0

    async def run(self, function: Callable[[], T], seconds: float) -> T:
        """The result of a function, or an error when it has not come after so many seconds."""
        if self._given >= self._most:
            raise BusyError("the service is busy", hint="try again a little later")
        job = _Job(function)
        self._given += 1
        future = self._pool.submit(job)
        future.add_done_callback(self._done(asyncio.get_running_loop()))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except TimeoutError:
            if not future.cancel() and self._pure:
                job.interrupt()
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


class _Job(Generic[T]):
    """A function in a thread, which another thread may interrupt while it runs."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._gate = threading.Lock()
        self._thread: int | None = None

    def __call__(self) -> T:
        try:
            with self._gate:
                self._thread = threading.get_ident()
            try:
                return self._function()
            finally:
                # Behind this the thread belongs to another job and must not be interrupted.
                with self._gate:
                    self._thread = None
        except _InterruptedWork:
            raise TookTooLongError("interrupted") from None

    def interrupt(self) -> None:
        with self._gate:
            if self._thread is not None:
                raised = ctypes.py_object(_InterruptedWork)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), raised)
