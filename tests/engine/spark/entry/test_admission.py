"""Tuples of Parquet files: late ones, ones without a time, ones that boxes refuse, all found in one look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark.entry.admission import guards_of
from penstock.engine.spark.layout.plan import lay_out
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.testing import collect, rows_source

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "time TIMESTAMP, v INT"


def put(folder, number, rows):
    folder.mkdir(exist_ok=True)
    times = [None if t is None else START + timedelta(seconds=t) for t, _ in rows]
    table = pa.table(
        {"time": pa.array(times, pa.timestamp("us", "UTC")), "v": pa.array([v for _, v in rows], pa.int32())}
    )
    pq.write_table(table, folder / f"{number}.parquet")


def test_one_look_finds_all_that_is_wrong(spark, tmp_path):
    """Train 1 of two files: late, no time, refused by the filter, refused by the map.

    The rest comes through.
    """
    put(tmp_path / "in", 0, [(10, 1), (20, 2)])
    put(tmp_path / "in", 1, [(5, 1), (None, 7), (21, 0), (22, -4), (23, 5), (24, 100)])
    net = ps.Network("admission")
    source = net.source("cars", ps.parquet(str(tmp_path / "in"), SCHEMA), timestamp="time")
    source.filter("10 / v > 0", name="positive").map(w="CAST(v * 20 AS TINYINT)", name="narrow").output(
        "out", to=(kept := ps.memory())
    )
    with ps.Runtime(
        net, spark, tmp_path / "ck", once=True, close=True, policy=AsSoonAsPossible(length=6), partitions=2
    ) as running:
        running.wait(120)
        boxes = running.status().boxes
    assert [row["w"] for row in kept.rows] == [20, 40, 100]
    letters = DeadLetters(tmp_path / "ck").read().to_pylist()
    found = sorted((row["box"], row["reason"].split(":")[0].split(" ")[0], row["raw"]) for row in letters)
    assert [box for box, _, _ in found] == ["cars", "cars", "narrow", "positive"]
    assert found[0][1:] == ("late", '{"time":"2026-01-01T00:00:05.000Z","v":1}')
    assert found[1][1:] == ("timestamp", '{"time":null,"v":7}')
    assert '"v":100' in found[2][2]
    assert '"v":0' in found[3][2]
    assert (boxes["cars"].rows_in, boxes["cars"].rows_out, boxes["cars"].dead) == (8, 6, 2)
    assert (boxes["positive"].dead, boxes["narrow"].dead) == (1, 1)


def test_the_letters_offset_tells_file_and_row(spark, tmp_path):
    put(tmp_path / "in", 0, [(10, 1)])
    put(tmp_path / "in", 1, [(11, 1), (None, 2)])
    net = ps.Network("offsets")
    net.source("cars", ps.parquet(str(tmp_path / "in"), SCHEMA), timestamp="time").output(
        "out", to=ps.memory()
    )
    with ps.Runtime(net, spark, tmp_path / "ck", once=True, close=True, partitions=2) as running:
        running.wait(120)
    (letter,) = DeadLetters(tmp_path / "ck").read().to_pylist()
    assert divmod(int(letter["offset"]), 2**40) == (1, 1)


def chain(build):
    net = ps.Network("chain")
    source = net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")
    made = build(source)
    for number, stream in enumerate(made if isinstance(made, tuple) else (made,)):
        stream.output(f"out{number}", to=collect())
    (sub,) = split(net)
    return guards_of(sub.network, lay_out(sub), "cars")


def test_guards_look_through_filters_up_to_the_first_map():
    found = chain(lambda s: s.filter("v > 1", name="f").map(name="m", w="1 / v").map(name="n", x="1 / w"))
    assert (found.chain, sorted(found.boxes)) == (("f", "m"), ["m"])
    ((_, when, _),) = found.cases
    assert "`v` > 1" in when


@pytest.mark.parametrize(
    "build",
    [
        lambda s: (s.filter("1 / v > 0", name="f"), s.filter("1 / v > 1", name="g")),  # two readers
        lambda s: s.group_by("v").tumble("1 second", n="count(*)"),  # no stateless box
    ],
)
def test_guards_stop_where_others_read_too(build):
    assert chain(build).cases == ()
