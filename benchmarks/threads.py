"""Where the processor time of a running job goes: by process and by kind of thread, over some seconds.

    python benchmarks/threads.py PID [--seconds 60] [--out FILE]

PID is the topmost process, for example that of `penstock lr run`; its children (JVM, Python workers, driver) are counted with
it. It reads /proc twice and costs the job nothing.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import time
from pathlib import Path
from typing import Any

import psutil

TICK = 100  # a second, on every Linux that Spark runs on


def kind(process: psutil.Process) -> str:
    """What a process is to the job."""
    line = " ".join(process.cmdline())
    if "java" in process.name():
        return "jvm"
    return "driver" if "driver_process" in line else "workers" if "pyspark" in line else "main"


def taken(top: psutil.Process) -> collections.Counter[tuple[str, str]]:
    """Seconds so far, of each kind of thread, in user and in system mode."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for process in [top, *top.children(recursive=True)]:
        try:
            role = kind(process)
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                text = (task / "stat").read_text()
                name = re.sub(r"[\d#-]+", "*", text[text.index("(") + 1 : text.rindex(")")])
                fields = text[text.rindex(")") + 2 :].split()
                found[f"{role}: {name}", "user"] += int(fields[11]) / TICK
                found[f"{role}: {name}", "system"] += int(fields[12]) / TICK
        except (psutil.Error, OSError):
            continue  # it ended meanwhile
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pid", type=int)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, help="a JSON file as well")
    chosen = parser.parse_args()
    top = psutil.Process(chosen.pid)
    before, begun = taken(top), time.monotonic()
    time.sleep(chosen.seconds)
    after, span = taken(top), time.monotonic() - begun
    cores: dict[str, dict[str, Any]] = {}
    for name, mode in after:
        spent = (after[name, mode] - before[name, mode]) / span
        cores.setdefault(name, {})[mode] = round(spent, 4)
    rows = sorted(cores.items(), key=lambda item: -sum(item[1].values()))
    for name, spent in rows[:25]:
        print(f"{name:36s} user {spent['user']:.3f}  system {spent['system']:.3f} cores")
    print(f"{'all':36s} {sum(sum(spent.values()) for _, spent in rows):.3f} cores over {span:.0f} s")
    if chosen.out:
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        chosen.out.write_text(
            json.dumps({"date": date, "seconds": span, "cores": dict(rows)}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
