"""The position alone decides what an input gives: asked for the same again, it gives the same again."""

from __future__ import annotations

import gzip
import math

import pyarrow.parquet as pq
import pytest

import penstock as ps
from connectors.test_inputs import TEXT, put, source, table
from engine.spark.trains.test_express import deliver
from penstock.connectors.loading import input_for

LINES = "".join(f"{n},a,{n}\n" for n in range(9))


def csv(folder, **options):
    put(folder / "a.csv", LINES, 100)
    return ps.csv(str(folder), TEXT, **options)


def archive(folder):
    put(folder / "a.csv.gz", gzip.compress(LINES.encode()), 100)
    return ps.csv(str(folder), TEXT)


def parquet(folder):
    pq.write_table(table(0, 9), folder / "a.parquet", row_group_size=3)
    return ps.parquet(str(folder), TEXT)


def rows(_folder):
    return ps.rows(({"time": n, "k": "a", "v": n} for n in range(9)), TEXT)


def feed(folder):
    for at in (3, 5, 9):
        deliver(folder, at, ["a", "b"], ["c"])
    return ps.feed(str(folder), TEXT, decode=lambda _chunk, _at: ({}, [], []), keys="k")


@pytest.mark.parametrize(
    "format_", [csv, lambda folder: csv(folder, tail=True), archive, parquet, rows, feed]
)
def test_an_input_gives_the_same_again(tmp_path, format_):
    (tmp_path / "in").mkdir()
    given = input_for(source(format_(tmp_path / "in")), tmp_path / "memory")
    given.patience = math.inf  # of rows: on a busy machine too, all are there that are asked for
    position, taken = None, []
    while (first := given.take(position, 3)).slices:
        again = given.take(position, 3)
        assert (again.slices, again.position, again.more) == (first.slices, first.position, first.more)
        taken += first.slices
        position = first.position
    assert sum(piece.rows for piece in taken) == 9
    assert len(taken) >= 3


def test_a_followed_file_that_was_replaced_is_told_again(tmp_path):
    """Another input could not be read at the same look, so nobody has kept the first letter."""
    (tmp_path / "in").mkdir()
    given = input_for(source(csv(tmp_path / "in", tail=True)), tmp_path / "memory")
    position = given.take(None, 20).position
    put(tmp_path / "in" / "b", LINES.replace("a", "b"), 200)
    (tmp_path / "in" / "b").rename(tmp_path / "in" / "a.csv")
    first, again = given.take(position, 20), given.take(position, 20)
    assert again.refused == first.refused
    assert "was replaced after 9 lines" in again.refused[0]["reason"]


def test_what_a_feed_gave_still_waits(tmp_path):
    """Under control nobody would be granted a train for it otherwise."""
    (tmp_path / "in").mkdir()
    given = input_for(source(feed(tmp_path / "in")), tmp_path / "memory")
    first = given.take(None, 3)
    assert [given.waiting(position).tuples for position in (None, first.position)] == [9, 6]
