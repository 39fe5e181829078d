"""Progress of a long step, told to whoever watches."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, total) as a long step goes on."""


def silent(_done: int, _total: int) -> None:
    """A progress report nobody watches."""
