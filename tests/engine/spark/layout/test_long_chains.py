"""What `check` calls sound runs on Spark too: hundreds of boxes in a row, and the deepest expressions."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.expressions.binding import DEEPEST
from penstock.testing import assert_same_rows
from penstock.testing.spark_run import run_on_spark
from runtime.streams import local

SCHEMA = "time TIMESTAMP, k INT, v BIGINT"
ROWS = [(second, second % 3, second) for second in range(20)]


def network(write):
    net = ps.Network("long")
    write(net.source("cars", ps.rows(ROWS, SCHEMA), timestamp="time")).output("out", to=ps.memory())
    return net


def chain(stream, boxes=500):
    for number in range(boxes):
        stream = stream.map(v="v + 1") if number % 3 else stream.filter(f"v <> {-number}")
    return stream


CASES = {
    "500 boxes": chain,
    "the deepest condition": lambda s: s.filter(" and ".join(["v > -1"] * (DEEPEST - 2))),
    "calls that multiply": lambda s: s.map(x="abs(" * 25 + "v" + ")" * 25),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_runs(spark, name):
    net = network(CASES[name])
    result = run_on_spark(net, [{"cars": ROWS}], spark)
    assert_same_rows(result.outputs["out"], local(net, cars=ROWS).outputs["out"])
