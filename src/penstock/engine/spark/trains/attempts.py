"""A train that fails is run again, from the same ticket and the same state; a run ends when that fails too.

Spark may try a task several times, depending on its master. A train is tried again as a whole, on any master:
what it writes is hidden until its commit, and state is read at the version before it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.engine.spark.trains.failures import PROBLEMS, Doing, kind_of, message_of, slices_text
from penstock.store.errors import FencedError

if TYPE_CHECKING:
    from penstock.engine.spark.trains.train import Trains

_LOG = logging.getLogger("penstock")


def run_train(trains: Trains, train: int, attempts: int) -> None:
    """Run a train, up to `attempts` times; raises one message that says what failed and where."""
    for attempt in range(1, attempts + 1):
        try:
            trains(train)
        except FencedError:
            raise  # another process has taken over, so this one says only that
        except Exception as error:
            kind = kind_of(error)
            if attempt < attempts and kind.worth_another_try:
                _LOG.warning("%s: %s; it runs again", doing(trains, train), PROBLEMS[kind])
                continue
            raise message_of(error, doing(trains, train), attempt) from error
        return


def doing(trains: Trains, train: int) -> Doing:
    """What the train is at."""
    return Doing(trains.sub.name, train, trains.doing, slices_text(trains.log.ticket(train)))
