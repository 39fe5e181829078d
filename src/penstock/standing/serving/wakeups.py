"""One thread waits for trains and wakes all followers, so that a follower needs no thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.standing.answers.query_engine import QueryEngine

_LOOK = 1.0  # seconds between checks whether anybody is left


class Wakeups:
    """Asyncio events that are set whenever something becomes visible.

    The thread lives as long as there are some.
    """

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._gate = threading.Lock()
        self._sleepers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._running = False

    @contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event for one follower, in its own loop."""
        event = asyncio.Event()
        with self._gate:
            self._sleepers[event] = asyncio.get_running_loop()
            if not self._running:
                self._running = True
                # From this moment on no train is missed, however late the thread runs.
                since = self._engine.moves
                threading.Thread(target=self._wait, args=(since,), name="wakeups", daemon=True).start()
        try:
            yield event
        finally:
            with self._gate:
                del self._sleepers[event]

    def _wait(self, moves: int) -> None:
        while True:
            moved = self._engine.wait_move(moves, _LOOK)
            moves = self._engine.moves
            with self._gate:
                if not self._sleepers:
                    self._running = False
                    return
                sleepers = list(self._sleepers.items()) if moved else []
            for event, loop in sleepers:
                with contextlib.suppress(RuntimeError):  # its loop is closed
                    loop.call_soon_threadsafe(event.set)
