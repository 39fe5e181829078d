"""When the tuples of a train arrived (A03): per delivery or file, as far as its inputs can tell.

A train that takes a backlog holds tuples of very different age. One time for all of them would make the young
ones look as late as the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.connectors.contract import Arrival, Taken

PARTS = 32
"""A ticket tells at most so many times; neighbours are put together, at the time of the earlier."""


def arrivals_of(taken: Iterable[Taken], now: float) -> tuple[Arrival, ...]:
    """The arrivals in a train, earliest first. An input that cannot tell has had all of it just now."""
    times = [
        arrival
        for part in taken
        if part.rows
        for arrival in part.arrivals or [(now if part.arrived is None else part.arrived, part.rows)]
    ]
    return merged(sorted((at, tuples) for at, tuples in times if tuples))


def merged(arrivals: Sequence[Arrival], parts: int = PARTS) -> tuple[Arrival, ...]:
    """At most so many arrivals, each of about as many tuples; never later than they were.

    >>> merged([(1.0, 5), (2.0, 5), (3.0, 10)], parts=2)
    ((1.0, 10), (3.0, 10))
    """
    if len(arrivals) <= parts:
        return tuple(arrivals)
    size = sum(tuples for _, tuples in arrivals) / parts
    groups: list[Arrival] = []
    for at, tuples in arrivals:
        if groups and (groups[-1][1] < size or len(groups) == parts):
            groups[-1] = (groups[-1][0], groups[-1][1] + tuples)
        else:
            groups.append((at, tuples))
    return tuple(groups)
