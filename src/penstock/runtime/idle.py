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
    """The progress of a query at one moment: if a train leaves while it is read, it is read again."""
    while True:
        train = query.last
        # One that has failed says that it has finished. It is not at rest: whoever waits must be told.
        ended = query.finished.is_set() and query.failure is None
        at_rest = ended or not query.steering.may_depart
        progress = Progress(train, query.drained(), query.looks, at_rest)
        if query.last == train:
            return progress


def any_train(before: Mapping[str, Progress], now: Mapping[str, Progress]) -> bool:
    """Whether a train has started since, so that others may have new input; or a query was replaced.

    >>> one, other = Progress(3, True, 10, False), Progress(4, False, 10, False)
    >>> any_train({"a": one}, {"a": one}), any_train({"a": one}, {"a": other})
    (False, True)
    """
    trains = [{name: progress.train for name, progress in each.items()} for each in (before, now)]
    return (
        trains[0] != trains[1]
        or any(progress.looks < before[name].looks for name, progress in now.items())
        or not all(progress.drained for progress in (*before.values(), *now.values()))
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
