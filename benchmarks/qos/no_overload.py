"""Control while there is no overload: it must shed nothing, change no answer, and cost next to nothing.

The network is that of `benchmarks/qos/overload.py`, and x1 is found in the same run. *Bursts*: 0.7 of x1,
with one second at 1.5 of x1 every 20 seconds; all answers are compared with those of an exact run without
control, and every valve that was set is counted. *Pairs*: 0.5 of x1 with and without control in turns; the
CPU is that of the whole process tree.

Figure: tuples shed, valves set, and answers that differ; CPU with control divided by that without, by pair.
Time:   about 25 minutes; --quick about 9.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from benchmarks.qos import capacity
from benchmarks.qos.answers import WINDOWED, Due, delivered_in
from benchmarks.qos.capacity import Bench
from benchmarks.qos.judge import too_many
from benchmarks.qos.traffic import Phase, TrafficPlan, steady
from benchmarks.qos.trial import Observed
from benchmarks.qos.verdict import figures
from benchmarks.qos.workload import OUTPUTS, PERMUTATIONS, graphs
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions

LEVEL, BURST, EVERY = 0.7, 1.5, 20.0
HALF = 0.5
SETTLED = 10.0  # seconds of a pair that are not counted


def bursts_plan(rate: float, seconds: float) -> TrafficPlan:
    """0.7 of the rate, and each 20th second at 1.5 of it."""
    rounds = round(seconds / EVERY)
    level, burst = Phase("level", EVERY - 1, LEVEL * rate), Phase("burst", 1.0, BURST * rate)
    return TrafficPlan((level, burst) * rounds + (Phase("end", 5.0, LEVEL * rate),))


def ids(folder: Path, names: list[str]) -> pa.Array:
    """The ids of all tuples in these files, in order."""
    parts = [pq.ParquetFile(folder / name).read(columns=["id"])["id"] for name in names]
    chunks = [chunk for part in parts for chunk in part.chunks]
    together = pa.chunked_array(chunks, pa.int64())
    return together.take(pc.sort_indices(together)).combine_chunks()


def differences(observed: Observed, exact: Path, due: Due) -> dict[str, int]:
    """By output, answers that are missing, too many or others than the exact ones."""
    wrong = {}
    for output in (name for name in OUTPUTS if name != WINDOWED):
        names = [name for each, name, at in observed.seen if each == output and at <= observed.deadline]
        mine, theirs = ids(observed.out / output, names), ids(exact / output, _parquet(exact / output))
        wrong[output] = 0 if mine.equals(theirs) else max(1, abs(len(mine) - len(theirs)))
    delivered = delivered_in(observed.out, observed.seen, due, len(observed.arrivals))
    came = sum(each.amount for each in delivered.by_output[WINDOWED])
    missing = sum(due.by_output[WINDOWED].values()) - came
    unasked = len(too_many(due.by_output[WINDOWED], delivered.by_output[WINDOWED]))
    wrong[WINDOWED] = round(abs(missing)) + delivered.wrong + unasked
    return wrong


def _parquet(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.parquet")]


def shed_in(checkpoint: Path) -> int:
    """Tuples that any valve shed, by the accounts of the runtime."""
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        decisions = Decisions(catalog)
        sheds = [shed for name in catalog.totals() for _, shed in decisions.sheds(name, last=1_000_000)]
    finally:
        catalog.close()
    return sum(shed.shed for shed in sheds)


def bursts(bench: Bench, rate: float, seconds: float, record: Record) -> dict[str, Any]:
    """0.7 of x1 with bursts under control, against an exact run."""
    plan, qos = bursts_plan(rate, seconds), graphs(bench.assignment)
    prepared = bench.prepared(plan)
    due, exact = bench.due_and_answers(prepared, plan)
    patience = max(each.threshold for each in qos.values())
    observed = bench.run("bursts", prepared, ps.Control(), patience=patience)
    shed, differ = shed_in(observed.folder / "checkpoint"), differences(observed, exact, due)
    valves = sum(bool(shares) for _, _, shares in observed.events)
    if shed:
        record.found_wrong(f"{shed} tuples were shed without overload, by {valves} settings of valves")
    if any(differ.values()):
        record.found_wrong(f"answers differ from those without control: {differ}")
    told = figures(observed, due, qos, (0.0, plan.seconds))
    return {"shed": shed, "valves_set": valves, "differ": differ, "load": observed.load, "figures": told}


def pairs(bench: Bench, rate: float, seconds: float, count: int) -> list[dict[str, float]]:
    """CPU at half load, with and without control; who is first changes from pair to pair."""
    plan = steady("half", seconds, HALF * rate)
    prepared, rows = bench.prepared(plan), []
    for number in range(count):
        cpu: dict[str, float] = {}
        for name in ("without", "with") if number % 2 == 0 else ("with", "without"):
            control = ps.Control() if name == "with" else None
            observed = bench.run(f"pair-{name}", prepared, control, patience=0.0)
            cpu[name] = observed.cpu_between(SETTLED, seconds) / (seconds - SETTLED)
            cpu[f"load_{name}"] = observed.load
        rows.append({**cpu, "ratio": cpu["with"] / cpu["without"]})
        print(f"  pair {number + 1}: {rows[-1]}", flush=True)
    return rows


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--part", choices=["bursts", "pairs"], help="one part only (default: both)")
    parser.add_argument("--seconds", type=float, help="of bursts (default: 600; --quick 60)")
    parser.add_argument("--pairs", type=int, help="default: 5; --quick 2")
    chosen = parser.parse_args()
    chosen.seconds = chosen.seconds or (60.0 if chosen.quick else 600.0)
    chosen.pairs = chosen.pairs or (2 if chosen.quick else 5)
    chosen.hold = 10.0 if chosen.quick else 60.0
    chosen.pair_seconds = 30.0 if chosen.quick else 60.0
    return chosen


def main() -> int:
    chosen = parse()
    config = {"seconds": chosen.seconds, "pairs": chosen.pairs, "part": chosen.part}
    with recording("qos-no-overload", chosen, **config) as record, scratch() as root:
        spark = session()
        bench = Bench(spark, root, chosen.seed, PERMUTATIONS[0])
        x1 = capacity.find(bench, chosen.hold)
        record.figures = {"x1": x1.rate, "x1_trials": x1.trials}
        if chosen.part in (None, "bursts"):
            told = record.figures["bursts"] = bursts(bench, x1.rate, chosen.seconds, record)
            show("Bursts at 0.7 of x1", [{name: told[name] for name in ("shed", "valves_set", "load")}])
        if chosen.part in (None, "pairs"):
            rows = record.figures["pairs"] = pairs(bench, x1.rate, chosen.pair_seconds, chosen.pairs)
            record.figures["cpu_ratio"] = statistics.median(row["ratio"] for row in rows)
            show("CPU-seconds a second at half load", rows)
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
