"""Fused and unfused stages give the same; fused boxes cross into Python once for each train."""

from __future__ import annotations

import random

import pytest

from penstock.engine.local.engine import LocalEngine
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.model.writing.network import Network
from penstock.testing import assert_same_result, collect, examples, rows_source
from penstock.testing.spark_run import InForm, run_on_spark

SCHEMA = "time TIMESTAMP, k STRING, j STRING, v INT"


def count(stream, name, *keys):
    produces = "time TIMESTAMP, k STRING, j STRING, v INT, seen BIGINT"
    grouped = stream.group_by(*keys, name=f"by_{name}")
    return grouped.latch(function=examples.running_count, state="seen BIGINT", produces=produces, name=name)


def network(*keys_of_each):
    """Latches one behind the other, each by its keys, a filter between them, windows behind the last."""
    net = Network("chain")
    stream = net.source("cars", rows_source(SCHEMA), timestamp="time", lateness="2 seconds")
    for number, keys in enumerate(keys_of_each):
        latched = count(stream, f"latch_{number}", *keys)
        latched.filter(f"seen % 2 = {number % 2}", name=f"half_{number}").output(
            f"out_{number}", to=collect()
        )
        stream = latched.filter("v < 90", name=f"small_{number}").select(
            "time", "k", "j", "v", name=f"cut_{number}"
        )
    windows = stream.group_by("k", name="by_k").tumble(
        "10 seconds", n="count(*)", top="max(v)", name="windows"
    )
    windows.filter("n > 1", name="busy").output("windows_out", to=collect())
    return net


def trains(seed):
    dice = random.Random(seed)
    rows = [
        (n / 2 + dice.random(), dice.choice("abc"), dice.choice("xy"), dice.randrange(100)) for n in range(90)
    ]
    return [{"cars": rows[:25]}, {"cars": []}, {"cars": rows[25:70]}, {"cars": rows[70:]}]


@pytest.fixture
def crossings(monkeypatch):
    """By train of DataFrames, how many stages ran."""
    seen = {}
    real = TrainRun._stage

    def stage(self, stage_):
        seen[self.ticket.train] = seen.get(self.ticket.train, 0) + 1
        return real(self, stage_)

    monkeypatch.setattr(TrainRun, "_stage", stage)
    return seen


SAME, OTHER = (("k",), ("k",), ("k", "j")), (("k",), ("j",))


@pytest.mark.parametrize(("keys", "fused_stages", "unfused_stages"), [(SAME, 1, 4), (OTHER, 3, 3)])
def test_fused_and_unfused_give_the_same(spark, crossings, keys, fused_stages, unfused_stages):
    net = network(*keys)
    expected = LocalEngine(net).run(trains(3))
    assert all(expected.outputs.values())
    fused = run_on_spark(net, trains(3), InForm(Form.FRAMES, spark), fuse=True)
    assert set(crossings.values()) == {fused_stages}
    crossings.clear()
    unfused = run_on_spark(net, trains(3), InForm(Form.FRAMES, spark), fuse=False)
    assert set(crossings.values()) == {unfused_stages}
    assert_same_result(fused, expected)
    assert_same_result(unfused, expected)
