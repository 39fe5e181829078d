"""What the simulator's compiled loop works on: queues, servers, joins, rules and figures, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Queues(NamedTuple):
    """The two queues of each join at each server that hosts it.

    A queue is a ring of `room` entries. `heads` is the oldest tuple kept, `following` the next to be
    processed (the paper's pointers p1, p2), `tails` the next free entry. Arrays are indexed by slot (a join
    at a server) and side.
    """

    room: int
    slot_of: np.ndarray  # server, join -> slot
    hosted: np.ndarray  # server -> its joins, filled up with -1
    stamps: np.ndarray
    epochs: np.ndarray
    owners: np.ndarray
    masters: np.ndarray  # whether the tuple came from the master stream
    heads: np.ndarray
    following: np.ndarray
    tails: np.ndarray
    window: np.ndarray  # seconds of each side


class Servers(NamedTuple):
    """What each server can do, and how busy it is."""

    speed: np.ndarray
    memory: np.ndarray
    used: np.ndarray  # tuples in memory
    waiting: np.ndarray  # tuples not processed yet
    free_at: np.ndarray  # second at which it has done all that it was given
    processed: np.ndarray  # whether it has processed anything since it last looked for expired tuples
    looked: np.ndarray  # second of that look


class Joins(NamedTuple):
    """Who hosts each join, who is its master, and since when."""

    hosts: np.ndarray
    master: np.ndarray
    epoch: np.ndarray
    until: np.ndarray  # second up to which all servers get the new master's tuples too
    turn: np.ndarray
    counts: np.ndarray  # tuples of each side in this sampling period


class Rules(NamedTuple):
    """The scheme and the costs, as numbers."""

    seconds: float
    per_operation: float
    per_tuple: float
    higher: bool  # the stream with the higher rate becomes master
    adapts: bool
    least_loaded: bool
    replace: bool
    eager: bool
    sample: float
    bin_seconds: float


class Figures(NamedTuple):
    """What is counted: operations by bin, the rest by server."""

    bins: np.ndarray
    joining: np.ndarray
    receiving: np.ndarray
    received: np.ndarray
    dropped: np.ndarray
    replaced: np.ndarray


def new_queues(hosts: np.ndarray, memory: np.ndarray, window: tuple[float, float]) -> Queues:
    """Empty queues for joins that are hosted so."""
    joins, k = hosts.shape
    slots, room = joins * k, int(memory.max()) + 1
    slot_of = np.full((len(memory), joins), -1, np.int64)
    for join in range(joins):
        slot_of[hosts[join], join] = np.arange(join * k, (join + 1) * k)
    ring, pointers = (slots, 2, room), (slots, 2)
    return Queues(
        room=room,
        slot_of=slot_of,
        hosted=_hosted(hosts, len(memory)),
        stamps=np.zeros(ring),
        epochs=np.zeros(ring, np.int32),
        owners=np.zeros(ring, np.int32),
        masters=np.zeros(ring, np.bool_),
        heads=np.zeros(pointers, np.int64),
        following=np.zeros(pointers, np.int64),
        tails=np.zeros(pointers, np.int64),
        window=np.array(window),
    )


def idle_servers(speed: np.ndarray, memory: np.ndarray) -> Servers:
    """Servers that have nothing to do yet."""
    n = len(speed)
    used, waiting = np.zeros(n, np.int64), np.zeros(n, np.int64)
    return Servers(speed, memory, used, waiting, np.zeros(n), np.zeros(n, np.bool_), np.zeros(n))


def new_joins(hosts: np.ndarray, master: np.ndarray) -> Joins:
    """Joins in their first epoch."""
    n = len(hosts)
    zeros = np.zeros(n, np.int64)
    return Joins(hosts, master, zeros, np.full(n, -1.0), zeros.copy(), np.zeros((n, 2), np.int64))


def _hosted(hosts: np.ndarray, nodes: int) -> np.ndarray:
    """The joins of each server, filled up with -1."""
    joins_of: list[list[int]] = [[] for _ in range(nodes)]
    for join, servers in enumerate(hosts):
        for server in servers:
            joins_of[server].append(join)
    width = max(1, *(len(joins) for joins in joins_of))
    return np.array([joins + [-1] * (width - len(joins)) for joins in joins_of], np.int64)
