"""The account at entry: every tuple that a source offers is let in, dead or late, and the run checks it."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.connectors.files import text
from penstock.connectors.files.text import ByteRange
from penstock.engine.contract.account import Account, check_accounts
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.ticket import UNKNOWN
from penstock.engine.spark.entry.admission import DEAD, Unpack
from penstock.engine.spark.layout.plan import lay_out
from penstock.engine.spark.watch import OFFERED
from penstock.model.boxes import Source
from penstock.model.types import Schema
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.catalog import Catalog
from penstock.store.dead_letters import DeadLetters

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "time TIMESTAMP, v INT"
LINES = """# a comment
time,v
2026-01-01 00:00:10,1

2026-01-01 00:00:20,many
,3
# another
2026-01-01 00:00:30,0
2026-01-01 00:00:05,5
2026-01-01 00:00:31,"6
"""


def write_parquet(path, seconds, *, column="v"):
    times = [None if s is None else START + timedelta(seconds=s) for s in seconds]
    columns = {
        "time": pa.array(times, pa.timestamp("us", "UTC")),
        column: pa.array(range(len(times)), "int32"),
    }
    pq.write_table(pa.table(columns), path)


def network(folder):
    net = ps.Network("accounts")
    cars = net.source("cars", ps.csv(f"{folder}/csv", SCHEMA, header=True, comment="#"), timestamp="time")
    cars.filter("10 / v > 0", name="positive").output("fast", to=ps.memory())
    for name in ("plain", "guarded"):
        trucks = net.source(name, ps.parquet(f"{folder}/parquet", SCHEMA), timestamp="time")
        boxes = trucks if name == "plain" else trucks.filter("10 / (v - 1) > 0", name="may_fail")
        boxes.output(f"out_{name}", to=ps.memory())
    net.source("given", ps.rows([{"v": 1}, {"v": "x"}, {"w": 2}], "v INT")).output("rows", to=ps.memory())
    return net


def test_every_source_of_a_run_has_an_exact_account(spark, tmp_path):
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text(LINES)
    (tmp_path / "parquet").mkdir()
    write_parquet(tmp_path / "parquet" / "1.parquet", [10, 20, None])
    write_parquet(tmp_path / "parquet" / "2.parquet", [5, 21])
    write_parquet(tmp_path / "parquet" / "3.parquet", [22, 23], column="w")
    policy = AsSoonAsPossible(length=6)  # two trains of the CSV file, the second has a late tuple
    with ps.Runtime(
        network(tmp_path), spark, tmp_path / "ck", once=True, close=True, policy=policy
    ) as running:
        running.wait(120)
        status = running.status()
    accounts = {name: astuple(account)[1:] for name, account in status.accounts.items()}
    assert accounts == {
        "cars": (6, 2, 3, 1, 0),
        "plain": (7, 4, 3, 0, 0),
        "guarded": (7, 4, 3, 0, 0),
        "given": (3, 2, 1, 0, 0),
    }
    assert Catalog(tmp_path / "ck" / "catalog.db").accounts() == status.accounts
    assert status.dead == DeadLetters(tmp_path / "ck").count() == 3 + 1 + 1 + 3 + 3 + 1 + 2
    check_letters(DeadLetters(tmp_path / "ck").read().to_pylist(), tmp_path)


def check_letters(letters, folder):
    """Each letter tells its file and line."""
    cars = sorted((row["line"], row["box"]) for row in letters if row["source"] == "cars")
    assert cars == [(5, "cars"), (6, "cars"), (8, "positive"), (9, "cars"), (10, "cars")]
    assert {row["file"] for row in letters if row["source"] == "cars"} == {f"{folder}/csv/a.csv"}
    plain = {
        (row["file"].rsplit("/", 1)[1], row["line"], row["tuples"])
        for row in letters
        if row["source"] == "plain"
    }
    assert plain == {("1.parquet", 3, 1), ("3.parquet", None, 2)}
    assert [(row["file"], row["line"]) for row in letters if row["source"] == "given"] == [(None, 2)]


def lossy():
    """A decoder that loses the last row; made here, so that it is sent to the tasks by value."""

    def decode(data, at):
        numbers = [int(line) for line in bytes(data).split()][:-1]
        times = pa.array([at] * len(numbers), pa.timestamp("s", "UTC"))
        return {"time": times, "v": numbers}, [], []

    return decode


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_run_whose_decoder_loses_a_tuple_fails(spark, tmp_path, packed):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.csv").write_text("1\n2\n3\n")
    (folder / "_delivered.jsonl").write_text('{"at": 5, "files": [["0.csv", 0, 6, 3]]}\n')
    net = ps.Network("lossy")
    source = net.source("cars", ps.feed(str(folder), SCHEMA, decode=lossy(), keys="v"), timestamp="time")
    if not packed:  # with a second input, rows go through the JVM
        given = net.source("given", ps.rows([], SCHEMA), timestamp="time")
    (source.filter("v > 0") if packed else source.union(given)).output("out", to=(kept := ps.memory()))
    assert lay_out(split(net)[0]).rooted == packed
    with (
        pytest.raises(
            ps.PenstockError, match=r"source 'cars', train 0: tuples were lost(.|\n)*3 offered, but 2"
        ),
        ps.Runtime(net, spark, tmp_path / "ck", once=True, close=True) as running,
    ):
        running.wait(120)
    assert kept.rows == []


def counts_of(source, data):
    """What a task sends to the driver about a slice: tuples, letters, and the number offered."""
    batches = list(Unpack(source, UNKNOWN, [[data]])([pa.record_batch({"id": [0]})]))
    rows = [row[DEAD] for row in pa.Table.from_batches(batches).to_pylist()]
    offered = sum(row["tuples"] for row in rows if row and row["reason"] == OFFERED)
    dead = sum(row["tuples"] for row in rows if row and row["reason"] != OFFERED)
    return {"offered": offered, "out": rows.count(None), "dead": dead}


def test_a_broken_text_decoder_breaks_the_account(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("1\nx\n3\n")
    files = ps.csv(str(path), "v INT")
    source = Source(name="cars", where="here", format=files, schema=Schema.parse("v INT"))
    piece = ByteRange(str(path), 0, 0, 6, 0)
    check_accounts({"cars": Account.of_counts(counts_of(source, piece))}, 7)
    good = text.decode_csv
    monkeypatch.setattr(
        text, "decode_csv", lambda schema, options, data, *more: good(schema, options, data[2:], *more)
    )
    with pytest.raises(
        ps.PenstockError, match=r"source 'cars', train 7(.|\n)*3 offered, but 1 let in, 1 dead"
    ):
        check_accounts({"cars": Account.of_counts(counts_of(source, piece))}, 7)
