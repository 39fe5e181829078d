"""Estimates of errors come from what trains tell, and are about as large as the errors."""

from __future__ import annotations

import random
import statistics

import pytest

import penstock as ps
from penstock.control.loop.errors import ErrorBook
from penstock.engine.contract.valve import Valve, lot_of
from penstock.engine.local import LocalEngine
from penstock.engine.spark.jobs.forms import Form
from penstock.rewrite.approximate_ways import approximate_ways
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, rows_source
from penstock.testing.spark_run import InForm, run_on_spark

QOS = ps.QoS(delay=[(0, 1), (2, 1), (12, 0)], loss=[(0, 0), (100, 1)], approximate=True)
KEYS = 4


def network(qos=QOS):
    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT, v DOUBLE"), timestamp="time")
    tens = cars.group_by("k").tumble(
        "10 seconds", n="count(*)", s="sum(v)", a="avg(v)", top="max(v)", d="count(distinct v)", name="tens"
    )
    net.output("out", tens.filter("n > 0", name="some"), to=collect(), qos=qos)
    return net


def trains(seed=3, seconds=200, per_second=20):
    chance = random.Random(seed)
    rows = [
        {"time": second, "k": chance.randrange(KEYS), "v": chance.gauss(50, 20)}
        for second in range(seconds)
        for _ in range(per_second)
    ]
    return [{"cars": rows[at : at + 400]} for at in range(0, len(rows), 400)]


def noted(given, shares, grain="tuples"):
    """A book after these trains, and the answers; `shares`: of each train, the last for all others."""
    net = network()
    (sub,) = split(net)
    book = ErrorBook()
    valves = [[Valve("cars", share, grain, lot_of("cars"))] for share in shares]
    engine = InForm(Form.ONE_TASK)
    result = run_on_spark(net, given, engine, valves=valves, listen=lambda done: book.note(sub, done))
    return book, result.outputs["out"]


def by_window(rows):
    return {(row["time"].timestamp() // 10, row["k"]): row for row in rows}


def test_only_count_sum_and_avg_are_estimated():
    (way,) = approximate_ways(split(network())[0])
    assert {name: each.kind for name, each in way.answers.items()} == {"n": "count", "s": "sum", "a": "avg"}
    assert (way.box, way.size, way.every) == ("tens", 10_000_000, 10_000_000)
    strict = ps.QoS(delay=QOS.delay, loss=QOS.loss)
    assert approximate_ways(split(network(strict))[0]) == ()


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_the_estimate_is_about_as_large_as_the_error(share):
    given = trains()
    book, thin = noted(given, [share])
    exact = by_window(LocalEngine(network()).run(given).outputs["out"])
    off = {"n": [], "s": [], "a": []}
    for key, row in by_window(thin).items():
        for name, found in off.items():
            scaled = row[name] if name == "a" else row[name] / share
            found.append(scaled / exact[key][name] - 1)
    errors = book.errors("out")
    assert set(errors) == {"n", "s", "a"}
    for name, found in off.items():
        assert 0.6 < statistics.pstdev(found) / errors[name] < 1.5, name


def test_blocks_go_together_so_errors_are_larger():
    given = trains(seconds=120)
    tuples, _ = noted(given, [0.5])
    blocks, _ = noted(given, [0.5], "blocks")
    assert blocks.errors("out")["n"] > 2 * tuples.errors("out")["n"]


def test_a_share_that_moved_is_an_error_of_its_own():
    given = trains(seconds=120)
    steady, _ = noted(given, [0.5])
    moved, _ = noted(given, [*[0.5] * 5, 0.9])
    assert moved.errors("out")["n"] > steady.errors("out")["n"]


def test_exact_answers_have_no_error():
    book, _ = noted(trains(seconds=60), [1.0])
    assert book.errors("out") == {}
    assert book.errors("other") == {}
