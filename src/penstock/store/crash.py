"""Crashes on demand: kill -9 of this process at a named point of the code, like a power loss.

Set PENSTOCK_CRASH_AT="point:n", and the process kills itself the n-th time it reaches `crash_point("point")`.
Each process counts for itself. If the variable is unset, a crash point calls an empty function. With
PENSTOCK_CRASH_SIGNAL=SIGSTOP the process is suspended instead, and goes on after SIGCONT.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

VARIABLE, SIGNAL = "PENSTOCK_CRASH_AT", "PENSTOCK_CRASH_SIGNAL"


def crash_at(point: str, times: int = 1) -> dict[str, str]:
    """The environment for a process that is to die the n-th time it reaches the point.

    >>> crash_at("after_sink", 3)[VARIABLE]
    'after_sink:3'
    """
    return {**os.environ, VARIABLE: f"{point}:{times}"}


def suspend_at(point: str, times: int = 1) -> dict[str, str]:
    """The environment for a process that is to be suspended the n-th time it reaches the point."""
    return {**crash_at(point, times), SIGNAL: "SIGSTOP"}


def parse_plan(text: str) -> tuple[str, int]:
    """Parse "point:n" into point and number; n is 1 if left out.

    >>> parse_plan("after_sink:3"), parse_plan("after_sink")
    (('after_sink', 3), ('after_sink', 1))
    """
    point, _, number = text.partition(":")
    times = int(number) if number.isdigit() else 0 if number else 1
    if not point or times < 1:
        raise ValueError(
            f"{VARIABLE}='{text}' is no plan for a crash; expected 'point' or 'point:n' with n of 1 or more"
        )
    return point, times


def _armed(plan: str) -> Callable[[str], None]:
    point, left = parse_plan(plan)

    def reached(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                # No handler, finally or flush may run: the kill tests depend on it.
                os.kill(os.getpid(), signal.Signals[os.environ.get(SIGNAL, "SIGKILL")])

    return reached


def _unarmed(name: str) -> None:
    del name


crash_point: Callable[[str], None] = _armed(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else _unarmed
