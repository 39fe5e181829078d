"""Valves on feeds, in trains that never leave Arrow: whole groups, deliveries, tuples, windows. No Spark."""

from __future__ import annotations

import pytest

import penstock as ps
from engine.spark.trains.test_express import deliver
from engine.spark.valves.replay import check_accounts
from penstock.connectors.feed import FeedFile
from penstock.engine.contract.valve import Valve, lot_of
from penstock.engine.local import LocalEngine
from penstock.model.formats.feed import GROUP_BITS, TIME_BITS
from penstock.testing import assert_same_rows, collect
from penstock.testing.columns import SCHEMA, decode
from penstock.testing.dry_run import DryRun

SECOND, GROUPS, SECONDS = 1_000_000, 4, 60
LOT = lot_of("rows")
WINDOWS = {"grain": "windows", "lot": LOT, "size": 5 * SECOND, "every": 5 * SECOND}


def line(at, group, i):
    return group, (at * 7 + i) % 10, (at + i) % 60  # road, car, speed


def network(folder):
    net = ps.Network("feed")
    text = ps.feed(str(folder / "in"), SCHEMA, decode=decode, keys="road")
    rows = net.source("rows", text, timestamp="second", whole=True, idle=None)
    by_road = rows.group_by("road", name="by_road")
    fives = by_road.tumble("5 seconds", n="count(*)", s="sum(spd)", name="fives")
    net.output("out", fives, to=collect())
    by_car = rows.group_by("car", name="by_car")
    net.output("cars", by_car.tumble("5 seconds", n="count(*)", name="car_fives"), to=collect())
    return net


def replayed(net, log):
    """The tickets on the reference engine; slices that were left out do not come to it."""
    engine = LocalEngine(net)
    for train in range(log.last() + 1):
        ticket = log.ticket(train)
        rows = placed(engine.sources["rows"], ticket.slices.get("rows", ()))
        engine.train({"rows": rows}, final=ticket.final, valves=[v.plain() for v in ticket.valves])
    return engine.result


def placed(source, slices):
    for piece in slices:
        assert isinstance(piece, FeedFile)
        for i in range(piece.rows):
            source.arrived = (piece.at << TIME_BITS) + (piece.group << GROUP_BITS) + i
            road, car, spd = line(piece.at, piece.group, i)
            yield {"second": piece.at, "road": road, "car": car, "spd": spd}


@pytest.mark.parametrize(
    "valves",
    [
        [Valve("rows", 0.5, "keys", LOT)],
        [Valve("rows", 0.5, "slices", LOT, slice_bits=GROUP_BITS)],
        [Valve("rows", 0.5, "tuples", LOT)],
        [Valve("rows", 0.5, "keys", LOT, keys=("road",))],
        [Valve("rows", 0.5, **WINDOWS)],
        [Valve("rows", 0.8, **WINDOWS), Valve("rows->by_car", 0.3, **WINDOWS)],
        [Valve("rows->by_road", 0.3, "tuples", LOT)],
    ],
    ids=lambda valves: f"{valves[-1].at} {valves[-1].grain}",
)
@pytest.mark.parametrize("fuse", [True, False])
def test_the_reference_says_the_same(tmp_path, valves, fuse):
    for at in range(SECONDS):
        groups = [[",".join(map(str, line(at, g, i))) for i in range(20)] for g in range(GROUPS)]
        deliver(tmp_path / "in", at, *groups)
    net = network(tmp_path)
    dry = DryRun(net, tmp_path / "checkpoint", length=7 * GROUPS * 20, fuse=fuse)
    for number in range(100):
        dry.query.steering.valves = () if number < 2 or number > 6 else tuple(valves)
        if not dry.train():
            break
    log = dry.query.log
    expected = replayed(network(tmp_path), log)
    shed = check_accounts(log, "rows", SECONDS * GROUPS * 20)
    assert (shed > 0) == (valves[0].at == "rows")
    for name, output in net.outputs.items():
        assert_same_rows(output.to.rows, expected.outputs[name], name)
    flows = [log.commit(train).valves for train in range(log.last() + 1)]
    assert any(flow[valves[-1].at].shed for flow in flows if valves[-1].at in flow)


def test_all_shed_still_moves_the_horizon(tmp_path):
    for at in range(20):
        deliver(tmp_path / "in", at, ["1,7,30"])
    net = network(tmp_path)
    dry = DryRun(net, tmp_path / "checkpoint", length=2)
    for number in range(8):
        dry.query.steering.valves = (Valve("rows", 0.0, "slices", LOT),) if number > 2 else ()
        dry.train()
    assert dry.query.log.ticket(7).slices == {"rows": []}
    assert [row["n"] for row in net.outputs["out"].to.rows] == [5, 1]
