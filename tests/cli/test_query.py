"""`penstock query` and `dead-letters` on a checkpoint: one made by hand, so that no network has to run for
it.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from cli.test_look import call
from penstock.cli import query
from penstock.model.types import Schema, arrow_schema
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointWriter

SCHEMA = Schema.parse("time TIMESTAMP, k INT, n BIGINT")


def put(place, entry, point="minutes"):
    """One more entry: keys entry * 10 and on, five of them."""
    writer = PointWriter(place, point, SCHEMA, "k")
    rows = [
        {"time": n * 1_000_000, "k": entry * 10 + n, "n": n, "_ts": n * 1_000_000, "_seq": n}
        for n in range(5)
    ]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA))
    writer.commit(entry, writer.stage(entry, [table]), entry * 1_000_000, final=False, arrival=0.0)


@pytest.fixture
def checkpoint(tmp_path):
    """A point of four entries with keys of their own each, stored by k; two dead letters."""
    place = tmp_path / "checkpoint"
    for entry in range(4):
        put(place, entry)
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


def test_a_relative_path_that_looks_like_an_address(spark, checkpoint, monkeypatch):
    """As in `--checkpoint 2024-01-01T00:00:00`: Spark takes what is before a colon for a protocol."""
    monkeypatch.chdir(checkpoint.rename(checkpoint.with_name("a:b")).parent)
    assert asked("a:b", "SELECT count(*) AS c FROM minutes")[0] == [{"c": 20}]


def test_another_folder_is_no_checkpoint(tmp_path):
    result = call("query", tmp_path, "SELECT 1")
    assert result.exit_code == 2
    assert f"{tmp_path} is no checkpoint" in result.output


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
    assert "2  cars: malformed: why" in result.output
    assert "bad 1" in result.output


@pytest.mark.parametrize(
    ("sql", "more", "message"),
    [
        ("SELECT * FROM minuets", (), "no connection point 'minuets'"),
        ("SELECT * FROM minuets", (), "did you mean 'minutes'"),
        ("SELECT ((k FROM minutes", (), "the query does not parse"),
        ("DELETE FROM minutes", (), "a query is one SELECT from connection points"),
        ("SELECT 1", (), "the query reads no connection point"),
        ("SELECT * FROM minutes a JOIN minutes b ON a.k = b.k", ("--follow",), "and JOIN does not"),
        ("SELECT * FROM minutes", ("--format", "xml"), "no format 'xml'\n  expected: table, csv or json"),
        ("SELECT count(*) FROM minutes", ("--follow",), "--follow goes tuple by tuple"),
        (
            "SELECT try_sum(n) FROM minutes",
            ("--follow",),
            "--follow goes tuple by tuple, and try_sum does not",
        ),
        ("SELECT * FROM (SELECT DISTINCT n FROM minutes)", ("--follow",), "and DISTINCT does not"),
        ("SELECT * FROM (SELECT n FROM minutes LIMIT 5)", ("--follow",), "and LIMIT does not"),
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


@pytest.mark.parametrize(
    ("sql", "keys", "files"),
    [
        ("SELECT * FROM (SELECT k + 100 AS k FROM minutes) WHERE k = 112", [112], 4),
        ("WITH minutes AS (SELECT k + 100 AS k FROM minutes) SELECT k FROM minutes WHERE k = 112", [112], 4),
        ("SELECT m.k FROM minutes AS m(time, n, k) WHERE m.k = 4", [4] * 4, 4),
        ("SELECT m.k FROM MINUTES m WHERE m.k = 12", [12], 1),
    ],
)
def test_a_condition_chooses_files_only_at_the_stored_column(spark, checkpoint, sql, keys, files):
    rows, told = asked(checkpoint, sql)
    assert [r["k"] for r in rows] == keys
    assert f"reading {files} of 4 files" in told


def test_a_join_of_two_points_and_dead_letters(spark, checkpoint):
    put(checkpoint, 1, "hours")
    rows, told = asked(checkpoint, "SELECT m.k, h.n FROM minutes m JOIN hours h ON m.k = h.k ORDER BY m.k")
    assert rows == [{"k": 10 + n, "n": n} for n in range(5)]
    assert "reading 4 of 4 files" in told
    assert "reading 1 of 1 files" in told
    rows, _ = asked(checkpoint, "SELECT count(*) AS c FROM hours, dead_letters")
    assert rows == [{"c": 10}]


@pytest.fixture
def followed(monkeypatch, checkpoint):
    """followed(sql, *more): two entries come while it is followed, one in each pause, then Ctrl-C."""

    def call_it(sql, *more):
        pauses = iter([4, 5])

        def pause():
            entry = next(pauses, None)
            if entry is None:
                raise KeyboardInterrupt
            put(checkpoint, entry)

        monkeypatch.setattr("penstock.cli.query._pause", pause)
        result = call("query", checkpoint, sql, "--follow", *more)
        assert result.exit_code == 0, result.output
        return [line for line in result.stdout.splitlines() if line[:1] in "{k0123456789"]

    return call_it


def test_follow_shows_everything_once(spark, followed):
    lines = followed("SELECT k FROM minutes", "--format", "json")
    assert sorted(json.loads(line)["k"] for line in lines) == [e * 10 + n for e in range(6) for n in range(5)]


def test_follow_ends_when_the_limit_is_reached_over_all(spark, followed):
    assert len(followed("SELECT k FROM minutes", "--format", "json", "--limit", "23")) == 23


def test_the_header_of_a_csv_comes_first_and_once(spark, followed):
    lines = followed("SELECT k, n FROM minutes WHERE k >= 50", "--format", "csv")
    assert lines == ["k,n", *(f"{50 + n},{n}" for n in range(5))]


def test_rows_reach_a_pipe_at_once(spark, checkpoint, monkeypatch):
    """Not only when the process ends: each batch is flushed."""
    flushed = []
    monkeypatch.setattr(query.sys.stdout, "flush", lambda: flushed.append(True), raising=False)
    shown = query.Shown(None, "csv")
    shown.show(pa.table({"k": [1]}))
    shown.show(pa.table({"k": [2]}))
    assert len(flushed) >= 2
