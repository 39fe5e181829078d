"""The one signal handler: Ctrl-C (SIGINT) and `kill` (SIGTERM) ask a process to stop, and it stops cleanly.

Idea: a handler only sets an event; the code looks at the event where stopping does no harm. Spark puts its
own handler on SIGINT when a session starts, so whoever starts one takes the signals again after that.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal(threading.Event):
    """Set once somebody asks this process to stop: by a signal, or by `set()`.

    >>> with StopSignal().on_signals() as stop:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stop.is_set()
    True
    """

    @contextmanager
    def on_signals(self) -> Iterator[StopSignal]:
        """Be set by signals inside the block; the handlers of before are back after it."""
        # Python lets only the main thread set handlers. Elsewhere somebody else listens, and calls `set()`.
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.getsignal(number) for number in SIGNALS}
        self.take_signals()
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def take_signals(self) -> None:
        """Be set by signals from now on, whoever has handled them before."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: self.set())


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt inside the block: who waits for a child ends the child first.

    >>> try:
    ...     with sigterm_as_ctrl_c():
    ...         signal.raise_signal(signal.SIGTERM)
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
