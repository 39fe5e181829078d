"""When a filter that was pushed in front of a box in use need not stay behind it any longer.

It stays for tuples that the box's state held before the change. Once the horizon has passed all of them, the
state holds only what the filter has let through.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.model.boxes import Filter, Join, Node, Resample, Trait, Windowed
from penstock.model.durations import Time
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import reaching


def memory_of(box: Node) -> int | None:
    """How long a tuple stays in the state of a box, in microseconds; None: nobody can say.

    >>> from penstock.model.boxes import Join, Latch
    >>> memory_of(Join(name="pairs", within=(5, 3))), memory_of(Latch(name="latest"))
    (5, None)
    """
    if isinstance(box, Windowed):
        return box.size.us if isinstance(box.size, Time) else None
    if isinstance(box, Join):
        return max(box.within)
    return box.limit if isinstance(box, Resample) else None


def settled(
    network: Network, in_use: Collection[str], newest: int, horizon: int
) -> frozenset[tuple[str, str]]:
    """The filters that need not stay behind their boxes: (filter as written, box).

    `newest`: the time of the newest tuple that had come before the filter was pushed. `horizon`: what is
    promised about all inputs now. Both in microseconds.
    """
    pairs: set[tuple[str, str]] = set()
    for filter_ in network.nodes.values():
        if isinstance(filter_, Filter) and filter_.inputs[0] in in_use:
            box = filter_.inputs[0]
            span = _span(network, box)
            if span is not None and horizon > newest + span:
                pairs |= {(name, box) for name in filter_.origins}
    return frozenset(pairs)


def _span(network: Network, box: str) -> int | None:
    """How far the horizon must go beyond a tuple before no box up to this one remembers it.

    A box may stamp its answers that much later, and its own promise lags as far behind: hence twice.
    """
    nodes = [network.nodes[name] for name in reaching(network, [box])]
    memories = [memory_of(node) for node in nodes if Trait.STATEFUL in node.traits]
    known = [memory for memory in memories if memory is not None]
    return 2 * sum(known) if len(known) == len(memories) else None
