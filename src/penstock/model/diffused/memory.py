"""How much a server may keep, and what it says when that is not enough (S03).

The paper's two policies for a full memory lose pairs, so they must be asked for; by default a join that does
not fit stops with the sizes. What counts is what a server keeps from one train to the next, and for 'drop'
also what it keeps on the way through one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from heapq import heappop, heappush

from penstock.model.boxes import Join
from penstock.model.errors import NetworkError

_SHARE = 0.5  # of the machine's memory, for all servers of a join together


def machine_room(servers: int) -> int:
    """Bytes that a server may keep if no bound was given: even shares of half the machine's memory."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE / servers)


def with_room(
    memory: int,
    held: Iterable[tuple[int, int]],
    came: Iterable[tuple[int, int]],
    within: tuple[int, int],
    horizons: tuple[float, float],
) -> list[bool]:
    """Policy 'drop': which of the tuples (time, side), in order of time, find room (S03).

    What no tuple can meet any more needs no room: neither one of this train, which comes no earlier than the
    one in hand, nor one of a later train, which comes no earlier than `horizons` (of left and right).

    >>> with_room(1, [], [(0, 0), (3, 0), (9, 0)], (5, 5), (20, 20))
    [True, False, True]
    """
    leaving: list[int] = []  # when those leave that do in this train; the others stay through it
    staying = 0

    def keep(time: int, side: int) -> int:
        until = time + within[side]
        if until < horizons[1 - side]:
            heappush(leaving, until)
            return 0
        return 1

    for time, side in held:
        staying += keep(time, side)
    fits = []
    for time, side in came:
        while leaving and leaving[0] < time:
            heappop(leaving)
        fits.append(staying + len(leaving) < memory)
        if fits[-1]:
            staying += keep(time, side)
    return fits


def does_not_fit(node: Join, server: int, servers: int, held: tuple[int, int], size: int) -> NetworkError:
    """The error of a server whose memory is not enough, with the sizes."""
    memory = node.diffusion.memory
    has = (
        f"{memory:,} tuples"
        if memory is not None
        else f"{machine_room(servers):,} bytes, its share of the machine"
    )
    return NetworkError(
        f"the memory of server {server + 1} of {servers} is not enough",
        box=node.name,
        where=node.where,
        found=f"{sum(held):,} tuples to keep ({held[0]:,} left, {held[1]:,} right), {size:,} bytes",
        expected=f"at most {has}",
        hint="more servers, a larger memory or a shorter window; "
        "when_full='drop' or 'replace' loses pairs, and counts them",
    )
