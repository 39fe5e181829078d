"""The report of a running network under control: figures of outputs, sources, valves and sub-networks."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from penstock.control.loop.errors import ErrorBook
from penstock.control.loop.exactness import Exactness, points_read, with_points
from penstock.control.loop.picture import Picture
from penstock.control.loop.plan import Plan
from penstock.control.loop.structure import Structure, outputs_of
from penstock.control.loop.watching import last_second
from penstock.control.report import (
    OutputReport,
    QosReport,
    SourceReport,
    SubnetworkReport,
    ValveReport,
)
from penstock.control.utility import delay_at, in_good_zone, mean_utility, utility
from penstock.engine.contract.valve import Valve
from penstock.model.qos import QoS
from penstock.store.catalog.record_types import Decision, OutputSecond, SourceAccount, TrainRecord

_MINUTE = 60
_RATE_SECONDS = 5.0
_LIKE = 0.5  # of the longest train: shorter ones are none like it


class ShedRates:
    """Tuples that each source sheds a second, from its accounts. All threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the loop, pages and the live view ask at the same time
        self._seen: deque[tuple[float, dict[str, int]]] = deque()

    def note(self, now: float, accounts: Iterable[SourceAccount]) -> dict[str, float]:
        """The rates now."""
        after = {account.source: account.shed for account in accounts}
        with self._lock:
            self._seen.append((now, after))
            while len(self._seen) > 2 and self._seen[1][0] <= now - _RATE_SECONDS:
                self._seen.popleft()
            then, before = self._seen[0]
        if now <= then:
            return {}
        return {name: max(0.0, (shed - before.get(name, 0)) / (now - then)) for name, shed in after.items()}


def output_reports(
    structure: Structure,
    seconds: Mapping[str, Sequence[OutputSecond]],
    shares: Mapping[str, float],
    exact: Mapping[str, Exactness],
    errors: ErrorBook,
) -> list[OutputReport]:
    """All outputs, and views with a QoS."""
    qos, above = structure.qos, points_read(structure.subs)
    return [
        output_report(
            name,
            qos.get(name),
            seconds.get(name, ()),
            shares.get(name, 1.0),
            with_points(name, exact, above),
            errors.errors(name),
        )
        for name in outputs_of(structure.subs)
    ]


def output_report(
    name: str,
    qos: QoS | None,
    seconds: Sequence[OutputSecond],
    share: float,
    exact: Exactness,
    errors: Mapping[str, float],
) -> OutputReport:
    """One output, from its last minute. `share`: as planned; what was counted is better where it is known."""
    wall, seconds = time.time(), starved_since(seconds, share)
    minute = [each for each in seconds if each.second > wall - _MINUTE]
    newest = last_second(seconds, wall)
    return OutputReport(
        name=name,
        weight=1.0 if qos is None else qos.weight,
        utility=None if qos is None or newest is None else _rounded(utility(qos, newest)),
        utility_minute=None if qos is None else _rounded(mean_utility(qos, minute)),
        delay_p50=delay_at(minute, 0.5),
        delay_p99=delay_at(minute, 0.99),
        share=share if newest is None else newest.share,
        in_zone=None if qos is None or newest is None else in_good_zone(qos, newest),
        exact_since=exact.since,
        errors=errors,
    )


def starved_since(seconds: Sequence[OutputSecond], share: float) -> list[OutputSecond]:
    """The same, with what valves keep in the newest seconds in which nothing came.

    Nothing was counted then. That is not to have lost nothing: after a restart valves may have been shut
    since before the first train.

    >>> [each.share for each in starved_since([OutputSecond("a", k, age=9.0) for k in range(2)], 0.3)]
    [0.3, 0.3]
    """
    came = next((n for n, each in enumerate(reversed(seconds)) if each.tuples), len(seconds))
    first = len(seconds) - came
    return [replace(s, share=min(s.share, share)) if n >= first else s for n, s in enumerate(seconds)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def source_reports(
    picture: Picture, accounts: Mapping[str, SourceAccount], rates: Mapping[str, float], names: Iterable[str]
) -> tuple[SourceReport, ...]:
    """The sources, as far as the sub-networks that read them tell."""
    loads = {load.input: load for seen in picture.subnetworks for load in seen.inputs}
    reports = []
    for name in names:
        account, load = accounts.get(name, SourceAccount(name)), loads.get(name)
        reports.append(
            SourceReport(
                name,
                account.offered,
                account.let_in,
                account.shed,
                None if load is None else load.offered_rate,
                rates.get(name, 0.0),
                None if load is None else load.waiting,
                None if load is None else load.age,
            )
        )
    return tuple(reports)


def achieved(
    decision: Decision,
    load: float | None,
    newest: Mapping[str, TrainRecord],
    seconds: Mapping[str, Sequence[OutputSecond]],
    qos: Mapping[str, QoS],
) -> dict[str, float]:
    """What has become of a decision, in the terms of what was expected of it.

    `load`: None if no train has told it. `newest`: the last train of each sub-network; a short one tells
    nothing about the longest that is allowed.
    """
    figures = {} if load is None else {"load": round(load, 3)}
    subject, least = decision.subject, _LIKE * decision.expected.get("tuples", 0.0)
    train, graphs, recent = newest.get(subject), qos.get(subject), seconds.get(subject, ())[-1:]
    if train is not None and train.start >= decision.time and train.rows_in >= least:
        figures |= {"seconds": round(train.duration, 3), "tuples": float(train.rows_in)}
    if graphs is not None and recent:
        figures["utility"] = round(utility(graphs, recent[0]) or 0.0, 3)
    return figures


def report_of(
    outputs: Iterable[OutputReport],
    sources: Iterable[SourceReport],
    valves: Mapping[str, Sequence[Valve]],
    table: Mapping[str, float],
    picture: Picture,
    plan: Plan,
) -> QosReport:
    """All of it."""
    return QosReport(
        tuple(outputs),
        tuple(sources),
        tuple(ValveReport(v.at, v.share, v.grain) for each in valves.values() for v in each),
        tuple(
            SubnetworkReport(seen.name, table.get(seen.name, 0.0), _waiting(seen.inputs), seen.running)
            for seen in picture.subnetworks
        ),
        _offered_load(plan),
        None if picture.capacity is None else round(picture.capacity, 6),
    )


def _offered_load(plan: Plan) -> float | None:
    """What all offered tuples need; None as long as no cost is known."""
    if plan.load is None and not plan.left_over:
        return None
    return round((plan.load or 0.0) + plan.left_over, 6)


def _waiting(inputs: Iterable[object]) -> int | None:
    known = [getattr(load, "waiting", None) for load in inputs]
    return None if None in known else sum(each for each in known if each is not None)
