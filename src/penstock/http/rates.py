"""How often one client may change something: a bucket that fills with time and empties with each change."""

from __future__ import annotations

import time
from collections.abc import Callable

_MOST_CLIENTS = 10_000


class ChangeRates:
    """A bucket for each client: `burst` changes at once, then `per_second`.

    >>> now = 0.0
    >>> rates = ChangeRates(per_second=1.0, burst=2, clock=lambda: now)
    >>> [rates.allows("board") for _ in range(3)]
    [True, True, False]
    >>> now = 1.0
    >>> rates.allows("board")
    True
    """

    def __init__(
        self, *, per_second: float = 5.0, burst: int = 20, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._buckets: dict[str, tuple[float, float]] = {}  # client -> (changes left, when)

    def allows(self, client: str) -> bool:
        """Whether the client may change something now; counts it if so."""
        now = self._clock()
        left, at = self._buckets.get(client, (float(self._burst), now))
        left = min(float(self._burst), left + (now - at) * self._per_second)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.clear()
        self._buckets[client] = (max(0.0, left - 1.0) if left >= 1.0 else left, now)
        return left >= 1.0
