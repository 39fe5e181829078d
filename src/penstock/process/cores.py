"""How many cores this process may use.

A container or a mask often gives a process fewer cores than the machine has. Who plans with those of the
machine starts too many tasks, and believes in a capacity that is not there.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """The cores of the affinity mask, or the quota of the container if that is less; at least 1."""
    masked = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(masked, quota(_GROUPS, _own_group(_OWN_GROUP)))))


def quota(groups: Path, group: PurePosixPath) -> float:
    """The least quota of a control group (version 2) and of those above it, in cores.

    A group that does not stand there counts as the root: inside a container the names of groups are those
    of the host.
    """
    least = math.inf
    for each in (group, *group.parents):
        with suppress(OSError, ValueError):
            allowed, period = (groups / each.relative_to("/") / "cpu.max").read_text().split()
            if allowed != "max":
                least = min(least, int(allowed) / int(period))
    return least


def _own_group(file: Path) -> PurePosixPath:
    """The control group of this process, as version 2 names it."""
    with suppress(OSError):
        for line in file.read_text().splitlines():
            if line.startswith("0::/"):
                return PurePosixPath(line.removeprefix("0::"))
    return PurePosixPath("/")
