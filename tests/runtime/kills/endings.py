"""How a run that was to be cut short has ended: killed, left alone by Spark, or failed by itself, which is a
fault of ours.
"""

from __future__ import annotations

import signal
from pathlib import Path

# How a driver that was not killed itself ends when what it needs was: anything else is a failure of ours.
JVM_LOST = (
    b"Answer from Java side is empty",
    b"ConnectionRefusedError",
    b"ConnectionResetError",
    b"Spark's JVM is gone",
)
WORKER_LOST = (b"Python worker exited unexpectedly (crashed)", b"a Python worker was killed or crashed")
# Spark gives a Python process ten seconds to come up, which a busy machine may not keep to: the run is
# started once more.
GAVE_UP = b"Python worker failed to connect back"


def size(folder: Path) -> int:
    """How much the runs in this folder have said so far."""
    return (folder / "log.txt").stat().st_size if (folder / "log.txt").exists() else 0


def log_since(folder: Path, before: int) -> bytes:
    return (folder / "log.txt").read_bytes()[before:]


def cut_short(how: str, code: int, said: bytes) -> bool:
    """Whether the run was killed.

    False if it ended before, or Spark gave up. One that failed otherwise fails the test.
    """
    if code in (0, -signal.SIGKILL) or GAVE_UP in said:
        return code == -signal.SIGKILL
    lost = JVM_LOST if how == "jvm" else WORKER_LOST if how.startswith("stage-") else ()
    assert any(text in said for text in lost), f"{how}: exit code {code}\n{said.decode()[-5000:]}"
    return True
