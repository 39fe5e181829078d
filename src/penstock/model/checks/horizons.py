"""How far each arrow is: a horizon is the promise that later trains bring no smaller timestamp on it.

This is the definition, and what the reference engine runs. The Spark engine has a plan of its own
(`engine/spark/layout/horizons.py`); tests compare the two on random networks.
"""

from __future__ import annotations

from penstock.model.boxes import NO_PROMISE, Node

MIN = NO_PROMISE


def lift(horizons: list[int], idle: list[bool]) -> tuple[int, ...]:
    """Idle inputs hold nobody back: they are taken to be as far as the least of the live ones.

    >>> lift([5, 90, 70], [True, False, False])
    (70, 90, 70)
    """
    live = [horizon for horizon, asleep in zip(horizons, idle, strict=True) if not asleep]
    if not live:
        # All sleep: nobody is waited for, but nothing is known either, so no horizon moves.
        return tuple(horizons)
    # max: an input that fell asleep ahead of the others does not go back.
    return tuple(max(h, min(live)) if asleep else h for h, asleep in zip(horizons, idle, strict=True))


def after(node: Node, horizons: tuple[int, ...]) -> int:
    """The horizon behind a box, given those in front of it."""
    least = min(horizons)
    if least == MIN:
        # Nothing is promised yet, and no box can promise more than it was given.
        return MIN
    return max(MIN, node.promise(least))
