"""The paper's four experiments (SE1-SE4), each a pure function from a set-up to figures.

Where the paper leaves something open, we chose: the sampling period is 50 s (`Scheme.sample`), the joins of a
server share its memory, a full memory drops the new tuple, and a lot decides among equal loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.diffusion.cluster import Arrivals, Cluster, arrivals, draw_rates, heterogeneous
from penstock.diffusion.simulate import (
    Scheme,
    SimulatedRun,
    chosen_first,
    least_loaded_hosts,
    random_hosts,
    simulate,
)
from penstock.process.cores import usable_cores

ReportProgress = Callable[[str, int, int], None]
SERVERS = (1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 50, 75, 100)
# master rule and expiry of each curve of SE1 and SE2
CURVES = {"higher": ("higher", "eager"), "lower": ("lower", "eager"), "literal": ("higher", "literal")}


@dataclass(frozen=True)
class Setup:
    """The paper's cluster by default. Each figure is the mean over `repeats` draws of cluster and streams."""

    nodes: int = 100
    joins: int = 10
    seconds: float = 5000.0
    servers: tuple[int, ...] = SERVERS
    seed: int = 1
    repeats: int = 1
    scheme: Scheme = field(default=Scheme())
    change_every: float = 500.0
    bin_seconds: float = 50.0
    adaptive_servers: int = 5

    def seeds(self) -> range:
        return range(self.seed, self.seed + self.repeats)

    def sizes(self) -> tuple[int, ...]:
        """The numbers of servers that this cluster has."""
        return tuple(k for k in self.servers if k <= self.nodes)


@dataclass(frozen=True)
class Scaling:
    """SE1 and SE2: operations and mean effective utilisation, by servers a join (for LLF, one figure)."""

    servers: tuple[int, ...]
    throughput: dict[str, list[float]]
    utilisation: dict[str, list[float]]
    llf_throughput: float
    llf_utilisation: float

    def peak(self, curve: str) -> int:
        """The number of servers with the highest throughput."""
        return self.servers[int(np.argmax(self.throughput[curve]))]


@dataclass(frozen=True)
class Balance:
    """SE3: effective utilisation of each node."""

    ssp: list[float]
    llf: list[float]


@dataclass(frozen=True)
class Adaptation:
    """SE4: operations in each stretch of `bin_seconds`, by scheme, and how often each switched."""

    times: list[float]
    throughput: dict[str, list[float]]
    switches: dict[str, int]


_BALANCED_NODES = 10
"""The nodes of SE3, all of which host both joins."""


def scaling(setup: Setup, progress: ReportProgress = lambda *_: None) -> Scaling:
    """SE1 and SE2 (Fig. 4, 5): throughput and utilisation against servers per join."""
    sizes, worlds = setup.sizes(), {seed: _world(setup, seed) for seed in setup.seeds()}
    curves = {curve: np.zeros((2, len(sizes))) for curve in CURVES}
    # the longest runs first, so that no core waits at the end
    todo = [(s, p, c) for p in reversed(range(len(sizes))) for c in CURVES for s in worlds]
    with ThreadPoolExecutor(usable_cores()) as pool:
        runs = pool.map(lambda t: _ssp(setup, worlds[t[0]], sizes[t[1]], *CURVES[t[2]]), todo)
        for done, ((_, index, curve), run) in enumerate(zip(todo, runs, strict=True), 1):
            curves[curve][:, index] += _figures(run) / setup.repeats
            progress("SE1 SE2", done, len(todo))
    llf = sum((_figures(_llf(setup, world)) for world in worlds.values()), np.zeros(2)) / setup.repeats
    return Scaling(
        sizes,
        {curve: figures[0].tolist() for curve, figures in curves.items()},
        {curve: figures[1].tolist() for curve, figures in curves.items()},
        *llf.tolist(),
    )


def balance(setup: Setup, progress: ReportProgress = lambda *_: None) -> Balance:
    """SE3 (Fig. 6): two joins on ten nodes, SSP over all ten."""
    rates = draw_rates(2, setup.seconds, setup.seed)
    tuples = arrivals(rates, setup.seconds, setup.seed)
    world = _World(heterogeneous(_BALANCED_NODES, setup.seed), rates, tuples, setup.seed)
    ssp = _ssp(setup, world, _BALANCED_NODES)
    progress("SE3", 1, 2)
    llf = _llf(setup, world)
    progress("SE3", 2, 2)
    return Balance(ssp.utilisation.tolist(), llf.utilisation.tolist())


def adaptation(setup: Setup, progress: ReportProgress = lambda *_: None) -> Adaptation:
    """SE4 (Fig. 7): rates change every 500 s; static against adaptive with both rules, and LLF."""
    seed, scheme = setup.seed, setup.scheme
    rates = draw_rates(setup.joins, setup.seconds, seed, setup.change_every)
    tuples = arrivals(rates, setup.seconds, seed, setup.change_every)
    world = _World(heterogeneous(setup.nodes, seed), rates, tuples, seed)
    hosts = random_hosts(setup.joins, min(setup.adaptive_servers, setup.nodes), setup.nodes, seed)
    runs = {}
    for name in ("static", "higher", "lower"):
        runs[name] = simulate(
            world.cluster, tuples, hosts, replace(scheme, master=name), bin_seconds=setup.bin_seconds
        )
        progress("SE4", len(runs), 4)
    runs["llf"] = _llf(setup, world)
    progress("SE4", 4, 4)
    bins = len(runs["static"].operations)
    times = [(n + 1) * setup.bin_seconds for n in range(bins)]
    return Adaptation(
        times,
        {n: r.operations.tolist() for n, r in runs.items()},
        {n: r.switches for n, r in runs.items()},
    )


@dataclass(frozen=True)
class _World:
    """What a scheme is tried on: a cluster, the rates of the streams, and the tuples that arrive."""

    cluster: Cluster
    rates: np.ndarray
    tuples: Arrivals
    seed: int


def _world(setup: Setup, seed: int) -> _World:
    rates = draw_rates(setup.joins, setup.seconds, seed)
    return _World(heterogeneous(setup.nodes, seed), rates, arrivals(rates, setup.seconds, seed), seed)


def _ssp(setup: Setup, world: _World, k: int, rule: str = "higher", expiry: str = "eager") -> SimulatedRun:
    """The rates do not change here, so the rule's choice is made once."""
    hosts = random_hosts(world.rates.shape[1], k, world.cluster.size, world.seed)
    scheme = replace(setup.scheme, master="static", expiry=expiry)
    first = chosen_first(world.rates[0], rule)
    return simulate(world.cluster, world.tuples, hosts, scheme, first=first, bin_seconds=setup.bin_seconds)


def _llf(setup: Setup, world: _World) -> SimulatedRun:
    hosts = least_loaded_hosts(world.cluster, world.rates[0], setup.scheme.window, world.seed)
    scheme = replace(setup.scheme, master="static")
    return simulate(world.cluster, world.tuples, hosts, scheme, bin_seconds=setup.bin_seconds)


def _figures(run: SimulatedRun) -> np.ndarray:
    return np.array([run.throughput, run.utilisation.mean()])


def spread(values: Sequence[float]) -> float:
    """Coefficient of variation: how uneven the load is.

    >>> spread([2.0, 2.0]), spread([0.0, 4.0])
    (0.0, 1.0)
    """
    mean = float(np.mean(values))
    return float(np.std(values)) / mean if mean else 0.0
