"""Where the processor time of a running job goes: by process and by kind of thread.

PID is the topmost process, for example that of `penstock lr run`. Its children (JVM, Python workers, driver)
are counted with it. This reads /proc twice and costs the job nothing. `--quick` looks at this process itself.

Figure: cores used by each kind of thread, in user and in system mode.
Time:   --seconds (default 60); --quick 2 seconds.
"""

from __future__ import annotations

import collections
import re
import sys
import time
from pathlib import Path

import psutil

from benchmarks.common.command_line import options
from benchmarks.common.results import recording

TICK = 100  # a second, on every Linux that Spark runs on
SHOWN = 25


def kind(process: psutil.Process) -> str:
    """What a process is to the job."""
    line = " ".join(process.cmdline())
    if "java" in process.name():
        return "jvm"
    return "driver" if "driver_process" in line else "workers" if "pyspark" in line else "main"


def taken(top: psutil.Process) -> dict[tuple[str, str], float]:
    """Seconds so far, of each kind of thread, in user and in system mode."""
    seconds: dict[tuple[str, str], float] = collections.defaultdict(float)
    for process in [top, *top.children(recursive=True)]:
        try:
            role = kind(process)
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                text = (task / "stat").read_text()
                name = re.sub(r"[\d#-]+", "*", text[text.index("(") + 1 : text.rindex(")")])
                fields = text[text.rindex(")") + 2 :].split()
                seconds[f"{role}: {name}", "user"] += int(fields[11]) / TICK
                seconds[f"{role}: {name}", "system"] += int(fields[12]) / TICK
        except (psutil.Error, OSError):
            continue  # it ended meanwhile
    return seconds


def cores_over(top: psutil.Process, seconds: float) -> tuple[float, dict[str, dict[str, float]]]:
    """Seconds that passed, and the cores that each kind of thread used meanwhile, the busiest first."""
    before, begun = taken(top), time.monotonic()
    time.sleep(seconds)
    after, span = taken(top), time.monotonic() - begun
    cores: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for name, mode in after:
        cores[name][mode] = (after[name, mode] - before[name, mode]) / span
    return span, dict(sorted(cores.items(), key=lambda item: -sum(item[1].values())))


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("pid", type=int, nargs="?", help="the topmost process")
    parser.add_argument("--seconds", type=float, default=60.0)
    chosen = parser.parse_args()
    if chosen.pid is None and not chosen.quick:
        parser.error("give the PID of a running job")
    seconds = 2.0 if chosen.quick else chosen.seconds
    with recording("linear-road-threads", chosen, seconds=seconds) as record:
        span, cores = cores_over(psutil.Process(chosen.pid), seconds)
        record.figures = {"seconds": span, "cores": cores}
        for name, used in list(cores.items())[:SHOWN]:
            print(f"{name:36s} user {used['user']:.3f}  system {used['system']:.3f} cores")
        print(f"{'all':36s} {sum(sum(used.values()) for used in cores.values()):.3f} cores over {span:.0f} s")
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
