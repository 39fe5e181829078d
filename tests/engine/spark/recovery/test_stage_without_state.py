"""A packed feed's first stage has the keys of the feed. Without a box that has state it keeps none."""

from __future__ import annotations

import pytest

import penstock as ps
from engine.spark.recovery.dry_recovery import EVERY_TRAIN, query_directory, records, second, start, trains
from penstock.testing.columns import SCHEMA, ReportsPerCar, decode


def network(folder, *, then_state):
    net = ps.Network("feed")
    text = ps.feed(str(folder / "in"), SCHEMA, decode=decode, keys="road")
    fast = net.source("rows", text, timestamp="second", whole=True, idle=None).filter("spd > 10", name="fast")
    if then_state:
        fast = fast.group_by("car", name="by_car").column_latch(
            ReportsPerCar, produces="second TIMESTAMP, car INT, n BIGINT", name="cars"
        )
    net.output("out", fast.select("car"), to=ps.csv(str(folder / "out")))
    return net


def lines(folder):
    return sorted(line for file in (folder / "out").glob("*.csv") for line in file.read_text().splitlines())


@pytest.mark.parametrize("recovery", [None, EVERY_TRAIN], ids=["deltas", "snapshots"])
@pytest.mark.parametrize("then_state", [False, True])
def test_it_starts_again(tmp_path, memory, recovery, then_state, caplog):
    """It had a token of a state that was never written, and no start found it."""
    for at in range(6):
        second(tmp_path, at)
    for epoch in (1, 2, 3):
        dry = start(tmp_path, recovery, net=network(tmp_path, then_state=then_state), epoch=epoch)
        trains(dry, 2)
        dry.query.stop()
    assert len(lines(tmp_path)) == 12
    assert "snapshot" not in caplog.text
    if then_state and recovery is not None:
        assert records(tmp_path)[-1] == 5, query_directory(tmp_path)
