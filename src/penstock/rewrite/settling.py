"""When a filter that was pushed in front of a box in use need not stay behind it any longer.

It stays for tuples that the box's state held before the change. Once the horizon has passed all of them, the
state holds only what the filter has let through.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.model.boxes import Filter, Trait
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import reaching


def stateful(network: Network) -> frozenset[str]:
    """The boxes that keep something between trains."""
    return frozenset(name for name, node in network.nodes.items() if Trait.STATEFUL in node.traits)


def lacking(form: Network, written: Network) -> set[tuple[str, str]]:
    """Filters that stand behind a box with state as written and in front of it in this form: (filter, box).

    The state lacks what such a filter removes.
    """
    return {
        (name, box)
        for box in stateful(form)
        for above in reaching(form, form.nodes[box].inputs)
        if isinstance(form.nodes[above], Filter)
        for name in form.nodes[above].origins
        if name in written.nodes and box in reaching(written, written.nodes[name].inputs)
    }


def settled(
    form: Network, in_front: Collection[tuple[str, str]], in_use: Collection[str], newest: int, horizon: int
) -> frozenset[tuple[str, str]]:
    """Of the filters in front of boxes, those that need not stay behind them: (filter as written, box).

    `in_front`: what the form is `lacking`. Only such a filter has kept anything out of the state. `newest`:
    the time of the newest tuple that had come before the form began. `horizon`: what is promised about all
    inputs now. Both in microseconds.
    """
    spans = {box: _span(form, box) for _, box in in_front if box in in_use}
    over = {box for box, span in spans.items() if span is not None and horizon > newest + span}
    return frozenset((name, box) for name, box in in_front if box in over)


def _span(network: Network, box: str) -> int | None:
    """How far the horizon must go beyond a tuple before no box up to this one remembers it.

    A box may stamp its answers that much later, and its own promise lags as far behind: hence twice.
    """
    memories = [network.nodes[name].memory for name in reaching(network, [box])]
    known = [memory for memory in memories if memory is not None]
    return 2 * sum(known) if len(known) == len(memories) else None
