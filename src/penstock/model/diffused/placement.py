"""Where a master's tuples go: a wheel of servers, turned by a hash of the tuple (S08).

The wheel is made for a whole train and recorded with it, so a replayed train puts every tuple where it was
before. With `round_robin` each server has one place on it; with `least_loaded` servers that carried less in
the trains before have more.
"""

from __future__ import annotations

from collections.abc import Sequence

PLACES = 16  # on the wheel, for each server: shares are accurate to 1 / 16


def round_robin(servers: int) -> tuple[int, ...]:
    """Every server once.

    >>> round_robin(3)
    (0, 1, 2)
    """
    return tuple(range(servers))


def least_loaded(load: Sequence[float], coming: float) -> tuple[int, ...]:
    """Each turn goes to the server that is least loaded then; `coming` is the load expected in the train.

    >>> wheel = least_loaded([300.0, 100.0], coming=400.0)
    >>> wheel.count(0), wheel.count(1)
    (8, 24)
    """
    servers = len(load)
    if coming <= 0 or servers == 1:
        return round_robin(servers)
    places, level = PLACES * servers, list(load)
    wheel = []
    for _ in range(places):
        server = min(range(servers), key=level.__getitem__)
        level[server] += coming / places
        wheel.append(server)
    return tuple(wheel)
