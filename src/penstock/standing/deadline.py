"""A time limit that long work looks at itself, where stopping leaves nothing half done.

The limit belongs to the thread that works. So functions deep inside need no parameter for it, and work
without a limit, such as a train, pays for one look at a variable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from penstock.standing.errors import OutOfTimeError

_LIMIT: ContextVar[tuple[float, float] | None] = ContextVar("limit", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let `check_time` refuse to go on when so many seconds have passed.

    >>> with time_limit(60):
    ...     check_time()
    """
    token = _LIMIT.set((time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def check_time() -> None:
    """Raise OutOfTimeError if the limit of this thread has passed."""
    limit = _LIMIT.get()
    if limit is not None and time.monotonic() > limit[0]:
        raise OutOfTimeError(
            "the answer takes too long and was cancelled",
            expected=f"at most {limit[1]:g} seconds",
            hint="narrow the query or its window",
        )
