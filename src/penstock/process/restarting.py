"""A command that is started again when it fails on the way: after a pause that grows, and not for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from penstock.process.stop_signal import StopSignal

SUPERVISED = "PENSTOCK_SUPERVISED"
"""Set for the child: its standard input is a pipe that closes when its parent is gone."""


@dataclass(frozen=True)
class RestartPolicy:
    """When a command is started again.

    `codes`: exit codes that are worth another start; whatever ends by a signal is too. A run of at least
    `long` seconds was a good one: the pauses begin anew. After `limit` short runs in a row it is given up.
    """

    codes: Collection[int] = (1,)
    limit: int = 5
    long: float = 60.0
    first_pause: float = 1.0
    longest_pause: float = 60.0

    def pause(self, failures: int) -> float:
        """Seconds to wait after so many short runs in a row.

        >>> [RestartPolicy().pause(failures) for failures in (1, 2, 3, 9)]
        [1.0, 2.0, 4.0, 60.0]
        """
        return min(self.first_pause * 2.0 ** max(failures - 1, 0), self.longest_pause)


def keep_running(
    command: Sequence[str], policy: RestartPolicy, stop: StopSignal, say: Callable[[str], None]
) -> int:
    """Run a command until it ends well, is asked to stop, or fails too often; returns its exit code."""
    failures = 0
    while True:
        began = time.monotonic()
        code = _run(command, stop)
        if stop.is_set() or (code >= 0 and code not in policy.codes):
            return abs(code)
        failures = 1 if time.monotonic() - began >= policy.long else failures + 1
        if failures >= policy.limit:
            say(f"gave up after {failures} failures in a row, the last with {_how(code)}")
            return abs(code) or 1
        pause = policy.pause(failures)
        say(f"ended with {_how(code)}; starting again in {pause:g} s")
        if stop.wait(pause):
            return abs(code)


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _run(command: Sequence[str], stop: StopSignal) -> int:
    """Run the command once. A signal to us is passed on, and the child ends in its own time."""
    environment = {**os.environ, SUPERVISED: "1"}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    asked = False
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.1)
            if stop.is_set() and not asked:
                asked = True
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
    finally:
        process.stdin.close()


def is_supervised() -> bool:
    """Whether this process is such a child."""
    return os.environ.pop(SUPERVISED, "") == "1"
