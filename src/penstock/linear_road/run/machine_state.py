"""What the machine did besides: stolen processor time, pages read from disk, pages waiting for it.

Idea: answers come late in stalls, and the cause of a stall may lie outside the run. The kernel counts some of
the possible causes. These are totals of the whole machine; None where the system does not tell.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_STOLEN = 8  # the field of the first line of /proc/stat, counted from its name


class MachineState(NamedTuple):
    """Totals since the machine was started, but for `dirty_mb`: what waits for the disk now."""

    stolen_s: float | None = None
    major_faults: int | None = None
    dirty_mb: float | None = None


def machine_state(proc: Path = _PROC) -> MachineState:
    """The machine as the kernel shows it."""
    with suppress(OSError, ValueError, KeyError, IndexError):
        stolen = int((proc / "stat").read_text().split("\n", 1)[0].split()[_STOLEN])
        memory = _numbers(proc / "meminfo")
        return MachineState(
            stolen / os.sysconf("SC_CLK_TCK"),
            _numbers(proc / "vmstat")["pgmajfault"],
            (memory["Dirty:"] + memory["Writeback:"]) / 1000,
        )
    return MachineState()


def _numbers(file: Path) -> dict[str, int]:
    """The first number of each line, by its name."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {fields[0]: int(fields[1]) for fields in lines}
