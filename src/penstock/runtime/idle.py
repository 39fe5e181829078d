"""When a running network is idle: every sub-network has looked at its inputs and found nothing to do.

Waiting for a quiet while would not do: on a busy machine nothing happens for seconds although input is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.engine.spark.trains.query import SubnetworkQuery


@dataclass(frozen=True)
class Progress:
    """How far a sub-network was at one moment."""

    train: int  # the number of its newest ticket
    drained: bool  # no train under way
    looks: int  # at its inputs, in vain
    at_rest: bool  # its input is used up, or held: it looks no more


def progress_of(query: SubnetworkQuery) -> Progress:
    """What a query has done so far."""
    at_rest = query.finished.is_set() or query.steering.held
    return Progress(query.last, query.drained(), query.looks, at_rest)


def any_train(before: Mapping[str, Progress], now: Mapping[str, Progress]) -> bool:
    """Whether a train has run or runs since, so that others may have new input.

    >>> one, other = Progress(3, True, 10, False), Progress(4, False, 10, False)
    >>> any_train({"a": one}, {"a": one}), any_train({"a": one}, {"a": other})
    (False, True)
    """
    trains = [{name: progress.train for name, progress in each.items()} for each in (before, now)]
    return trains[0] != trains[1] or not all(
        progress.drained for progress in (*before.values(), *now.values())
    )


def is_idle(before: Mapping[str, Progress], now: Mapping[str, Progress]) -> bool:
    """Whether no train ran in between, and every sub-network looked at all its inputs and left them alone.

    The first look that ends may have begun before another sub-network's last train: only the second one
    counts.

    >>> before = {"a": Progress(3, True, 10, False)}
    >>> [is_idle(before, {"a": Progress(3, True, looks, False)}) for looks in (10, 11, 12)]
    [False, False, True]
    """
    return not any_train(before, now) and all(
        progress.at_rest or progress.looks >= before[name].looks + 2 for name, progress in now.items()
    )
