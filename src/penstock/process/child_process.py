"""A child process that ends with its parent, whatever ends the parent.

Idea: the parent keeps one end of a pipe that is the child's standard input, and never writes. When the parent
is gone, even by SIGKILL, the pipe closes; a thread of the child waits for just that. SIGTERM asks the child
for a clean end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

ENDED_WITH_PARENT = 9
"""Exit code of a child whose parent is gone."""

_PARTS = ("  found:", "  expected:", "  hint:")  # as `model/errors.py` writes them


def run_child(command: Sequence[str], log: Path, *, patience: float = 120.0) -> int:
    """Run a command and return its exit code; if this process is interrupted, the child ends first."""
    with open(log, "wb", opener=_private) as said:
        # A session of its own: Ctrl-C in a terminal reaches the parent, and the parent asks the child to end.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True
        )
    try:
        return process.wait()
    except BaseException:
        _end(process, patience)
        raise
    finally:
        assert process.stdin is not None
        process.stdin.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        # It leads a session of its own, so its number is that of its group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_said(log: Path) -> str:
    """The last message of a log in one line; empty if there is none.

    It is the last line that holds anything. A refusal's last lines are its parts, so its first one belongs
    to them.
    """
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    parts: list[str] = []
    for line in reversed(lines):
        if line.strip():
            parts.insert(0, " ".join(line.split()))
            if not line.startswith(_PARTS):
                break
    return "; ".join(parts)


def when_parent_is_gone(end: Callable[[], None]) -> None:
    """Call `end` from a thread of its own once standard input closes; nothing is ever written to it."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        end()

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()


def end_at_once() -> None:
    """End this process without tidying up, as a kill would."""
    os._exit(ENDED_WITH_PARENT)


def end_group_at_once() -> None:
    """End this process and what it has started, if it leads a group of its own; else itself."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    end_at_once()
