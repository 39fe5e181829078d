"""The delays of what left through each output, second by second (A83).

Where only boxes without memory lie in front of an output, each tuple has the arrival of its own delivery or
file (A03). Behind a window no arrival is known for a single answer, so it counts from the oldest tuple of the
train that closed it: never too young.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import pairwise

from penstock.connectors.contract import Arrival
from penstock.engine.contract.arrivals import merged
from penstock.engine.contract.train_done import TrainDone
from penstock.store.catalog.record_types import OutputSecond

_PARTS = 16  # a second's record has at most so many delays
_LATEST = 60  # seconds that are kept at hand for each output


class OutputDelays:
    """Collects delays until a second is over; all threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delays: dict[str, list[tuple[float, int]]] = {}
        self._kept: dict[str, tuple[float, int]] = {}  # tuples of this second that valves kept, and all
        self._shares: dict[str, float] = {}  # of the last second in which a train told
        self._latest: dict[str, tuple[OutputSecond, ...]] = {}
        self._last = 0

    def take(self, done: TrainDone, now: float) -> None:
        """Add what a train delivered, at this wall time."""
        with self._lock:
            for output, tuples in done.delivered.items():
                for arrived, part in _arrived(done, output, tuples):
                    self._delays.setdefault(output, []).append((max(0.0, now - arrived), part))
            if done.ticket.rows:
                self._note_kept(done)

    def _note_kept(self, done: TrainDone) -> None:
        for output in {*done.outputs, *done.delivered, *done.kept}:
            kept, rows = self._kept.get(output, (0.0, 0))
            # Where there is a value graph, the share is of what tuples are worth.
            share, tuples = done.worth.get(output, done.kept.get(output, 1.0)), done.ticket.rows
            self._kept[output] = kept + share * tuples, rows + tuples

    def end_second(self, second: int, ages: Mapping[str, float | None]) -> list[OutputSecond]:
        """The records of a second that is over. `ages`: of the oldest tuple that waits, by output."""
        with self._lock:
            delays, self._delays = self._delays, {}
            told = {name: kept / rows for name, (kept, rows) in self._kept.items()}
            shares = {name: share for name, share in told.items() if share < 1}
            # While no train ends, an output that waits loses what it lost before: valves stand as they did.
            self._shares |= told
            self._kept = {}
            second = self._last = max(second, self._last + 1)  # a clock set back must not hide an earlier one
            names = sorted({*delays, *shares, *(name for name, age in ages.items() if age is not None)})
            records = [
                OutputSecond(
                    name,
                    second,
                    _put_together(delays.get(name, [])),
                    ages.get(name),
                    round(self._shares.get(name, 1.0), 6),
                )
                for name in names
            ]
            for record in records:
                known = self._latest.get(record.output, ())
                self._latest[record.output] = (*known, record)[-_LATEST:]
            return records

    def latest(self, now: float) -> dict[str, tuple[OutputSecond, ...]]:
        """The seconds of the minute before this wall time in which anything was due, oldest first.

        By output; one for which nothing was due is left out.
        """
        with self._lock:
            known = dict(self._latest)
        recent = {
            name: tuple(each for each in seconds if each.second > now - _LATEST)
            for name, seconds in known.items()
        }
        return {name: seconds for name, seconds in recent.items() if seconds}


def _arrived(done: TrainDone, output: str, tuples: int) -> list[Arrival]:
    """When what an output delivered had arrived."""
    ticket = done.ticket
    if output not in done.direct or not ticket.arrivals:
        return [] if ticket.since is None else [(ticket.since, tuples)]
    # Which tuples a filter let through is not known here. Each delivery is taken to have had its share.
    offered = sum(part for _, part in ticket.arrivals)
    ends, passed = [0], 0
    for _, part in ticket.arrivals:
        passed += part
        ends.append(round(tuples * passed / offered))
    shares = [end - start for start, end in pairwise(ends)]
    return [(at, part) for (at, _), part in zip(ticket.arrivals, shares, strict=True) if part]


def _put_together(delays: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Few delays that stand for many, never too young: each group has the delay of its oldest."""
    older_first = sorted(((-delay, tuples) for delay, tuples in delays))
    return tuple((round(-delay, 3), tuples) for delay, tuples in merged(older_first, _PARTS))[::-1]
