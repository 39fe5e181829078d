"""A micro-batch runs trains one after the other for some seconds, then lets Spark begin the next one."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.spark.trains import query as query_module
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, rows_source


class Counting(SubnetworkQuery):
    """Has tickets up to `tickets`; a train is done when it is run, and fails if it is `failing`."""

    def prepare(self, tickets: int, failing: int = -1) -> Counting:
        self._last, self.failing, self.ran = tickets - 1, failing, []
        return self

    def run_train(self, train: int) -> None:
        if train == self.failing:
            raise ValueError("bad luck")
        self.ran.append(train)
        self._committed = train
        if train == self._last:
            self._released.set()


@pytest.fixture
def query(tmp_path):
    net = ps.Network("n")
    net.source("cars", rows_source("time TIMESTAMP, k INT"), timestamp="time").output("out", to=collect())
    return Counting(split(net)[0], None, tmp_path, Steering(AsSoonAsPossible()))


def test_one_micro_batch_runs_all_trains_that_have_a_ticket(query):
    query.prepare(tickets=4)._micro_batch(None, 0)
    assert query.ran == [0, 1, 2, 3]
    assert query._waiting.is_set(), "it waited for the next one when it was released"


def test_it_ends_after_its_time_and_the_next_one_goes_on(query, monkeypatch):
    monkeypatch.setattr(query_module, "_MICRO_BATCH", 0.0)
    query.prepare(tickets=3)
    for batch in range(2):
        query._micro_batch(None, batch)
    assert query.ran == [0, 1]


def test_a_failing_train_ends_it(query):
    query.prepare(tickets=3, failing=1)
    with pytest.raises(RuntimeError, match="the train failed"):
        query._micro_batch(None, 0)
    assert query.ran == [0]
