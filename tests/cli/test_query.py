"""`penstock query` and `dead-letters` on a checkpoint: one made by hand, so that no network has to run for it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from cli.test_look import call
from penstock.model.types import Schema, arrow_schema
from penstock.store.dead_letters import DeadLetters
from penstock.store.point import PointWriter

SCHEMA = Schema.parse("time TIMESTAMP, k INT, n BIGINT")


@pytest.fixture
def checkpoint(tmp_path):
    """A point of four entries with keys of their own each, stored by k; two dead letters."""
    place = tmp_path / "checkpoint"
    writer = PointWriter(place, "minutes", SCHEMA, "k")
    for entry in range(4):
        rows = [
            {"time": n * 1_000_000, "k": entry * 10 + n, "n": n, "_ts": n * 1_000_000, "_seq": n}
            for n in range(5)
        ]
        table = pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA))
        writer.commit(entry, writer.stage(entry, [table]), entry * 1_000_000, final=False, arrival=0.0)
    letters = [
        {"raw": f"bad {n}", "reason": "malformed: why", "offset": n, "box": "cars", "source": "cars"}
        for n in range(2)
    ]
    DeadLetters(place).append("sub", 0, pa.Table.from_pylist(letters))
    return place


def asked(checkpoint, sql, *more):
    result = call("query", checkpoint, sql, "--format", "json", *more)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")], result.stderr


def test_all_that_is_retained(spark, checkpoint):
    rows, told = asked(checkpoint, "SELECT k, n FROM minutes ORDER BY k")
    assert [r["k"] for r in rows] == [e * 10 + n for e in range(4) for n in range(5)]
    assert "reading 4 of 4 files, 20 of 20 tuples" in told


def test_a_condition_on_the_storage_key_reads_fewer_files(spark, checkpoint):
    rows, told = asked(checkpoint, "SELECT k FROM minutes WHERE k = 12 AND n < 9")
    assert rows == [{"k": 12}]
    assert "reading 1 of 4 files, 5 of 20 tuples" in told
    rows, told = asked(checkpoint, "SELECT count(*) AS c FROM minutes WHERE k BETWEEN 3 AND 21")
    assert rows == [{"c": 9}]
    assert "reading 3 of 4 files" in told
    rows, told = asked(checkpoint, "SELECT k FROM minutes WHERE k > 1000")
    assert rows == []
    assert "reading 0 of 4 files, 0 of 20 tuples" in told


def test_forms_and_limit(spark, checkpoint):
    result = call(
        "query", checkpoint, "SELECT k, n FROM minutes ORDER BY k", "--format", "csv", "--limit", "2"
    )
    assert [line for line in result.stdout.splitlines() if "," in line] == ["k,n", "0,0", "1,1"]
    assert "... and 18 more (--limit 0 shows all)" in result.stderr
    result = call("query", checkpoint, "SELECT max(k) AS most FROM minutes")
    assert "most" in result.stdout
    assert "34" in result.stdout


def test_dead_letters(spark, checkpoint):
    rows, _ = asked(checkpoint, "SELECT raw, box FROM dead_letters ORDER BY raw")
    assert rows == [{"raw": "bad 0", "box": "cars"}, {"raw": "bad 1", "box": "cars"}]
    result = call("dead-letters", checkpoint)
    assert result.exit_code == 0
    assert "2  malformed: why" in result.output
    assert "bad 1" in result.output


@pytest.mark.parametrize(
    ("sql", "more", "message"),
    [
        ("SELECT * FROM minuets", (), "no connection point 'minuets'"),
        ("SELECT * FROM minuets", (), "did you mean 'minutes'"),
        ("SELECT ((k FROM minutes", (), "the query does not parse"),
        ("DELETE FROM minutes", (), "a query is one SELECT from one connection point"),
        (
            "SELECT * FROM minutes a JOIN minutes b ON a.k = b.k",
            (),
            "a query is one SELECT from one connection point",
        ),
        ("SELECT * FROM minutes", ("--format", "xml"), "no format 'xml'; use table, csv or json"),
        ("SELECT count(*) FROM minutes", ("--follow",), "--follow goes tuple by tuple"),
        ("SELECT * FROM dead_letters", ("--follow",), "dead letters cannot be followed"),
        ("SELECT nothing FROM minutes", (), "nothing"),
        ("SELECT 1 / 0 FROM minutes", (), "ivide"),
    ],
)
def test_errors_are_text(spark, checkpoint, sql, more, message):
    result = call("query", checkpoint, sql, *more)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert "at org.apache.spark" not in result.output
