"""Histograms that grow with each scrape by what the catalog has recorded since the last one."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from penstock.store.catalog.catalog import Catalog
from penstock.store.dead_letters import DeadLetters, reason_shape

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_MOST_REASONS = 100
_MOST_TRAINS = 1_000  # of a sub-network between two scrapes
_OVERLAP = 60  # seconds that are looked at again: a clock may be set
OTHER = "other reasons"


@dataclass
class Observed:
    """How many values lie in each bucket, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Take a value."""
        self.counts[bisect_left(BUCKETS, value)] += times
        self.total += value * times

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them.

        >>> observed = Observed()
        >>> observed.add(0.2, 3)
        >>> observed.buckets()[1:3]
        [('0.1', 0.0), ('0.25', 3.0)]
        """
        shown, so_far = [], 0
        for edge, count in zip([*map(str, BUCKETS), "+Inf"], self.counts, strict=True):
            so_far += count
            shown.append((edge, float(so_far)))
        return shown


class Since:
    """What happened since the last look, summed over all looks."""

    def __init__(self, catalog: Catalog, checkpoint: Path) -> None:
        self._catalog, self._letters = catalog, DeadLetters(checkpoint)
        self.delays: dict[str, Observed] = {}
        self.trains: dict[str, Observed] = {}
        self.dead: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, int] = {}
        self._train: dict[str, int] = {}
        self._known: dict[str, int] = {}  # trains of each sub-network that were looked at
        self._looked: float | None = None
        self._files: set[str] = set()

    def look(self) -> None:
        """Add what is new."""
        self._look_at_outputs()
        self._look_at_trains()
        self._look_at_letters()

    def _look_at_outputs(self) -> None:
        now = time.time()
        span = self._catalog.keep if self._looked is None else int(now - self._looked) + _OVERLAP
        self._looked = now
        for output, seconds in self._catalog.output_seconds(span).items():
            observed = self.delays.setdefault(output, Observed())
            last = self._seconds.get(output, 0)
            for second in seconds:
                for delay, tuples in second.delays if second.second > last else ():
                    observed.add(delay, tuples)
            self._seconds[output] = max([last, *(second.second for second in seconds)])

    def _look_at_trains(self) -> None:
        for name, totals in self._catalog.totals().items():
            observed, last = self.trains.setdefault(name, Observed()), self._train.get(name, -1)
            fresh = min(totals.trains - self._known.get(name, 0), _MOST_TRAINS)
            self._known[name] = totals.trains
            for train in self._catalog.trains(name, last=fresh) if fresh > 0 else ():
                if train.train > last:
                    observed.add(train.duration)
                    self._train[name] = train.train

    def _look_at_letters(self) -> None:
        for file in self._letters.names():
            if file in self._files:
                continue
            self._files.add(file)
            table = self._letters.table(file).select(["box", "reason", "tuples"])
            for letter in table.to_pylist():
                self._count(letter["box"] or "", reason_shape(letter["reason"] or ""), letter["tuples"])

    def _count(self, box: str, reason: str, tuples: int) -> None:
        """Bounded: a server of metrics keeps a series for each reason for ever."""
        known = (box, reason) in self.dead or len(self.dead) < _MOST_REASONS
        self.dead[box, reason if known else OTHER] += tuples
