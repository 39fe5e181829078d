"""Diffused joins on Spark: the pairs of two nested loops, through switches; records and refusals."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import penstock as ps
from diffusion.worlds import World, network, worlds
from engine.spark.trains.test_express import deliver
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.local import LocalEngine
from penstock.testing import assert_same_rows, collect, columns
from penstock.testing.spark_run import run_on_spark
from penstock.testing.suite import chosen_engines

pytestmark = pytest.mark.skipif("spark" not in chosen_engines(), reason="spark is not in PENSTOCK_ENGINES")
SOAK = os.environ.get("PENSTOCK_SOAK") == "1"


def check(world: World, spark) -> None:
    asked = [{"pairs": s} if s else {} for s in world.forced]
    result = run_on_spark(world.network, world.trains, spark, schemes=asked)
    assert world.pairs(result.outputs["out"]) == world.truth()
    assert result.dead_letters == []


def rows(first: int, count: int, step: int = 1) -> list[tuple[int, int, int]]:
    return [(first + i, (first + i) % 2, (first + i) % 5) for i in range(0, count, step)]


def test_every_way_of_switching(spark):
    """hash -> left -> right -> hash -> left in overlapping windows, and trains that only move horizons."""
    net = network((6, 4), on=True, where="v < v_right", distribution="auto", servers=3, sample=1000)
    trains = [{"left": rows(10 * n, 10), "right": rows(10 * n, 10, 2)} for n in range(6)]
    schemes = [None, "left", "right", "hash", "left", "left"]
    check(World(net, trains, schemes, (6, 4), True, "v < v_right"), spark)


def test_hash_over_servers_of_its_own(spark):
    net = network((6, 4), on=True, where="", distribution="hash", servers=3)
    trains = [{"left": rows(10 * n, 10), "right": rows(10 * n, 10, 2)} for n in range(3)]
    check(World(net, trains, [None] * 3, (6, 4), True, ""), spark)


def test_a_band_join_has_no_key(spark):
    net = network(
        (5, 5), on=False, where="abs(v - v_right) <= 3", distribution="diffused", servers=2, sample=5
    )
    trains = [{"left": rows(0, 12), "right": rows(0, 12, 3)}, {"left": rows(12, 3), "right": rows(12, 12)}]
    check(World(net, trains, [None, None], (5, 5), False, "abs(v - v_right) <= 3"), spark)


def test_a_switch_in_the_train_that_closes_windows(spark):
    """Its windows are older than its horizon, and meet tuples that lie at one server each."""
    from penstock.model.writing.network import Network
    from penstock.testing import rows_source, run_network

    def build(**spread):
        net = Network("n")
        a, b = (net.source(n, rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time") for n in "ab")
        sums = a.group_by("k").tumble("10 seconds", total="sum(v)")
        pairs = sums.join(b, on="k", within="5 seconds", name="pairs", **spread)
        pairs.output("out", to=collect())
        return net

    first = [(i, i % 8, i) for i in range(10)]
    trains = [{"a": first, "b": first}, {"a": [(100, 1, 1)], "b": []}, {"a": [(101, 1, 1)], "b": []}]
    spread = {"distribution": "diffused", "servers": 2, "master": "right", "sample": 1000}
    asked = [{}, {}, {"pairs": "left"}]
    found = run_on_spark(build(**spread), trains, spark, schemes=asked)
    wanted = run_network(build(), trains)
    assert len(wanted.outputs["out"]) == 8
    assert_same_rows(found.outputs["out"], wanted.outputs["out"])


def test_a_feed_with_itself(spark, tmp_path):
    """Its tuples leave the partition of their writer."""
    lines = {at: [(group, at % 3, at + group) for group in range(4)] for at in range(12)}
    for at, rows_ in lines.items():
        deliver(tmp_path / "in", at, *([",".join(map(str, row))] for row in rows_))

    def build(**spread):
        net = ps.Network("n")
        text = ps.feed(str(tmp_path / "in"), columns.SCHEMA, decode=columns.decode, keys="road")
        rows = net.source("rows", text, timestamp="second", whole=True, idle=None)
        rows.join(rows, on="car", within=(3, 2), name="pairs", **spread).output("out", to=collect())
        return net

    net = build(distribution="diffused", servers=2, sample=3)
    policy = AsSoonAsPossible(16)
    with ps.Runtime(
        net, spark, tmp_path / "checkpoint", once=True, close=True, partitions=2, policy=policy
    ) as run:
        assert run.wait(240)
    wanted = LocalEngine(build()).run([{"rows": [(at, *row) for at, part in lines.items() for row in part]}])
    assert len(wanted.outputs["out"]) > 100
    assert_same_rows(net.outputs["out"].to.rows, wanted.outputs["out"])


@pytest.mark.slow
@settings(
    max_examples=60 if SOAK else 8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(world=worlds(most=25))
def test_random_worlds(spark, world):
    check(world, spark)


@pytest.mark.slow
def test_behind_windows_and_before_them(spark):
    """A diffused join between other boxes: its input has no unique order, its reader another key."""
    from penstock.model.writing.network import Network
    from penstock.testing import rows_source, run_network

    def build(**spread):
        net = Network("n")
        a, b = (net.source(n, rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time") for n in "ab")
        sums = a.group_by("k").tumble("2 seconds", total="sum(v)")
        pairs = sums.join(b, on="k", within="4 seconds", name="pairs", **spread)
        pairs.filter("v <> 3").group_by("v").tumble("4 seconds", n="count(*)").output("out", to=collect())
        return net

    trains = [{"a": rows(10 * n, 10), "b": rows(10 * n, 10)} for n in range(3)]
    found = run_on_spark(build(distribution="diffused", sample=3), trains, spark)
    wanted = run_network(build(), trains)
    assert len(wanted.outputs["out"]) > 5
    assert_same_rows(found.outputs["out"], wanted.outputs["out"])
