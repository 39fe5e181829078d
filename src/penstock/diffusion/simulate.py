"""The simulator (S05, S08, S11-S14): a proxy routes tuples, servers receive and join them, in simulated time.

Every server has its own processor and memory; each join has two queues there (S03). A server takes the oldest
tuple that it has not processed, compares it with the other queue's window, and only then drops what has left
the window (S04). It really compares tuple by tuple, under the owner rule, so a run counts exactly the
operations done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.diffusion.cluster import Arrivals, Cluster
from penstock.diffusion.join_loop import run_joins
from penstock.diffusion.join_state import Figures, Rules, idle_servers, new_joins, new_queues
from penstock.model.errors import PenstockError

MASTER_RULES = ("higher", "lower", "static")
PLACEMENTS = ("least_loaded", "round_robin")
WHEN_FULL = ("drop", "replace")
EXPIRY = ("eager", "literal")


@dataclass(frozen=True)
class Scheme:
    """How tuples are distributed: master rule ('lower' is the paper's text), placement, sampling, memory.

    `expiry`: 'literal' drops what has left the window only when a tuple of the other stream is processed, as
    Sect. 2.1 says. A memory full of such tuples then refuses the very tuple that would clear it, and the
    server stops forever. 'eager' also looks for them when a tuple finds the memory full; both allow the same
    operations.
    """

    master: str = "higher"
    placement: str = "least_loaded"
    sample: float = 50.0
    when_full: str = "drop"
    window: tuple[float, float] = (10.0, 10.0)
    expiry: str = "eager"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("master", self.master, MASTER_RULES),
            ("placement", self.placement, PLACEMENTS),
            ("when_full", self.when_full, WHEN_FULL),
            ("expiry", self.expiry, EXPIRY),
        ):
            if value not in known:
                raise PenstockError(f"{name} is '{value}'", expected=f"one of {', '.join(known)}")


@dataclass(frozen=True)
class SimulatedRun:
    """What a simulated run did. `operations` by bin of `bin_seconds`; the rest by server."""

    operations: np.ndarray
    bin_seconds: float
    joining: np.ndarray  # units spent on join operations
    receiving: np.ndarray  # units spent on receiving
    received: np.ndarray
    dropped: np.ndarray
    replaced: np.ndarray
    switches: int
    seconds: float
    speed: np.ndarray

    @property
    def throughput(self) -> float:
        """Join operations done in the whole run (S14)."""
        return float(self.operations.sum())

    @property
    def utilisation(self) -> np.ndarray:
        """Effective utilisation of each server: the share of its processor spent on joining (S14)."""
        used: np.ndarray = self.joining / (self.speed * self.seconds)
        return used


def random_hosts(joins: int, servers: int, nodes: int, seed: int) -> np.ndarray:
    """`servers` random servers for each join, as in the paper."""
    if not 1 <= servers <= nodes:
        raise PenstockError(f"{servers} servers a join", expected=f"1 to {nodes}, the nodes of the cluster")
    dice = np.random.default_rng([seed, 4])
    return np.array([dice.permutation(nodes)[:servers] for _ in range(joins)], np.int64)


def least_loaded_hosts(
    cluster: Cluster, rates: np.ndarray, window: tuple[float, float], seed: int
) -> np.ndarray:
    """LLF-Distribution (S13): each whole join goes to the server with the least load so far, ties by lot."""
    load, lot = np.zeros(cluster.size), np.random.default_rng([seed, 5]).random(cluster.size)
    hosts = []
    for r1, r2 in rates:
        host = int(np.lexsort((lot, load / cluster.speed))[0])
        load[host] += 0.64 * r1 * r2 * sum(window) * cluster.costs.operation
        hosts.append([host])
    return np.array(hosts, np.int64)


def simulate(
    cluster: Cluster,
    tuples: Arrivals,
    hosts: np.ndarray,
    scheme: Scheme,
    *,
    first: np.ndarray | None = None,
    bin_seconds: float = 50.0,
) -> SimulatedRun:
    """Run the joins. `first`: the stream (0 or 1) of each join that is master at the start."""
    masters = np.zeros(tuples.joins, np.int64) if first is None else first.astype(np.int64)
    bins = np.zeros(max(1, int(np.ceil(tuples.seconds / bin_seconds))))
    figures = Figures(bins, *np.zeros((5, cluster.size)))
    memory = cluster.memory.astype(np.int64)
    switches = run_joins(
        tuples.time,
        tuples.join,
        tuples.side,
        new_queues(hosts, memory, scheme.window),
        idle_servers(cluster.speed, memory),
        new_joins(hosts, masters),
        _rules(cluster, tuples, scheme, bin_seconds),
        figures,
    )
    return SimulatedRun(
        operations=bins,
        bin_seconds=bin_seconds,
        joining=figures.joining,
        receiving=figures.receiving,
        received=figures.received,
        dropped=figures.dropped,
        replaced=figures.replaced,
        switches=int(switches),
        seconds=tuples.seconds,
        speed=cluster.speed,
    )


def _rules(cluster: Cluster, tuples: Arrivals, scheme: Scheme, bin_seconds: float) -> Rules:
    return Rules(
        seconds=float(tuples.seconds),
        per_operation=cluster.costs.operation,
        per_tuple=cluster.costs.receive,
        higher=scheme.master == "higher",
        adapts=scheme.master != "static",
        least_loaded=scheme.placement == "least_loaded",
        replace=scheme.when_full == "replace",
        eager=scheme.expiry == "eager",
        sample=float(scheme.sample),
        bin_seconds=float(bin_seconds),
    )


def chosen_first(rates: np.ndarray, master: str) -> np.ndarray:
    """The master of each join if the rates are known: what the rule would choose."""
    higher: np.ndarray = np.argmax(rates, axis=1)
    return higher if master != "lower" else 1 - higher
