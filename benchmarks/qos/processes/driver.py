"""The driver, a process of its own: puts prepared files into a folder at their time, and stamps them.

    python -m benchmarks.qos.processes.driver PREPARED FOLDER LOG PERIOD

One file every PERIOD seconds. A line of the log is the number of a file and when it was there. It ends after
the last file, or when its standard input is closed.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path


def drive(prepared: Path, folder: Path, log: Path, period: float) -> None:
    files = sorted(prepared.glob("*.csv"))
    begun = time.time()
    with log.open("w") as stamps:
        for number, file in enumerate(files):
            if _stopped(begun + number * period - time.time()):
                return
            os.utime(file)  # files are taken in the order of their times
            os.link(file, folder / file.name)  # one step: nobody sees half of a file
            stamps.write(f"{number} {time.time():.6f}\n")
            stamps.flush()


def _stopped(seconds: float) -> bool:
    """Wait so long, or until whoever started us closes our input."""
    ready, _, _ = select.select([sys.stdin], [], [], max(0.0, seconds))
    return bool(ready)


if __name__ == "__main__":
    given, into, stamps_file, every = sys.argv[1:5]
    drive(Path(given), Path(into), Path(stamps_file), float(every))
