"""How old an answer is: whether the network behind it still moves, and since when it does not.

Every sub-network again and again looks at its inputs, and either runs a train or finds nothing new. Both are
progress. An answer is as old as the longest time since a sub-network last made progress: what came in before
then is in it. Event time cannot tell this, since a stream without input is not behind. A network that another
process runs shows its life in the checkpoint (`store/ownership.py`).
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


@dataclass(frozen=True)
class Sign:
    """What a part of a network shows of itself: something that changes while it moves, and its clean end."""

    count: object
    ended: bool = False


def sign_of(query: Moving) -> Sign:
    """A sub-network has moved when it has looked in vain, or finished a train."""
    trains = query.last if query.drained() else query.last - 1
    return Sign((query.looks, trains), query.finished.is_set() and query.drained())


@dataclass(frozen=True)
class _Seen:
    """A sign, and when it was new."""

    sign: Sign
    at: float


class Freshness:
    """Watches the parts of one network. `failed` is set when one of them has failed for good.

    `signs` gives the sign of each part by name, `check` raises what went wrong.
    """

    def __init__(
        self,
        signs: Callable[[], Mapping[str, Sign]],
        check: Callable[[], None],
        stale_after: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signs, self._check, self._stale_after, self._clock = signs, check, stale_after, clock
        self._seen: dict[str, _Seen] = {}
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
        """Note which parts have moved since the last look, and whether one has failed."""
        now = self._clock()
        try:
            signs = self._signs()
        except OSError as error:  # a sign on disk cannot be read: nothing has moved
            _LOG.warning("standing queries: %s", error)
            return
        self._seen = {name: self._newest(name, sign, now) for name, sign in signs.items()}
        self._look_for_failure()

    def _newest(self, name: str, sign: Sign, now: float) -> _Seen:
        before = self._seen.get(name)
        return before if before is not None and before.sign == sign and not sign.ended else _Seen(sign, now)

    def _look_for_failure(self) -> None:
        if self.failed.is_set():
            return
        try:
            self._check()
        except Exception as error:
            if self._stopped.is_set():
                return
            _LOG.error("standing queries: %s", error)
            self.failure = error if isinstance(error, PenstockError) else PenstockError(str(error))
            self.failed.set()

    def age(self) -> float:
        """Seconds since all parts were last seen to move."""
        now = self._clock()
        return max((now - seen.at for seen in self._seen.values()), default=0.0)

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
