"""What Linear Road costs in other ways of doing it, on the same input, in one run.

The peers: the bare numba kernel, the DuckDB oracle in batch, an embedded SQL database polled once a second
("System X" today), PySpark with transformWithState keyed by vehicle (needs protobuf), and Penstock (`penstock
lr run --max-speed`). The input is the last seconds of three hours of one expressway: the busiest ones. Every
peer's answers are validated; wrong ones end this with 1.

Figure: processor seconds a million tuples of the whole process tree, and those after the first row came
        (without start and warm-up).
Time:   about 15 minutes with --xways 10; --quick about 4.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import facts
from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from benchmarks.peers.ways import WAYS, Cut, PeerError, Setting, flat, is_right, prepare

AFTER_START = "cpu_s_per_million_after_start"


def measure(setting: Setting, names: list[str], length: float | None) -> list[dict[str, Any]]:
    """Each way of doing it on the same rows."""
    file = flat(setting, length)
    tuples = sum(1 for _ in file.open("rb"))
    rows = []
    for name in names:
        try:
            rows.append(measure_one(setting, name, file, tuples))
        except PeerError as error:
            # A failure is a result too, and the others are still worth having.
            rows.append({"peer": name, "tuples": tuples, "failed": str(error), "right": False})
        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def measure_one(setting: Setting, name: str, file: Path, tuples: int) -> dict[str, Any]:
    """Run and judge one peer."""
    out, load = setting.scratch / f"{name}.csv", facts.load()
    figures = WAYS[name](setting, file, out)
    per_million = {
        key.replace("cpu_s", "cpu_s_per_million"): figures[key] / tuples * 1e6
        for key in ("cpu_s", "cpu_s_after_start")
    }
    right = is_right(setting, file, out)
    return {"peer": name, "tuples": tuples, **figures, **per_million, "load": load, "right": right}


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that ran, beside the cheapest one and beside Penstock."""
    figures = [row for row in rows if "failed" not in row]
    least = min((row[AFTER_START] for row in figures), default=0) or 1e-3
    ours = next((row[AFTER_START] for row in figures if row["peer"] == "penstock"), None)
    return [
        {
            "peer": row["peer"],
            "after start": row[AFTER_START],
            "in all": row["cpu_s_per_million"],
            "/ least": row[AFTER_START] / least,
            "/ penstock": None if ours is None else row[AFTER_START] / ours,
            "answers": "right" if row["right"] else "WRONG",
        }
        for row in figures
    ]


def judge(rows: list[dict[str, Any]], record: Record) -> None:
    for row in rows:
        if not row["right"]:
            record.found_wrong(f"{row['peer']}: {row.get('failed', 'wrong answers')}")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="of the busiest traffic")
    parser.add_argument("--days", type=int, default=7, help="of history")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--xways", type=float, help="shifted copies up to so many expressways")
    chosen = parser.parse_args()
    minutes, seconds = (10, 60) if chosen.quick else (180, chosen.seconds)
    config = {"minutes": minutes, "seconds": seconds, "days": chosen.days, "xways": chosen.xways or 1}
    with recording("peers-compare", chosen, **config) as record, scratch() as folder:
        setting = prepare(folder, Cut(1, minutes, seconds, chosen.days, chosen.seed))
        record.figures = measure(setting, chosen.only, chosen.xways)
        judge(record.figures, record)
        show("CPU-seconds a million tuples", shown(record.figures))
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
