"""CPU that a valve saves in front of decoding: blocks of 1,024 lines against tuples, by share.

One slice of CSV with five columns, as long as a task has of a long train, is read, shed, decoded, stamped and
checked for lateness, as in a task (`engine/spark/entry/slice_entry.py`), again and again, in one process
without Spark. Blocks and tuples take turns, and so do the shares. The CPU is that of all threads.

Figure: CPU-seconds a million lines offered, and the part saved against no valve, for each grain and share.
Time:   about a minute; --quick some seconds.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from penstock.connectors.files.text import ByteRange
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.entry.slice_entry import enter
from penstock.model.boxes import Source

SHARES = (1.0, 0.5, 0.25, 0.1)
GRAINS = ("blocks", "tuples")
SCHEMA = "time TIMESTAMP, vid INT, spd INT, seg INT, note STRING"


def source() -> Source:
    return Source(
        name="cars", format=ps.csv("in/", schema=SCHEMA), schema=ps.Schema.parse(SCHEMA), timestamp="time"
    )


def written(path: Path, lines: int, seed: int) -> ByteRange:
    """A file of so many lines, and the slice that is all of it."""
    chance = random.Random(seed)
    rows = (
        f"2026-01-01 {i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d},{chance.randrange(100_000)},"
        f"{chance.randrange(100)},{chance.randrange(100)},lane {chance.randrange(8)}\n"
        for i in range(lines)
    )
    path.write_text("".join(rows))
    return ByteRange(str(path), 0, 0, path.stat().st_size, 0, rows=lines)


def cpu(piece: ByteRange, valve: Valve) -> tuple[float, int]:
    """CPU-seconds of one entry, and how many tuples it let in."""
    valves = () if valve.open else (valve,)
    before = time.process_time()
    entered = enter(source(), piece, -(2**62), valves)
    used = time.process_time() - before
    assert entered.offered == entered.tuples.num_rows + entered.dead.num_rows + entered.shed
    return used, entered.tuples.num_rows


def measured(piece: ByteRange, lines: int, rounds: int) -> list[dict[str, object]]:
    """The median of so many rounds, in which all contenders take turns."""
    valves = [Valve("cars", share, grain, lot=7) for share in SHARES for grain in GRAINS]
    used: dict[Valve, list[float]] = {valve: [] for valve in valves}
    kept = {valve: cpu(piece, valve)[1] for valve in valves}  # not counted: warms up
    for _ in range(rounds):
        for valve in valves:
            used[valve].append(cpu(piece, valve)[0])
    million = {valve: statistics.median(times) / lines * 1e6 for valve, times in used.items()}
    whole = statistics.median([million[valve] for valve in valves if valve.open])
    return [
        {
            "grain": valve.grain,
            "share": valve.share,
            "kept": kept[valve] / lines,
            "cpu_s_per_million": million[valve],
            "saved": 1 - million[valve] / whole,
        }
        for valve in valves
    ]


def main() -> int:
    chosen = options(__doc__).parse_args()
    lines, rounds = (250_000, 5) if chosen.quick else (250_000, 41)
    with recording("shed-decode", chosen, lines=lines, rounds=rounds, schema=SCHEMA) as record:
        with scratch() as folder:
            record.figures = measured(written(folder / "cars.csv", lines, chosen.seed or 1), lines, rounds)
        show("CPU of entry, by what is shed", record.figures)
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
