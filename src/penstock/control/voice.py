"""How a command says what control warns of: that it has failed, say, or that an output cannot be in time.

Control logs it. Python writes such lines to standard error if nobody listens, with a trace of each failure.
On a console a sentence is enough.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOG = logging.getLogger("penstock.control")


class _Sentences(logging.Handler):
    """Takes the message alone."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Say it. Whoever logs is in the middle of something else: it must not fail by this."""
        try:
            self._say(f"{record.levelname.lower()}: {record.getMessage()}")
        except Exception:
            self.handleError(record)


@contextmanager
def warnings_said(say: Callable[[str], None]) -> Iterator[None]:
    """While this holds, each warning of control is said in one sentence."""
    sentences = _Sentences(say)
    LOG.addHandler(sentences)
    try:
        yield
    finally:
        LOG.removeHandler(sentences)
