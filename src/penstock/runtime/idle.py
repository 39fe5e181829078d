"""When a running network is idle: every sub-network has checked its inputs and found nothing to do.

Waiting for a quiet period is not enough: on a busy machine nothing may happen for seconds although input
waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.engine.spark.trains.query import SubnetworkQuery


@dataclass(frozen=True)
class Progress:
    """The state of a sub-network at one moment."""

    train: int  # the number of its newest ticket
    drained: bool  # no train is running
    looks: int  # at its inputs, without finding any
    at_rest: bool  # its input is used up or held: it no longer looks


def progress_of(query: SubnetworkQuery) -> Progress:
    """The current progress of a query."""
    at_rest = query.finished.is_set() or not query.steering.may_depart
    return Progress(query.last, query.drained(), query.looks, at_rest)


def any_train(before: Mapping[str, Progress], now: Mapping[str, Progress]) -> bool:
    """Whether a train has started since, so that others may have new input.

    >>> one, other = Progress(3, True, 10, False), Progress(4, False, 10, False)
    >>> any_train({"a": one}, {"a": one}), any_train({"a": one}, {"a": other})
    (False, True)
    """
    trains = [{name: progress.train for name, progress in each.items()} for each in (before, now)]
    return trains[0] != trains[1] or not all(
        progress.drained for progress in (*before.values(), *now.values())
    )


def is_idle(before: Mapping[str, Progress], now: Mapping[str, Progress]) -> bool:
    """Whether no train ran in between, and every sub-network checked all its inputs in vain.

    The first check that ends may have begun before another sub-network's last train, so only the second one
    counts.

    >>> before = {"a": Progress(3, True, 10, False)}
    >>> [is_idle(before, {"a": Progress(3, True, looks, False)}) for looks in (10, 11, 12)]
    [False, False, True]
    """
    return not any_train(before, now) and all(
        progress.at_rest or progress.looks >= before[name].looks + 2 for name, progress in now.items()
    )
