"""How old an answer is: whether the network behind it still moves, and since when it does not.

Every sub-network again and again looks at its inputs, and either runs a train or finds nothing new. Both are
progress. An answer is as old as the longest time since a sub-network last made progress: what came in before
then is in it. Event time cannot tell this, since a stream without input is not behind.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.model.durations import format_duration
from penstock.model.errors import PenstockError
from penstock.standing.errors import StaleError

_LOG = logging.getLogger("penstock")
_LOOK = 0.25  # seconds between two looks


class Moving(Protocol):
    """What is read of a sub-network's query."""

    @property
    def finished(self) -> threading.Event: ...

    @property
    def looks(self) -> int: ...

    @property
    def last(self) -> int: ...

    def drained(self) -> bool:
        """Whether no train is running."""


class Watched(Protocol):
    """What is read of a runtime."""

    @property
    def queries(self) -> Mapping[str, Moving]: ...

    def check(self) -> None:
        """Raise what went wrong."""


@dataclass
class _Progress:
    """What was last seen of a sub-network, and when it had last moved."""

    looks: int
    trains: int
    moved: float


class Freshness:
    """Watches the sub-networks of one runtime. `failed` is set when one of them has failed for good."""

    def __init__(
        self, runtime: Watched, stale_after: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime, self._stale_after, self._clock = runtime, stale_after, clock
        self._progress: dict[str, _Progress] = {}
        self._stopped = threading.Event()
        self.failed = threading.Event()
        self.failure: PenstockError | None = None

    def start(self) -> None:
        """Look again and again, in a thread of its own."""
        threading.Thread(target=self._watch, name="freshness", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK):
            self.look()

    def look(self) -> None:
        """Note which sub-networks have moved since the last look, and whether one has failed."""
        now = self._clock()
        for name, query in list(self._runtime.queries.items()):
            trains = query.last if query.drained() else query.last - 1
            before = self._progress.get(name)
            ended = query.finished.is_set() and query.drained()  # its input is used up
            if before is None or ended or (before.looks, before.trains) != (query.looks, trains):
                self._progress[name] = _Progress(query.looks, trains, now)
        for name in set(self._progress) - set(self._runtime.queries):
            self._progress.pop(name, None)
        self._look_for_failure()

    def _look_for_failure(self) -> None:
        if self.failed.is_set():
            return
        try:
            self._runtime.check()
        except Exception as error:
            if self._stopped.is_set():
                return
            _LOG.error("standing queries: %s", error)
            self.failure = error if isinstance(error, PenstockError) else PenstockError(str(error))
            self.failed.set()

    def age(self) -> float:
        """Seconds since all sub-networks were last seen to move."""
        now = self._clock()
        return max((now - progress.moved for progress in list(self._progress.values())), default=0.0)

    def check(self) -> float:
        """The age of an answer that is given now. Raises StaleError if it would say nothing about now."""
        age = self.age()
        if self.failed.is_set():
            # The cause is in the log: it may hold paths and the texts of others.
            raise StaleError("the network has failed, so there are no current answers")
        if self._stale_after is not None and age > self._stale_after:
            raise StaleError(
                "the network lags, so there are no current answers",
                found=f"no progress for {format_duration(round(age) * 1_000_000)}",
                expected=f"at most {format_duration(round(self._stale_after * 1_000_000))} (--stale-after)",
                hint="try again later",
            )
        return age
