"""What a train's report counts: the points that have a QoS now, not those that had one at the start."""

from __future__ import annotations

import penstock as ps
from penstock.engine.spark.trains.train_report import TrainReports
from penstock.rewrite.subnetworks import split


def test_a_view_that_gets_a_qos_while_it_runs_is_rated_from_then_on():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    cars.filter("spd > 0", name="moving").view("kept")
    (sub,) = split(net)
    reports = TrainReports(sub)
    assert reports.rated_points == ()
    sub.network.set_qos("kept", ps.QoS(delay=[(0, 1.0), (8, 1.0), (30, 0.0)]))
    assert reports.rated_points == ("kept",)
