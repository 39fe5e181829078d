"""A minute, or ten, in which more comes than can be done: who keeps how much utility?

One source with four outputs (`benchmarks/qos/workload.py`): strict alarms, windows, costly scores, and an
archive behind a connection point. First x1 is found: the highest rate at which a run without control keeps
all outputs in their zones. Then each contender gets the same files: 0.5 of x1, then a multiple of it, then
0.5 again. Driver and watcher are processes of their own. What was due comes from an exact run over the same
files; one judge (`benchmarks/qos/judge.py`) computes the utility of all contenders from what the watcher
saw. What has not appeared when the largest threshold has passed after the end is lost. The order of the
contenders is drawn by the seed.

Contenders: none, round-robin, fifo, state-only and feedback-only (our schemes; these four schedule and do
not shed), static (told the factor, drops at the source throughout), random (our amount, at the source, all
outputs alike), costliest and uniform (our amount, at the branches: the costliest first, or all alike),
latency (feedback on the delay alone), state and feedback (ours). With `--doubled` the costly box takes twice
as long from the middle of the overload to its end. The oracle is a linear program over the costs measured at
x1, without delays, at the capacity that x1 uses. At x1 zones are kept without control, and longer trains do
more; `saturated` is the same program at the rate that gets through when nothing has to be in time.

Figure: utility of each contender and of the oracle; for the strict output the share of seconds in time, and
        the time from the onset to its last late answer; the time from the end to the first whole input, and
        until all valves are open; turns of the load a minute; memory.
Time:   three contenders at one factor: about 40 minutes; --quick (a minute of overload) about 11.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import asdict, replace
from typing import Any

from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from benchmarks.qos import capacity
from benchmarks.qos.answers import Due
from benchmarks.qos.capacity import Bench, Capacity
from benchmarks.qos.contenders import NAMES, Told, controller
from benchmarks.qos.judge import turns
from benchmarks.qos.oracle import Bound, best_shares
from benchmarks.qos.traffic import Phase, TrafficPlan
from benchmarks.qos.verdict import all_open_after, figures, kept_load
from benchmarks.qos.workload import COSTLY, PERMUTATIONS, VALUED, graphs, network, worth_kept
from penstock.control.valve_places import places

CALM = 0.5
_AROUND = 40.0  # seconds that a trial takes beside its input, on a busy machine


def plan_of(rate: float, factor: float, chosen: argparse.Namespace) -> TrafficPlan:
    """Half of x1, a multiple of it, and half again."""
    return TrafficPlan(
        (
            Phase("before", chosen.calm, CALM * rate),
            Phase("overload", chosen.seconds, factor * rate),
            Phase("after", chosen.after, CALM * rate),
        )
    )


def oracle(x1: Capacity, factor: float, bench: Bench) -> dict[str, Any]:
    """The bound at this factor: the load grows with the rate, what may be used stays that of x1."""
    bound, saturated = (bound_at(x1, factor, bench, usable) for usable in (1.0, x1.saturated / x1.rate))
    told = {"shares": bound.shares, "saturated": saturated.utility}
    if bench.assignment.doubled is None:
        return {"utility": bound.utility, **told}
    doubled = bound_at(x1, factor, bench, costly=2.0)
    utility = (bound.utility + doubled.utility) / 2  # the cost doubles in the middle
    return {"utility": utility, **told, "shares_doubled": doubled.shares}


def bound_at(x1: Capacity, factor: float, bench: Bench, usable: float = 1.0, costly: float = 1.0) -> Bound:
    """`usable`: of the capacity at x1; `costly`: by how much the costly box costs more than at x1."""
    offered = [
        replace(node, load=factor * node.load * (costly if node.name.endswith(f"/{COSTLY}") else 1.0))
        for node in x1.nodes
    ]
    capacity_used = usable * sum(node.load for node in x1.nodes)
    return best_shares(offered, graphs(bench.assignment), capacity_used, {VALUED: worth_kept})


def compete(
    bench: Bench, x1: Capacity, factor: float, chosen: argparse.Namespace, pieces: list[dict[str, Any]]
) -> dict[str, Any]:
    """All chosen contenders at one factor, on the same files, in an order drawn by the seed.

    The piece is among `pieces` from the start: should one contender fail, the others are kept.
    """
    plan = plan_of(x1.rate, factor, chosen)
    prepared = bench.prepared(plan)
    due = bench.due(prepared, plan)
    bound = oracle(x1, factor, bench)
    order = list(chosen.contenders)
    random.Random(chosen.seed * 1000 + factor).shuffle(order)
    results: dict[str, Any] = {}
    piece = {"factor": factor, "order": order, "plan": plan.plain(), "due": due.totals, "oracle": bound}
    pieces.append({**piece, "contenders": results})
    for name in order:
        if time.monotonic() - bench.began + plan.seconds + _AROUND > chosen.budget:
            continue
        results[name] = one(bench, name, factor, prepared, plan, due, x1)
        results[name]["of_oracle"] = results[name]["utility"] / bound["utility"]
        tell(name, factor, results[name])
    pieces[-1] |= {
        "left_out": [name for name in order if name not in results],
        "overloaded": overloaded(results),
    }
    return pieces[-1]


def overloaded(results: dict[str, Any]) -> bool | None:
    """Whether a run without control lost a zone: otherwise the machine became faster, and it was no overload.

    None if no such run was made.
    """
    if "none" not in results:
        return None
    return any(
        each["in_zone"] is not None and each["in_zone"] < 0.5
        for each in results["none"]["by_output"].values()
    )


def one(  # noqa: PLR0917 - what a trial is made of
    bench: Bench, name: str, factor: float, prepared: Any, plan: TrafficPlan, due: Due, x1: Capacity
) -> dict[str, Any]:
    """One contender: run it, judge it, forget its files."""
    qos = graphs(bench.assignment)
    thresholds = [each.threshold for each in qos.values()]
    net = network(bench.root / "in", bench.root / "out", bench.assignment)
    where = places(net)
    control = controller(name, Told(factor, min(thresholds), x1.nodes, where))
    observed = bench.run(name, prepared, control, patience=max(thresholds))
    begin, end = span = plan.span("overload")
    kept = kept_load(observed, where, x1.nodes, begin, end)
    return {
        **figures(observed, due, qos, span),
        "valves_open_s": all_open_after(observed, end),
        "turns_per_minute": 60 * turns(load for _, load in kept) / (end - begin),
        "kept_load": kept,
    }


def tell(name: str, factor: float, result: dict[str, Any]) -> None:
    parts = ", ".join(
        f"{output} {each['utility'] or 0:.2f} ({each['share'] or 0:.2f} kept)"
        for output, each in result["by_output"].items()
    )
    print(f"  x{factor:g} {name}: utility {result['utility']:.3f}: {parts}", flush=True)


def check(record: Record, piece: dict[str, Any]) -> None:
    """Answers that the exact network does not give are wrong, whoever gave them."""
    for name, result in piece["contenders"].items():
        where = f"x{piece['factor']:g} {name}"
        if any(result["unasked_files"].values()):
            record.found_wrong(f"{where}: more answers than are due: {result['unasked_files']}")
        if result["control_failure"]:
            record.found_wrong(f"{where}: control has failed: {result['control_failure']}")
        if result["wrong_windows"] and name in ("none", "round-robin", "fifo", "state", "feedback"):
            record.found_wrong(f"{where}: {result['wrong_windows']} windows are not among the exact ones")


def table(piece: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "contender": name,
            "utility": result["utility"],
            "of_oracle": result["of_oracle"],
            "strict_in_time": result["strict"]["in_time"],
            "strict_complete": result["strict"]["complete"],
            "last_late_s": result["strict"]["last_late"],
            "whole_again_s": result["whole_again_s"],
            "turns_per_minute": result["turns_per_minute"],
            "cpu": result["cpu_s_per_s"],
            "memory_mb": result["memory_mb"],
        }
        for name, result in piece["contenders"].items()
    ]
    return sorted(rows, key=lambda row: -row["utility"])


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--factors", type=float, nargs="+", default=[2.0, 4.0])
    parser.add_argument("--contenders", nargs="+", default=["state", "none", "random"], choices=NAMES)
    parser.add_argument("--seconds", type=float, help="of overload (default: 600; --quick 60)")
    parser.add_argument("--permutation", type=int, default=0, choices=range(len(PERMUTATIONS)))
    parser.add_argument("--grain", default="", choices=["", "windows", "keys"], help="what `means` asks for")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds; contenders that do not fit are left out"
    )
    parser.add_argument("--doubled", action="store_true", help="the costly box becomes twice as slow")
    parser.add_argument("--burn", type=float, help="CPU-microseconds a tuple of the costly branch")
    chosen = parser.parse_args()
    chosen.seconds = chosen.seconds or (60.0 if chosen.quick else 600.0)
    chosen.calm, chosen.after = (15.0, 20.0) if chosen.quick else (120.0, 60.0)
    chosen.hold = 10.0 if chosen.quick else 60.0
    return chosen


def main() -> int:
    chosen = parse()
    assignment = replace(PERMUTATIONS[chosen.permutation], grain=chosen.grain)
    if chosen.burn is not None:
        assignment = replace(assignment, burn_us=chosen.burn)
    if chosen.doubled:
        doubled = chosen.calm + chosen.seconds / 2, chosen.calm + chosen.seconds
        assignment = replace(assignment, doubled=doubled)
    config = {
        "assignment": asdict(assignment),
        "seconds": chosen.seconds,
        "piece": f"x{chosen.factors} of {chosen.contenders}, {chosen.seconds:g} s, seed {chosen.seed}",
    }
    with recording("qos-overload", chosen, **config) as record, scratch() as root:
        spark = session()
        bench = Bench(spark, root, chosen.seed, assignment)
        x1 = capacity.find(bench, chosen.hold)
        record.figures = {
            "x1": x1.rate,
            "saturated": x1.saturated,
            "x1_trials": x1.trials,
            "nodes": [
                {**asdict(node), "outputs": sorted(node.outputs), "paid": sorted(node.paid)}
                for node in x1.nodes
            ],
            "pieces": [],
        }
        for factor in chosen.factors:
            piece = compete(bench, x1, factor, chosen, record.figures["pieces"])
            check(record, piece)
            show(
                f"x{factor:g} of {x1.rate:,.0f} tuples/s; oracle {piece['oracle']['utility']:.3f}",
                table(piece),
            )
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
