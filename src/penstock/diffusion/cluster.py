"""The simulated cluster and its workload (Gu and Yu, Sect. 4.1; S05): uneven servers, costs, streams.

A server of 3,000 units a second does 60 join operations of 50 units in a second, or receives 300 tuples of 10
units. The gap between two tuples of a stream is U(1/2r, 2/r). Its mean is 1.25/r, so the true rate is 0.8 r
(docs/papers.md, "Corrections").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.model.errors import PenstockError


@dataclass(frozen=True)
class Costs:
    """What the paper charges a server's processor, in its units ("MIPS")."""

    operation: float = 50.0
    receive: float = 10.0


@dataclass(frozen=True)
class Cluster:
    """Servers by number: units a second, and memory in tuples."""

    speed: np.ndarray
    memory: np.ndarray
    costs: Costs = Costs()

    @property
    def size(self) -> int:
        return len(self.speed)


def heterogeneous(nodes: int, seed: int) -> Cluster:
    """The paper's servers: U[1000, 5000] units a second, U[1000, 2000] tuples.

    >>> heterogeneous(100, seed=1).speed.mean().round(-2).item()
    3100.0
    """
    if nodes < 1:
        raise PenstockError(f"a cluster of {nodes} nodes", expected="one node or more")
    dice = np.random.default_rng([seed, 1])
    return Cluster(dice.uniform(1000, 5000, nodes), dice.integers(1000, 2001, nodes))


@dataclass(frozen=True)
class Arrivals:
    """Tuples of all joins in order of time: when, which join, which of its two streams (0 or 1)."""

    time: np.ndarray
    join: np.ndarray
    side: np.ndarray
    joins: int
    seconds: float


def draw_rates(joins: int, seconds: float, seed: int, change_every: float | None = None) -> np.ndarray:
    """Rates U[5, 20] as an array (stretch, join, side); a stretch lasts `change_every` seconds."""
    stretches = 1 if change_every is None else max(1, int(np.ceil(seconds / change_every)))
    return np.random.default_rng([seed, 2]).uniform(5, 20, (stretches, joins, 2))


def arrivals(rates: np.ndarray, seconds: float, seed: int, change_every: float | None = None) -> Arrivals:
    """Draw the tuples of all streams; a stretch's rate holds from its start to its end."""
    dice = np.random.default_rng([seed, 3])
    length = seconds if change_every is None else change_every
    times, joins, sides = [], [], []
    for (stretch, join, side), rate in np.ndenumerate(rates):
        begin, end = stretch * length, min(seconds, (stretch + 1) * length)
        stamps = begin + _gaps(rate, end - begin, dice)
        times.append(stamps)
        joins.append(np.full(len(stamps), join, np.int32))
        sides.append(np.full(len(stamps), side, np.int8))
    time = np.concatenate(times)
    order = np.argsort(time, kind="stable")
    return Arrivals(
        time[order], np.concatenate(joins)[order], np.concatenate(sides)[order], rates.shape[1], seconds
    )


def _gaps(rate: float, seconds: float, dice: np.random.Generator) -> np.ndarray:
    # The shortest gap is 1 / 2r, so there are never more than 2 r tuples a second.
    stamps = np.cumsum(dice.uniform(0.5 / rate, 2.0 / rate, int(2 * rate * seconds) + 2))
    within: np.ndarray = stamps[stamps < seconds]
    return within
