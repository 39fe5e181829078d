"""The feed of standing queries: a train is shown as a whole, or the feed ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.errors import PenstockError
from penstock.rewrite.subnetworks import at_point
from penstock.standing.serving.point_feed import InputAfterHistory, ProbeTrains
from penstock.store.points.point import PointWriter
from store.points import SCHEMA
from store.points import put as put_entry


class Engine:
    """Cannot show what it gets."""

    asked = 0

    def insert_blocks(self, *_args, **_more):
        self.asked += 1
        raise ValueError("no room")


def test_a_train_that_cannot_be_shown_ends_the_feed(tmp_path):
    """Its commit is written: tried again it would be passed over, and answers would lack its tuples."""
    put_entry(PointWriter(tmp_path, "kept", SCHEMA), 0, [(1, "x", 5, 1)])
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, v BIGINT"), timestamp="time")
    cars.connection_point("kept")
    sub = at_point(net, "kept", "standing-kept", lambda s: s)
    inputs = {"kept": InputAfterHistory(tmp_path, "kept", sub.name, None)}
    settings = QuerySettings(make_trains=ProbeTrains, inputs=inputs)
    query, engine = SubnetworkQuery(sub, None, tmp_path, Steering(AsSoonAsPossible()), settings), Engine()
    trains = query.trains.feeding(engine, "kept", "kept")
    trains._probed = lambda *_: [SimpleNamespace(rows=1)]
    assert query.next_ticket()
    with pytest.raises(PenstockError, match=r"'kept' could not be shown\n  found:    ValueError: no room"):
        query.run_train(0)
    assert engine.asked == 1
    assert query.failure is not None
