"""From what was seen of a run to its figures: the judge for each output, and what is told beside utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.common.tables import quantile
from benchmarks.qos import judge
from benchmarks.qos.answers import WINDOWED, Delivered, Due, delivered_in
from benchmarks.qos.judge import Second
from benchmarks.qos.traffic import worst_lag
from benchmarks.qos.trial import Observed
from penstock.control.roadmap import LoadNode
from penstock.control.valve_places import ValvePlace
from penstock.model.qos import QoS

STRICT = "alarms"
_SETTLED_MEMORY = 0.2  # of an overload: memory may grow that long, buffers fill


def judged(observed: Observed, due: Due, qos: Mapping[str, QoS]) -> tuple[dict[str, list[Second]], Delivered]:
    """The seconds of each output."""
    delivered = delivered_in(observed.out, observed.seen, due, len(observed.arrivals))
    seconds = {
        name: judge.judge(
            observed.arrivals, due.by_output[name], delivered.by_output[name], each, observed.deadline
        )
        for name, each in qos.items()
    }
    return seconds, delivered


def figures(
    observed: Observed, due: Due, qos: Mapping[str, QoS], span: tuple[float, float]
) -> dict[str, Any]:
    """What a result tells of one contender in a stretch of time, in seconds since the first file."""
    seconds, delivered = judged(observed, due, qos)
    begin, end = span
    during = {name: judge.between(each, begin, end) for name, each in seconds.items()}
    utilities = {name: judge.mean_utility(each) for name, each in during.items()}
    strict = judge.strict_figures(seconds[STRICT], qos[STRICT], begin, end)
    unasked = {
        name: len(judge.too_many(due.by_output[name], answers))
        for name, answers in delivered.by_output.items()
    }
    settled = [
        (at - observed.arrivals[0], mb)
        for at, mb in observed.memory
        if begin + _SETTLED_MEMORY * (end - begin) <= at - observed.arrivals[0] <= end
    ]
    without_windows = {name: each for name, each in seconds.items() if name != WINDOWED}
    return {
        "utility": judge.total_utility(utilities, qos),
        "by_output": {name: _output(during[name], qos[name]) for name in qos},
        "strict": asdict(strict),
        "whole_again_s": judge.whole_again(without_windows, end),
        "cpu_s_per_s": observed.cpu_between(begin, end) / (end - begin),
        "memory_mb": max((mb for _, mb in observed.memory), default=None),
        "memory_mb_per_minute": judge.slope_per_minute(settled),
        "major_faults": observed.from_disk.major_faults,
        "read_from_disk_mb": observed.from_disk.bytes / 1e6,
        "driver_lag_s": worst_lag(observed.arrivals),
        "load": observed.load,
        "wrong_windows": delivered.wrong,
        "unasked_files": unasked,
        "control_failure": observed.control_failure,
        "decisions": observed.decisions,
        "seconds": {name: [_plain(each) for each in part] for name, part in seconds.items()},
    }


def _output(seconds: Sequence[Second], qos: QoS) -> dict[str, Any]:
    worst = [each.worst for each in seconds if each.worst is not None]
    due = sum(each.due for each in seconds)
    return {
        "utility": judge.mean_utility(seconds),
        "share": sum(each.share * each.due for each in seconds) / due if due else None,
        "in_zone": sum(each.in_zone(qos.threshold) for each in seconds) / len(seconds) if seconds else None,
        "delay_p50_s": quantile(worst, 0.5),
        "delay_p99_s": quantile(worst, 0.99),
    }


def _plain(second: Second) -> list[float | int | None]:
    """Second, share, utility, worst delay: what the plots need."""
    worst = None if second.worst is None else round(second.worst, 2)
    return [second.second, round(second.share, 3), round(second.utility, 3), worst]


def keeps_all_zones(
    seconds: Mapping[str, Sequence[Second]], qos: Mapping[str, QoS], begin: float, least: float
) -> bool:
    """Whether each output is in its zone in at least this share of the seconds."""
    return all(
        sum(each.in_zone(qos[name].threshold) for each in late) >= least * len(late)
        for name, part in seconds.items()
        if (late := [each for each in part if each.second >= begin])
    )


def kept_load(
    observed: Observed, places: Sequence[ValvePlace], nodes: Sequence[LoadNode], begin: float, end: float
) -> list[tuple[float, float]]:
    """(seconds since the first file, part of the load that valves keep) whenever valves were set.

    This is what the runtime says of itself: it tells whether it swings, not how useful it was.
    """
    outputs = {place.at: place.outputs for place in places}
    full = sum(node.load for node in nodes)
    valves: dict[str, Mapping[str, float]] = {}
    series = []
    for at, subnetwork, shares in observed.events:
        valves[subnetwork] = shares
        kept = _shares_of_outputs(valves, outputs)
        load = sum(node.load * max(kept.get(name, 1.0) for name in node.outputs) for node in nodes)
        if begin <= at - observed.arrivals[0] <= end:
            series.append((at - observed.arrivals[0], load / full))
    return series


def _shares_of_outputs(
    valves: Mapping[str, Mapping[str, float]], outputs: Mapping[str, frozenset[str]]
) -> dict[str, float]:
    kept: dict[str, float] = {}
    for shares in valves.values():
        for at, share in shares.items():
            for name in outputs.get(at, ()):
                kept[name] = min(kept.get(name, 1.0), share)
    return kept


def all_open_after(observed: Observed, end: float) -> float | None:
    """Seconds from the end of an overload to the moment when the runtime has no valve any more.

    None if valves are still shut; 0 if none was shut by then.
    """
    open_since: dict[str, float] = {}
    for at, subnetwork, shares in observed.events:
        if shares:
            open_since[subnetwork] = float("inf")
        elif open_since.get(subnetwork) == float("inf"):
            open_since[subnetwork] = at - observed.arrivals[0] - end
    last = max(open_since.values(), default=0.0)
    return None if last == float("inf") else max(0.0, last)
