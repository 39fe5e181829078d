"""A clock that stands still until a test moves it."""

from __future__ import annotations

from penstock.model.durations import parse_duration


class HandClock:
    """Time in microseconds since 1970, moved by hand; the engine takes it as `clock=clock.now`.

    >>> clock = HandClock()
    >>> clock.advance("10 seconds")
    >>> clock.now()
    10000000
    """

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """Microseconds since 1970 UTC."""
        return self._now

    def advance(self, by: str | float) -> None:
        """Move on by a length of time ('2 minutes', or seconds); time never runs backwards."""
        step = parse_duration(by)
        if step < 0:
            raise ValueError(f"a clock cannot go back by {-step} us; expected a length of 0 or more")
        self._now += step
