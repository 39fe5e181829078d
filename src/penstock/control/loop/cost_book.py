"""The costs of a running network: the records of its recent trains, and what follows from them.

It begins with what the catalog knows from earlier runs. Lines are fitted anew every few seconds only: they
move slowly, and fitting is not free.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping

from penstock.control.costs import costs_of, entered
from penstock.control.line_fit import TRAINS, fit_line
from penstock.model.costs import Line, MeasuredCosts
from penstock.store.catalog.record_types import TrainRecord

_KEPT = 4 * TRAINS  # of each sub-network; native boxes are counted in one train of 16
_EVERY, _EVERY_AT_FIRST = 3.0, 0.5  # seconds between two fits
_FIRST = 32  # trains of which the lines still move much
_ENOUGH_ALONE = 8
_LEAST_EFFICIENCY, _ASSUMED_EFFICIENCY = 0.3, 0.85


class CostBook:
    """Records of trains, and the costs that they tell; all threads may use it."""

    def __init__(self, known: Mapping[str, Iterable[TrainRecord]], cores: int) -> None:
        self._lock = threading.Lock()
        self._cores = cores
        self._trains = {name: deque(trains, maxlen=_KEPT) for name, trains in known.items()}
        self._since: dict[str, int] = {}
        self._costs = costs_of({name: list(trains) for name, trains in self._trains.items()})
        self._capacity = self._fit_capacity()
        self._fitted = float("-inf")
        self._fresh: list[TrainRecord] = []

    def note(self, record: TrainRecord) -> None:
        """A train has ended."""
        if not record.rows_in:
            return
        with self._lock:
            self._trains.setdefault(record.subnetwork, deque(maxlen=_KEPT)).append(record)
            self._since[record.subnetwork] = self._since.get(record.subnetwork, 0) + 1
            self._fresh.append(record)

    def trains(self, subnetwork: str) -> int:
        """Trains with tuples of a sub-network since this run began."""
        return self._since.get(subnetwork, 0)

    def costs(self, now: float) -> MeasuredCosts:
        """What boxes and sub-networks cost, as of a few seconds ago."""
        with self._lock:
            young = max(self._since.values(), default=0) < _FIRST
            if self._since and now - self._fitted >= (_EVERY_AT_FIRST if young else _EVERY):
                self._fitted = now
                self._costs = costs_of({name: list(trains) for name, trains in self._trains.items()})
                self._capacity = self._fit_capacity()
            return self._costs

    @property
    def capacity(self) -> float | None:
        """CPU-seconds a second that trains can use: the cores, by how well trains spread over them."""
        return self._capacity

    def _fit_capacity(self) -> float | None:
        """From trains that ran alone and shed nothing: beside others, their time says nothing."""
        lines = [_alone(trains) for trains in self._trains.values()]
        spread = [cpu.per_tuple / wall.per_tuple for cpu, wall in filter(None, lines) if wall.per_tuple > 0]
        if not any(self._trains.values()):
            return None
        if not spread:
            return self._cores * _ASSUMED_EFFICIENCY
        return min(float(self._cores), max(_LEAST_EFFICIENCY * self._cores, *spread))

    def used(self) -> tuple[float, float] | None:
        """CPU of the trains since the last call: measured, and as the lines would have it; None if none."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
            known = [(r, predicted_cpu(self._costs, r)) for r in fresh if r.cpu is not None]
        pairs = [(record.cpu or 0.0, predicted) for record, predicted in known if predicted is not None]
        return (sum(cpu for cpu, _ in pairs), sum(p for _, p in pairs)) if pairs else None


def _alone(trains: Iterable[TrainRecord]) -> tuple[Line, Line] | None:
    """(CPU, time) by tuples, of trains that ran alone."""
    alone = [t for t in trains if t.alone and t.cpu is not None and not any(s.shed for s in t.sheds)]
    if len(alone) < _ENOUGH_ALONE:
        return None
    tuples = [entered(train) for train in alone]
    cpu = fit_line(tuples, [train.cpu or 0.0 for train in alone])
    wall = fit_line(tuples, [train.duration for train in alone])
    return None if cpu is None or wall is None else (cpu, wall)


def predicted_cpu(costs: MeasuredCosts, record: TrainRecord) -> float | None:
    """What the lines say that a train costs, by what entered it and its boxes; None if they are not known."""
    measured = costs.subnetworks.get(record.subnetwork)
    if measured is None or measured.around is None:
        return None
    lines = [(costs.boxes[b.box].cpu, b.rows_in) for b in record.boxes if b.box in costs.boxes]
    boxes = sum(line.at(rows) for line, rows in lines if line is not None and rows)
    return measured.around.at(entered(record)) + boxes
