"""Queries of clients are read in a process of their own, which can be killed.

The SQL parser is a library that looks at no clock, shares the interpreter with everything else, and leaves
much garbage behind. In the service's own process a long text would slow down all clients, whatever thread it
is read in. Here it slows down those who register, for a bounded time.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO

from penstock.model.errors import PenstockError
from penstock.standing.errors import OutOfTimeError, QueryError
from penstock.standing.language.language import parse
from penstock.standing.language.query import StandingQuery, StreamInfo
from penstock.standing.limits import Limits

_NICE = 5  # whoever sends long texts takes no processor from those who ask
_STARTING = 60.0  # seconds that a new process may take more than one that runs


class ParserProcess:
    """One process, started when it is first needed and again after it was killed. Any thread may call."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, text: str, streams: Mapping[str, StreamInfo], limits: Limits) -> StandingQuery:
        """Read a query, or refuse it: also if it takes too long."""
        with self._gate:
            fresh = self._process is None or self._process.poll() is not None
            try:
                answer = self._ask((text, dict(streams), limits), limits.parse_seconds + _STARTING * fresh)
            except BaseException:
                self._kill()
                raise
        if isinstance(answer, QueryError):
            raise answer
        assert isinstance(answer, StandingQuery)
        return answer

    def _ask(self, question: object, seconds: float) -> object:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(question, process.stdin)
            process.stdin.flush()
            if not _readable(process.stdout, seconds):
                raise OutOfTimeError(
                    "the query takes too long to read",
                    expected=f"at most {seconds:g} seconds",
                    hint="a shorter condition",
                )
            return pickle.load(process.stdout)  # noqa: S301 - from our own process
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise QueryError("the query cannot be read", hint="a shorter condition") from error

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._kill()
            # Ctrl-C in a terminal is for the service. This process ends when its standard input closes.
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import answer_questions; answer_questions()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,
            )
        return self._process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not sent is lost on purpose
                if pipe is not None:
                    pipe.close()


def _readable(pipe: IO[bytes], seconds: float) -> bool:
    """Whether something arrives in time. `select.select` fails once a service has 1,024 connections."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(seconds))


PARSER = ParserProcess()
"""One for all services of this process: it keeps nothing of what it reads."""


def answer_questions() -> None:
    """The other side: read one query after the other until nobody asks any more."""
    os.nice(_NICE)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            text, streams, limits = pickle.load(questions)  # noqa: S301 - from our own process
        except EOFError:
            return
        try:
            answer: object = parse(text, streams, limits)
        except PenstockError as error:
            parts = {"found": error.found, "expected": error.expected, "hint": error.hint}
            answer = QueryError(error.problem, **parts)
        pickle.dump(answer, answers)
        answers.flush()
