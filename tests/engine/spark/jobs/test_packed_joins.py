"""Joins in trains that are packed all the way: where a feed is the only input. No Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from engine.spark.trains.test_express import deliver
from penstock.engine.local import LocalEngine
from penstock.engine.spark.layout.plan import lay_out
from penstock.engine.spark.tasks.key_targets import targets
from penstock.rewrite.subnetworks import split
from penstock.runtime.box_facts import facts
from penstock.testing import assert_same_rows, collect
from penstock.testing.columns import SCHEMA, decode
from penstock.testing.dry_run import DryRun

GROUPS, SECONDS = 4, 20


def line(at, group):
    """Road, car and speed: on each road one speed for five seconds."""
    return group, at % 3, 7 * group + at // 5


def network(folder, build):
    net = ps.Network("feed")
    text = ps.feed(str(folder / "in"), SCHEMA, decode=decode, keys="road")
    build(net.source("rows", text, timestamp="second", whole=True, idle=None)).output("out", to=collect())
    return net


def with_means(on):
    """Whole numbers meet averages."""

    def build(rows):
        means = rows.group_by("road").tumble("5 seconds", mean="avg(spd)").select("second", "mean")
        return rows.join(means, on=on, within="10 seconds", name="pairs")

    return build


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("partitions", [2, 3])
def test_whole_numbers_meet_equal_fractions(tmp_path, partitions, fuse):
    check(tmp_path, with_means([("spd", "mean")]), partitions=partitions, fuse=fuse)


def test_a_join_of_a_feed_with_windows_of_all_its_tuples(tmp_path):
    """The windows come out of a later stage: they cannot go back to that of the feed."""

    def build(rows):
        windows = rows.tumble("5 seconds", most="max(road)").select("second", "most")
        return rows.join(windows, on=[("road", "most")], within="20 seconds", name="pairs")

    check(tmp_path, build)


def check(folder, build, **how):
    """The rows of packed trains are those of the reference."""
    for at in range(SECONDS):
        deliver(folder / "in", at, *([",".join(map(str, line(at, group)))] for group in range(GROUPS)))
    net = network(folder, build)
    assert lay_out(split(net)[0]).rooted
    DryRun(net, folder / "checkpoint", length=5 * GROUPS, **how).run_all()
    rows = [(at, *line(at, group)) for at in range(SECONDS) for group in range(GROUPS)]
    wanted = LocalEngine(network(folder, build)).run([{"rows": rows}]).outputs["out"]
    assert len(wanted) >= 40
    assert_same_rows(net.outputs["out"].to.rows, wanted)


def test_numbers_go_the_same_way_as_doubles():
    numbers = [0, 2, -5, 2**53 + 1, None]
    whole = pa.table({"k": pa.array(numbers, pa.int64())})
    fractions = pa.table({"k": pa.array([None if n is None else float(n) for n in numbers], pa.float64())})
    one, other = (targets(table, ("k",), 97, doubles=True).tolist() for table in (whole, fractions))
    assert one == other


def test_state_of_keys_that_went_elsewhere_is_of_no_use(tmp_path):
    """Before, 2 and 2.0 had partitions of their own; equal types lie where they did."""
    known = {}
    for name, on in (("mixed", [("spd", "mean")]), ("same", [("second", "second")])):
        (sub,) = split(network(tmp_path, with_means(on)))
        known[name] = facts([sub], 2, fuse=True)["pairs"]
    assert known["mixed"]["spread by"] == "numbers as doubles"
    assert "spread by" not in known["same"]
