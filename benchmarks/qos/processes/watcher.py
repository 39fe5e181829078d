"""The watcher, a process of its own: sees output files appear, and stamps them.

    python -m benchmarks.qos.processes.watcher FOLDER LOG

Looks at the sub-folders of FOLDER thirty times a second. A line of the log is an output, a file and when it
was first seen. Ends when its standard input is closed.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

EVERY = 1 / 30
_TICK = 100_000_000  # ns


def watch(folder: Path, log: Path) -> None:
    seen: set[tuple[str, str]] = set()
    changed: dict[str, int] = {}
    with log.open("w") as stamps:
        while True:
            for output, file in new_files(folder, seen, changed):
                stamps.write(f"{output} {file} {time.time():.6f}\n")
            stamps.flush()
            ready, _, _ = select.select([sys.stdin], [], [], EVERY)
            if ready:
                return


def new_files(folder: Path, seen: set[tuple[str, str]], changed: dict[str, int]) -> Iterator[tuple[str, str]]:
    """(output, file) of the files not seen before. A folder that has not changed is not listed again."""
    for path in sorted(folder.iterdir()):
        output, at = path.name, path.stat().st_mtime_ns
        # The clock of the file system is coarse: a change in the tick of our last look shows no new time.
        if changed.get(output) == at and time.time_ns() - at > _TICK:
            continue
        changed[output] = at
        for name in os.listdir(path):  # noqa: PTH208 - thousands of names, thirty times a second
            if name.endswith(".parquet") and name[0] not in "._" and (output, name) not in seen:
                seen.add((output, name))
                yield output, name


def files_in(log: Path) -> list[tuple[str, str, float]]:
    """(output, file, when it was seen), in the order in which they were seen."""
    words = (line.split() for line in log.read_text().splitlines())
    return [(output, name, float(at)) for output, name, at in words]


if __name__ == "__main__":
    watch(*map(Path, sys.argv[1:3]))
