"""Filters and unread columns where a source is read: what is early, and that nobody notices."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.local import LocalEngine
from penstock.engine.spark.entry.early import early_of
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.layout.plan import lay_out
from penstock.rewrite.subnetworks import split
from penstock.testing import assert_same_result, collect, examples, rows_source
from penstock.testing.spark_run import InForm, run_on_spark

SCHEMA = "time TIMESTAMP, k INT, v INT, w DOUBLE, s STRING"


def network(build):
    net = ps.Network("n")
    build(net.source("cars", rows_source(SCHEMA), timestamp="time"))
    return net


def early(build):
    (sub,) = split(network(build))
    found = early_of(sub.network, lay_out(sub), "cars")
    return [box.name for box in found.filters], sorted(found.unread)


def end(stream):
    stream.output("out", to=collect())


def window(stream, **aggregates):
    return stream.group_by("k", name="by_k").tumble("10 seconds", aggregates, name="windows")


CASES = {
    "filters one behind the other": (
        lambda s: end(s.filter("k = 1", name="a").filter("v > 2", name="b")),
        (["a", "b"], []),
    ),
    "not one that refuses, nor what comes behind it": (
        lambda s: end(s.filter("k = 1", name="a").filter("10 / v > 2", name="b").filter("k = 2", name="c")),
        (["a"], []),
    ),
    "not a function": (lambda s: end(s.filter(examples.no_nulls, name="a")), ([], [])),
    "not what others read too": (
        lambda s: (end(s.filter("k = 1", name="a")), s.output("all", to=collect())),
        ([], []),
    ),
    "not in front of a point": (
        lambda s: end(s.connection_point("kept").filter("k = 1", name="a")),
        ([], []),
    ),
    "a projection leaves columns unread": (
        lambda s: end(s.filter("v > 2", name="a").select("k", name="b")),
        (["a"], ["s", "time", "v", "w"]),
    ),
    "a map reads what its expressions read": (
        lambda s: end(s.map({"x": "coalesce(v, 0)"}, name="a").select("k", "x", name="b")),
        ([], ["s", "time", "w"]),
    ),
    "a map that refuses reads all, for its letters": (
        lambda s: end(s.map({"x": "10 / v"}, name="a").select("k", "x", name="b")),
        ([], []),
    ),
    "a stage takes all that it is given": (lambda s: end(window(s, n="avg(w)")), ([], [])),
    "partial aggregates do not": (lambda s: end(window(s, n="max(v)")), ([], ["s", "time", "w"])),
    "two readers read what either does": (
        lambda s: (end(s.select("k", name="a")), s.select("v", name="b").output("two", to=collect())),
        ([], ["s", "time", "w"]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_early(case):
    build, expected = CASES[case]
    if case == "not in front of a point":
        producer = next(sub for sub in split(network(build)) if "cars" in sub.inputs)
        found = early_of(producer.network, lay_out(producer), "cars")
        assert ([box.name for box in found.filters], sorted(found.unread)) == expected
        return
    assert early(build) == expected


def rows(first, count):
    return [
        {"time": float(t), "k": t % 3, "v": t % 7 - 1, "w": 0.5, "s": "x"}
        for t in range(first, first + count)
    ]


def test_removed_tuples_are_counted_and_move_the_horizon(spark):
    """The last tuples of the first train pass no filter; a window closes by their time all the same."""
    net = network(
        lambda s: end(window(s.filter("k = 1", name="a").filter("s <> 'late'", name="b"), n="max(v)"))
    )
    newest = [{"time": 500.0, "k": 0, "v": 1, "w": 0.0, "s": "x"}]
    behind = [{"time": 400.0, "k": 1, "v": 1, "w": 0.0, "s": "x"}]
    trains = [{"cars": rows(0, 40) + newest}, {"cars": behind}]
    expected = LocalEngine(net).run(trains)
    assert [letter.box for letter in expected.dead_letters] == ["cars"]  # late by the tuple that was removed
    assert_same_result(run_on_spark(net, trains, InForm(Form.FRAMES, spark)), expected)


def test_every_train_counts_them(spark, tmp_path):
    """Native filters are counted once in sixteen trains; those that run where tuples are read, in all."""
    net = ps.Network("counted")
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        lines = [f"{number * 30_000 + at},{at % 10},{at % 4},{'x' * (at == 7)}" for at in range(30_000)]
        (folder / f"{number}.csv").write_text("\n".join(lines) + "\n" + "0,bad,1,\n" * (number == 1))
    cars = net.source("cars", ps.csv(str(folder), "time BIGINT, k INT, v INT, s STRING"))
    some = cars.filter("k = 1", name="a").filter("v <> 1", name="b").select("v", name="c")
    some.output("out", to=(kept := ps.memory()))
    policy = AsSoonAsPossible(30_001)
    with ps.Runtime(net, spark, tmp_path / "ck", once=True, close=True, policy=policy) as running:
        assert running.wait(120)
        status = running.status()
    assert (status.boxes["cars"].rows_out, status.boxes["cars"].dead) == (60_000, 1)
    assert (status.boxes["a"].rows_in, status.boxes["a"].rows_out) == (60_000, 6_000)
    assert (status.boxes["b"].rows_in, status.boxes["b"].rows_out) == (6_000, 3_000)
    assert not any(status.boxes[name].estimated for name in ("a", "b", "c"))
    assert len(kept.rows) == 3_000


def test_spark_filters_the_files_that_it_reads_itself(spark, tmp_path):
    """Long trains of whole Parquet files are not decoded by tasks: there the filters run where they stand."""
    net = ps.Network("whole")
    (tmp_path / "in").mkdir()
    table = pa.table({"k": pa.array(range(30_000), pa.int32()), "v": pa.array([1] * 30_000, pa.int32())})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    cars = net.source("cars", ps.parquet(str(tmp_path / "in"), schema="k INT, v INT"))
    cars.filter("k < 10", name="a").output("out", to=(kept := ps.memory()))
    with ps.Runtime(net, spark, tmp_path / "ck", once=True, close=True) as running:
        assert running.wait(120)
        status = running.status()
    assert sorted(row["k"] for row in kept.rows) == list(range(10))
    assert (status.boxes["a"].rows_in, status.boxes["a"].rows_out) == (30_000, 10)
