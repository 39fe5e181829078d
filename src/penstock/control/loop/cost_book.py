"""The costs of a running network: the records of its recent trains, and what follows from them.

It begins with what the catalog knows from earlier runs. Lines are fitted anew every few seconds only: they
move slowly, and fitting is not free. The first trains of a run do not count: Java compiles its code while it
runs, Python workers start and import, and such a train may take a hundred times as long as a later one.

But where they all contradict what earlier runs tell of a box, the box has become another one. To wait for
warm trains would take minutes then, for trains are far too long as long as their costs are thought to be low.
So these trains tell what boxes cost, as Python code does not get much quicker by running; nothing else.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.control.costs import changed_in, costs_of, entered, form_of
from penstock.control.line_fit import TRAINS
from penstock.control.loop.deployment import train_floor
from penstock.model.costs import MeasuredCosts
from penstock.store.catalog.record_types import TrainRecord

_KEPT = 4 * TRAINS  # of each sub-network; native boxes are counted in one train of 16
_EVERY, _EVERY_AT_FIRST = 3.0, 0.5  # seconds between two fits
_FIRST = 32  # trains of which the lines still move much
_COLD = 8  # the first trains of each form: code is compiled, workers start and import
_LEAST_EFFICIENCY, _ASSUMED_EFFICIENCY = 0.3, 0.85


class CostBook:
    """Records of trains, and the costs that they tell; all threads may use it."""

    def __init__(self, known: Mapping[str, Iterable[TrainRecord]], cores: int) -> None:
        self._lock = threading.Lock()
        self._cores = cores
        self._trains = {name: deque(trains, maxlen=_KEPT) for name, trains in known.items()}
        self._since: dict[str, int] = {}
        self._met: dict[tuple[str, int], int] = {}  # trains in this run, by sub-network and form
        self._cold: dict[str, list[TrainRecord]] = {}  # cold trains of this run
        self._other: set[str] = set()  # sub-networks with a box that costs something else than before
        self._costs = self._fit()
        self.floors = self._fit_floors()
        self._capacity = self._fit_capacity()
        self._fitted = float("-inf")
        self._fresh: list[TrainRecord] = []
        self.worked = 0.0  # CPU-seconds that trains spent on tuples, as the lines say
        self.spent: dict[str, float] = {}  # the same as measured, by sub-network

    def note(self, record: TrainRecord) -> None:
        """A train has ended. The first ones of each form say nothing about those to come."""
        if not record.rows_in:
            return
        with self._lock:
            form = record.subnetwork, form_of(record, jobs=True)
            self._met[form] = self._met.get(form, 0) + 1
            if self._met[form] <= _COLD:
                self._note_cold(record)
                return
            self._trains.setdefault(record.subnetwork, deque(maxlen=_KEPT)).append(record)
            self._since[record.subnetwork] = self._since.get(record.subnetwork, 0) + 1
            self._fresh.append(record)

    def _note_cold(self, record: TrainRecord) -> None:
        """Keep what a cold train tells of boxes, if all of them contradict what was known."""
        name = record.subnetwork
        cold = self._cold.setdefault(name, [])
        cold.append(replace(record, cpu=None))
        if name in self._other or changed_in(list(self._trains.get(name, ())), cold):
            self._other.add(name)
            self._trains[name].extend(cold)
            self._since[name] = self._since.get(name, 0) + len(cold)
            cold.clear()

    def trains(self, subnetwork: str) -> int:
        """Trains of a sub-network since this run began that tell what trains cost: with tuples, and warm.

        Cold ones count if they tell that a box costs something else than in earlier runs.
        """
        return self._since.get(subnetwork, 0)

    def costs(self, now: float) -> MeasuredCosts:
        """What boxes and sub-networks cost, as of a few seconds ago."""
        with self._lock:
            young = max(self._since.values(), default=0) < _FIRST
            if self._since and now - self._fitted >= (_EVERY_AT_FIRST if young else _EVERY):
                self._fitted = now
                self._costs = self._fit()
                self.floors = self._fit_floors()
                self._capacity = self._fit_capacity()
            return self._costs

    def _fit(self) -> MeasuredCosts:
        """Under control long trains are jobs, too: see `Dispatcher.job_tuples`."""
        return costs_of({name: list(trains) for name, trains in self._trains.items()}, jobs=True)

    def _fit_floors(self) -> dict[str, float]:
        """Seconds that trains of each sub-network take at least, however few their tuples are."""
        return {name: train_floor(trains) for name, trains in self._trains.items()}

    @property
    def capacity(self) -> float | None:
        """CPU-seconds a second that trains can use: the cores, by how well trains spread over them."""
        return self._capacity

    def _fit_capacity(self) -> float | None:
        """How many cores work for each further second of a train, in the sub-network that spreads best."""
        if not any(train.cpu is not None for trains in self._trains.values() for train in trains):
            return None  # on a cluster nobody knows what its cores do
        lines = [each.spread for each in self._costs.subnetworks.values()]
        cores = [1 / line.per_tuple for line in lines if line is not None and line.per_tuple > 0]
        known = max(cores, default=self._cores * _ASSUMED_EFFICIENCY)
        return min(float(self._cores), max(_LEAST_EFFICIENCY * self._cores, known))

    def used(self) -> tuple[float, float] | None:
        """CPU of the trains since the last call: measured, and as the lines would have it; None if none."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
            known = [(r, predicted_cpu(self._costs, r)) for r in fresh if r.cpu is not None]
            on_tuples = [(r, predicted_cpu(self._costs, r, fixed=False) or 0.0) for r in fresh]
            self.worked += sum(cpu for _, cpu in on_tuples)
            for record, cpu in on_tuples:
                # A part of what was measured: less a fixed part that is too large, nothing would remain.
                part = cpu / (predicted_cpu(self._costs, record) or 1.0)
                measured = part * (record.cpu or 0.0)
                self.spent[record.subnetwork] = self.spent.get(record.subnetwork, 0.0) + measured
        pairs = [(record.cpu or 0.0, predicted) for record, predicted in known if predicted is not None]
        return (sum(cpu for cpu, _ in pairs), sum(p for _, p in pairs)) if pairs else None


def predicted_cpu(costs: MeasuredCosts, record: TrainRecord, *, fixed: bool = True) -> float | None:
    """What the lines say that a train costs, by what entered it and its boxes; None if they are not known.

    `fixed`: with what it costs without any tuple.
    """
    measured = costs.subnetworks.get(record.subnetwork)
    if measured is None or measured.around is None:
        return None
    boxes = [(costs.boxes[b.box].cpu, b.rows_in) for b in record.boxes if b.box in costs.boxes and b.rows_in]
    lines = [(measured.around, entered(record)), *((line, rows) for line, rows in boxes if line is not None)]
    return sum(line.at(rows) if fixed else line.per_tuple * rows for line, rows in lines)
