"""Estimates of errors in a running network: of which part of their tuples answers were made (A08)."""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.control.estimates import KeptSample
from penstock.control.loop.exactness import newest_of
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import BLOCK_BITS
from penstock.model.json_types import JsonMapping
from penstock.rewrite.approximate_ways import AVG, COUNT, ApproximateWay, Estimated, approximate_ways
from penstock.rewrite.subnetworks import SubNetwork

_TRAINS = 128


@dataclass(frozen=True)
class _Train:
    """What one train told about an output: `together`: tuples that its valves kept or dropped at once."""

    newest: int
    kept: float
    tuples: int
    answers: int
    together: int


@dataclass
class _Known:
    """An output's last trains, and the spread of its columns: standard deviation by mean."""

    way: ApproximateWay
    trains: deque[_Train] = field(default_factory=lambda: deque(maxlen=_TRAINS))
    spreads: dict[str, float] = field(default_factory=dict)


class ErrorBook:
    """What is known about the errors of approximate outputs; all threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def note(self, sub: SubNetwork, done: TrainDone) -> None:
        """A train has ended."""
        newest = newest_of(done.commit.newest, sub)
        with self._lock:
            for way in approximate_ways(sub):
                known = self._known.get(way.output)
                if known is None or known.way != way:
                    known = self._known[way.output] = _Known(way)
                known.spreads |= _spreads(way, done.values)
                counts = done.commit.counts.get(way.box, {})
                if newest is not None:
                    kept = done.kept.get(way.output, 1.0)
                    tuples, answers = counts.get("in", 0), counts.get("out", 0)
                    known.trains.append(_Train(newest, kept, tuples, answers, _together(done.ticket)))

    def errors(self, output: str) -> dict[str, float]:
        """By column, the relative standard error of the newest answers; empty if exact, or unknown."""
        with self._lock:
            known = self._known.get(output)
            if known is None or not known.trains:
                return {}
            return _errors(known)


def _errors(known: _Known) -> dict[str, float]:
    way, trains = known.way, known.trains
    # A window that closes now was open since its size ago, in event time.
    newest = trains[-1].newest
    open_then = [train for train in trains if train.newest >= newest - 2 * way.size and train.tuples]
    sampled = _sample(way, trains, open_then)
    answers = sum(train.answers for train in trains)
    if sampled is None or not answers:
        return {}
    tuples = sum(train.tuples for train in trains) * (way.size / way.every) / answers
    errors = {name: _error(sampled, each, tuples, known.spreads) for name, each in way.answers.items()}
    return {name: round(error, 6) for name, error in errors.items() if error}


def _sample(way: ApproximateWay, trains: deque[_Train], open_then: list[_Train]) -> KeptSample | None:
    shares = [train.kept for train in open_then]
    span = trains[-1].newest - trains[0].newest
    if not shares or min(shares) >= 1 or span <= 0:
        return None
    a_second = sum(train.tuples for train in list(trains)[1:]) / span
    together = max(train.together for train in open_then)
    return KeptSample(min(shares), max(shares), a_second * way.size, together)


def _error(
    sample: KeptSample, answer: Estimated, tuples: float, spreads: Mapping[str, float]
) -> float | None:
    if answer.kind == COUNT:
        return sample.count_error(tuples)
    spread = spreads.get(answer.column)
    if spread is None:
        return None
    return sample.mean_error(tuples, spread) if answer.kind == AVG else sample.sum_error(tuples, spread)


def _spreads(way: ApproximateWay, samples: Mapping[str, JsonMapping]) -> dict[str, float]:
    columns = samples.get(way.tail, {}).get("columns", {})
    spreads = {}
    for name in {each.column for each in way.answers.values() if each.column in columns}:
        values = [value for value in columns[name] if value is not None]
        mean = statistics.fmean(values) if values else 0.0
        if len(values) > 1 and mean:
            spreads[name] = statistics.stdev(values) / abs(mean)
    return spreads


def _together(ticket: Ticket) -> int:
    """The most tuples that a valve of the train keeps or drops at once."""
    slices = sum(len(pieces) for pieces in ticket.slices.values()) or 1
    size = {"blocks": 2**BLOCK_BITS, "slices": max(1, ticket.rows // slices)}
    return max((size.get(valve.grain, 1) for valve in ticket.valves), default=1)
