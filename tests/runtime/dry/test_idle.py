"""Waiting for a network to be idle: never told so by a query that has died."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.runtime.idle import Progress, any_train, progress_of
from runtime.dry.standins import NoRecords, StandIn, chain, subs_of


class Dying(StandIn):
    """It fails just after it was asked whether it has failed."""

    def check(self):
        super().check()
        self.failure = OSError("no connection to the JVM")
        self.finished.set()


@pytest.mark.parametrize("held", [False, True])
def test_a_query_that_dies_between_two_looks_is_told(tmp_path, held):
    runtime = ps.Runtime(chain(), None, tmp_path)
    runtime.records = NoRecords()
    dying = runtime.queries["out"] = Dying(subs_of(runtime.network)["out"])
    dying.steering.held = held
    with pytest.raises(OSError, match="no connection to the JVM"):
        runtime.wait_idle(timeout=5)


class Leaving(StandIn):
    """A train leaves, and is done, while its progress is read."""

    reads = 0

    @property
    def last(self):
        self.reads += 1
        return 3 if self.reads == 1 else 4

    @last.setter
    def last(self, value):
        pass


def test_a_train_that_leaves_meanwhile_counts():
    query = Leaving(subs_of(chain())["out"])
    assert progress_of(query) == Progress(4, drained=True, looks=0, at_rest=False)


def test_a_query_that_was_replaced_is_waited_for_anew():
    before, now = Progress(3, True, 1000, False), Progress(3, True, 2, False)
    assert any_train({"a": before}, {"a": now})
