"""Which boot of which host this is. `time.monotonic` counts from a boot, for all processes of a host."""

from __future__ import annotations

import socket
from functools import cache
from pathlib import Path


@cache
def boot_id() -> str:
    """An identifier of this boot; where the system has none, the name of the host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()
