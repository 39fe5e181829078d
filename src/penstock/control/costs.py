"""What boxes and sub-networks cost, from the trains in a catalog (A41, A53).

Only trains in which a box was counted enter its figures. CPU of a sub-network counts only if it is known,
and trains that ran alone come first: what two trains used together is divided between them by a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock.control.line_fit import TRAINS, fit_line, since_change, tells_fixed
from penstock.control.report import REPORT
from penstock.engine.contract.policy import LIMITS, form_group
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts, MeasuredSubnetwork
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import BoxCount, TrainRecord

_LOOKED_AT = 16 * TRAINS  # native boxes are counted in one train of 16
_ENOUGH_ALONE = 8
_TASKS = form_group(LIMITS.job_tuples)  # a job of tasks
_USUAL = 2e-6  # seconds: reading and decoding a tuple, and Spark's own work for it, rarely cost more
_USUAL_CORES = 1.5  # that work for a train, of two


def costs_in(checkpoint: Path) -> MeasuredCosts:
    """The costs that a checkpoint's catalog tells; empty before the first train."""
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        return costs_from(catalog)
    finally:
        catalog.close()


def costs_from(catalog: Catalog) -> MeasuredCosts:
    """The costs that a catalog tells. Trains of a run under control may have shed."""
    controlled = Decisions(catalog).state(REPORT) is not None
    return costs_of(
        {name: catalog.trains(name, last=_LOOKED_AT) for name in catalog.totals()}, jobs=controlled
    )


def costs_of(trains: Mapping[str, Sequence[TrainRecord]], *, jobs: bool = False) -> MeasuredCosts:
    """The costs of all sub-networks, from the records of their trains, oldest first.

    `jobs`: long trains were jobs too, as under control; there some of them may have shed.
    """
    return MeasuredCosts(
        {name: box for each in trains.values() for name, box in boxes_of(each).items()},
        {name: subnetwork_of(name, each, jobs=jobs) for name, each in trains.items()},
    )


def boxes_of(trains: Sequence[TrainRecord]) -> dict[str, MeasuredBox]:
    """The boxes of one sub-network."""
    counted: dict[str, list[BoxCount]] = {}
    home = trains[0].subnetwork if trains else ""
    for train in trains:
        for count in train.boxes:
            if not count.estimated and count.rows_in > 0:
                counted.setdefault(count.box, []).append(count)
    return {name: _box(name, home, counts) for name, counts in counted.items()}


def changed_in(earlier: Sequence[TrainRecord], later: Sequence[TrainRecord]) -> bool:
    """Whether a box costs something else in the later trains than in the earlier ones."""
    before, after = _measured_counts(earlier), _measured_counts(later)
    return any(
        since_change(*_columns([*before[name], *counts])) >= len(before[name])
        for name, counts in after.items()
        if before.get(name)
    )


def _measured_counts(trains: Sequence[TrainRecord]) -> dict[str, list[BoxCount]]:
    counted: dict[str, list[BoxCount]] = {}
    for train in trains[-TRAINS:]:
        for count in train.boxes:
            if not count.estimated and count.rows_in > 0 and count.wall > 0:
                counted.setdefault(count.box, []).append(count)
    return counted


def _columns(counts: Sequence[BoxCount]) -> tuple[list[float], list[float]]:
    return [float(count.rows_in) for count in counts], [count.cpu for count in counts]


def _box(name: str, subnetwork: str, counts: Sequence[BoxCount]) -> MeasuredBox:
    # A native box has no time of its own.
    tuples, seconds = _columns([count for count in counts[-2 * TRAINS :] if count.wall > 0])
    changed = since_change(tuples, seconds)  # what it cost before says nothing any more
    counts = counts[-TRAINS:]
    return MeasuredBox(
        name,
        subnetwork,
        len(counts),
        sum(count.rows_in for count in counts),
        sum(count.rows_out for count in counts),
        fit_line(tuples[changed:][-TRAINS:], seconds[changed:][-TRAINS:]),
    )


def subnetwork_of(name: str, trains: Sequence[TrainRecord], *, jobs: bool = False) -> MeasuredSubnetwork:
    """One sub-network, by its trains with tuples."""
    full = [train for train in trains if train.rows_in > 0]
    recent = full[-TRAINS:]
    known = [train for train in full if train.cpu is not None]
    alone = [train for train in known if train.alone]
    chosen = (alone if len(alone) >= _ENOUGH_ALONE or len(alone) == len(known) else known)[-TRAINS:]
    return MeasuredSubnetwork(
        name,
        len(recent),
        sum(train.rows_in for train in recent),
        _line(recent, lambda train: train.duration, jobs=jobs),
        _line(chosen, lambda train: train.cpu or 0.0, jobs=jobs),
        _line(chosen, lambda train: max(0.0, (train.cpu or 0.0) - _in_boxes(train)), jobs=jobs),
        all(train.alone for train in chosen),
        spread_of(chosen, jobs=jobs),
        by_parts=jobs,
        fixed_known=tells_fixed(
            [entered(each) for each in recent], [form_of(each, jobs=jobs) for each in recent]
        ),
    )


def spread_of(trains: Sequence[TrainRecord], *, jobs: bool = False) -> Line | None:
    """The time of trains by their CPU-seconds."""
    known = [train for train in trains if train.cpu]
    cpu, seconds = [train.cpu or 0.0 for train in known], [train.duration for train in known]
    return fit_line(cpu, seconds, [form_of(each, jobs=jobs) for each in known], usual=1 / _USUAL_CORES)


def entered(train: TrainRecord) -> int:
    """The tuples that a train had to work on: what valves shed at its inputs costs next to nothing.

    Those that went by value were decoded first, which is most of what is around boxes.

    >>> from penstock.store.catalog.record_types import SourceAccount
    >>> entered(TrainRecord("main", 0, 0.0, 1.0, 100, accounts=(SourceAccount("cars", 100, 40, shed=60),)))
    40
    """
    return max(0, train.rows_in - sum(account.shed for account in train.accounts) + train.decoded)


def _in_boxes(train: TrainRecord) -> float:
    return sum(count.cpu for count in train.boxes)


def form_of(train: TrainRecord, *, jobs: bool = False) -> int:
    """Trains of the same form may be compared: they cost the same without any tuple.

    `jobs`: longer ones are jobs of tasks, however long they are.
    """
    form = form_group(train.rows_in)
    return min(_TASKS, form) if jobs else form


def _line(
    trains: Sequence[TrainRecord], seconds: Callable[[TrainRecord], float], *, jobs: bool
) -> Line | None:
    tuples, forms = [entered(each) for each in trains], [form_of(each, jobs=jobs) for each in trains]
    return fit_line(tuples, [seconds(each) for each in trains], forms, usual=_USUAL)
