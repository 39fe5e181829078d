"""Progress callbacks of long steps."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, total) as a long step advances."""


def silent(_done: int, _total: int) -> None:
    """Ignore a progress report."""
