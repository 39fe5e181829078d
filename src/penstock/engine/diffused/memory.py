"""How much a server may keep, and what it says when that is not enough (S03).

The paper's two policies for a full memory lose pairs, so they must be asked for; by default a join that does not fit stops with
the sizes. What counts is what a server keeps from one train to the next.
"""

from __future__ import annotations

import os

from penstock.model.boxes import Join
from penstock.model.errors import NetworkError

_SHARE = 0.5  # of the machine's memory, for all servers of a join together


def machine_room(servers: int) -> int:
    """Bytes that a server may keep if no bound was given: even shares of half the machine's memory."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE / servers)


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
        hint="more servers, a larger memory or a shorter window; when_full='drop' or 'replace' loses pairs, and counts them",
    )
