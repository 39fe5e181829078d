"""A train that a crash cut off runs again by its ticket: it sheds the same, whatever is set by then."""

from __future__ import annotations

import pytest

import penstock as ps
from engine.spark.valves.replay import check_accounts, log_of, replayed
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.valve import Valve, lot_of
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.rewrite.subnetworks import split
from penstock.testing import assert_same_rows, collect, rows_source
from penstock.testing.dry_run import dry_job

SCHEMA = "time TIMESTAMP, k INT, v INT"
SECOND = 1_000_000
LOT = lot_of("cars")
WINDOWS = {"grain": "windows", "lot": LOT, "size": 20 * SECOND, "every": 10 * SECOND}


def network(format_):
    net = ps.Network("n")
    cars = net.source("cars", format_, timestamp="time")
    net.output("some", cars.filter("v % 3 = 0", name="thirds"), to=collect())
    windows = cars.group_by("k", name="by_k").slide("20 seconds", every="10 seconds", n="count(*)", name="w")
    net.output("counts", windows, to=collect())
    return net


class Crash(BaseException):
    """The process is gone."""


def crank(query, valves, trains):
    """Run so many trains; None: all there are."""
    left = trains
    while not query.finished.is_set() and left != 0:
        query.steering.valves = tuple(valves)
        if query.next_ticket():
            query.run_train(query.last)
            left = None if left is None else left - 1


@pytest.mark.parametrize("moment", ["write_commit", "run"])
def test_a_train_that_runs_again_sheds_the_same(tmp_path, monkeypatch, moment):
    rows = [(f"1970-01-01 00:{i // 60:02d}:{i % 60:02d}", i % 3, i) for i in range(900)]
    lines = {}
    (tmp_path / "in").mkdir()
    for number in range(3):
        path = tmp_path / "in" / f"{number}.csv"
        part = rows[number * 300 : number * 300 + 300]
        path.write_text("".join(f"{time},{k},{v}\n" for time, k, v in part))
        lines[str(path)] = part
    net = network(ps.csv(str(tmp_path / "in"), SCHEMA, settle="0"))
    (sub,) = split(net)

    def started():
        settings = QuerySettings(2, once=True, close=True)
        steering = Steering(AsSoonAsPossible(150), clock=lambda: 0.0)
        query = SubnetworkQuery(sub, None, tmp_path / "checkpoint", steering, settings)
        query.trains.train_run = dry_job  # tasks and state as on Spark, in this process
        return query

    shed = [Valve("cars", 0.5, **WINDOWS), Valve("cars->thirds", 0.3, **WINDOWS)]
    query = started()
    crank(query, [], 1)
    crank(query, shed, 1)

    def crash(*_):
        raise Crash

    with monkeypatch.context() as patched:
        if moment == "write_commit":
            patched.setattr(query.trains.log, "write_commit", crash)
        else:
            patched.setattr(query.trains, "_run", crash)
        with pytest.raises(Crash):
            crank(query, [Valve("cars", 0.2, **WINDOWS)], 1)
    again = started()
    again.run_train(again.last)  # by its ticket
    crank(again, [], None)  # a run without control opens the valves
    log = log_of(tmp_path / "checkpoint", sub.name)
    expected = replayed(network(rows_source(SCHEMA)), log, lines)
    for name, output in net.outputs.items():
        assert_same_rows(output.to.rows, expected.outputs[name], name)
    assert check_accounts(log, "cars", 900) > 0
    # Windows that were chosen stay chosen until they are closed; then the valve is gone.
    assert [valve.share for valve in log.ticket(3).valves if valve.at == "cars"] == [1.0]
    assert log.ticket(log.last()).valves == ()
