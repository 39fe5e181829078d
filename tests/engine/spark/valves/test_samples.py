"""Samples of tuples come with every form of a train, and are those of the reference."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock.engine.arrow.value_samples import pairs, sampled
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.jobs.forms import Form
from penstock.testing import collect, rows_source
from penstock.testing.spark_run import InForm, run_on_spark

ON_SPARK = pytest.mark.skipif(
    "spark" not in os.environ.get("PENSTOCK_ENGINES", ""), reason="spark is not in PENSTOCK_ENGINES"
)
VALUE = ps.QoS(delay=[(0, 1), (2, 1), (4, 0)], loss=[(0, 0), (100, 1)], value=[(0, 0), (99, 1)], column="w")


@pytest.fixture(params=[Form.ONE_TASK, Form.TASKS, pytest.param(Form.FRAMES, marks=ON_SPARK)])
def engine(request):
    """Tasks without Spark, in this process, and DataFrames on Spark."""
    on_spark = request.param is Form.FRAMES
    return InForm(request.param, request.getfixturevalue("spark") if on_spark else None)


def network(*, in_stage):
    def scored(table):  # workers do not know this module, so it is pickled by value
        return {"w": pc.add(table.column("w"), 0)}

    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, v INT, note STRING"), timestamp="time")
    some = cars.filter("v % 3 > 0", name="some").map(w="v * 2", name="doubled")
    some = some.apply(scored, reads=["w"], produces="w INT", name="kept") if in_stage else some
    net.output("out", some, to=collect(), qos=VALUE)
    net.output("all", cars.filter("v > 5", name="rest"), to=collect())
    return net


ROWS = [{"time": i // 10, "v": i % 100, "note": "x"} for i in range(900)]


@pytest.mark.parametrize("in_stage", [False, True])
def test_trains_tell_samples_of_both_ends(engine, in_stage):
    trains = []
    run_on_spark(network(in_stage=in_stage), [{"cars": ROWS}], engine, listen=trains.append)
    values = trains[0].values
    end = "kept" if in_stage else "doubled"
    assert set(values) == {"cars", end}
    assert values["cars"]["rows"] == 900
    passed = [row["v"] * 2 for row in ROWS if row["v"] % 3]
    assert values[end]["rows"] == len(passed)
    table = pa.table({"v": [row["v"] for row in ROWS], "_seq": range(900)})
    assert sorted(values["cars"]["seq"]) == sorted(sampled(table, ["v"])["seq"])
    found = pairs(values["cars"], values[end], "w")
    assert len(found) > 200
    for number, value in found:
        v = values["cars"]["columns"]["v"][number]
        assert value == (2 * v if v % 3 else None)


def test_what_is_shed_by_value_weighs_what_it_is_worth(engine):
    trains = []
    valve = Valve("cars->some", 0.6, "values", 7, predicate="v >= 50", partly="v >= 40", part=0.5, worth=0.2)
    run_on_spark(network(in_stage=False), [{"cars": ROWS}], engine, listen=trains.append, valves=[[valve]])
    flow = trains[0].commit.valves["cars->some"]
    assert flow.offered == 900
    assert 400 <= flow.shed <= 450
    shed = flow.shed / flow.offered
    assert trains[0].kept == pytest.approx({"out": 1 - shed, "all": 1.0})
    assert trains[0].worth == pytest.approx({"out": 1 - 0.2 * shed, "all": 1.0})
    assert trains[0].values["cars"]["rows"] == 900  # in front of the valve
