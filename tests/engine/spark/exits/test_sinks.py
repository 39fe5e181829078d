"""Files of outputs: staged, published, published again; and what is left lying about."""

from __future__ import annotations

import math
import os
import shutil
import time
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.connectors.contract import Target, Written
from penstock.connectors.files import sink
from penstock.connectors.files.sink import FilesSink, publish, remove_litter
from penstock.connectors.files.text import ByteRange
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.trains.train import Trains, TrainSettings
from penstock.model.boxes import Source
from penstock.model.errors import NetworkError
from penstock.model.formats.files import Csv, Json, Parquet, csv
from penstock.model.formats.files import json as json_lines
from penstock.model.types import Schema, arrow_schema
from penstock.rewrite.check import check
from penstock.rewrite.subnetworks import split
from penstock.store.errors import MissingFileError, StoreError
from penstock.store.file_names import STAGING

SCHEMA = Schema.parse("time TIMESTAMP, k STRING, v INT")
ROWS = [
    {"time": 1_500_000, "k": 'a "b", c', "v": 1, "_ts": 1, "_seq": 1},
    {"time": 2_000_000, "k": None, "v": None, "_ts": 2, "_seq": 2},
    {"time": 3_000_000, "k": "", "v": 3, "_ts": 3, "_seq": 3},
]
TABLE = pa.Table.from_pylist(ROWS, schema=arrow_schema(SCHEMA))


def staged(tmp_path, form="parquet", **options):
    to = {"csv": Csv, "json": Json, "parquet": Parquet}[form](
        str(tmp_path / "out"), None, tuple(options.items())
    )
    return FilesSink(to, Target("query", SCHEMA, "run"))


def test_nothing_is_seen_before_it_is_published(tmp_path):
    moves = staged(tmp_path).write(TABLE, 7, 1).moves
    assert list((tmp_path / "out").glob("*.parquet")) == []
    publish(moves)
    (path,) = (tmp_path / "out").glob("*.parquet")
    assert path.name == "part-query-run-00000007-00001.parquet"
    assert pq.read_table(path).equals(TABLE.select(["time", "k", "v"]))


def test_publishing_again_does_no_harm(tmp_path):
    moves = staged(tmp_path).write(TABLE, 7, 1).moves
    publish(moves)
    publish(moves)
    again = staged(tmp_path).write(TABLE, 7, 1).moves  # the train is run once more
    publish(again)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1


def test_a_lost_file_is_not_passed_over(tmp_path):
    moves = staged(tmp_path).write(TABLE, 7, 1).moves
    Path(moves[0][0]).unlink()
    with pytest.raises(MissingFileError, match="committed, but neither it nor its staged file"):
        publish(moves)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
@pytest.mark.parametrize("empty", [0, 1, 2], ids=["first", "between", "last"])
def test_chunks_without_rows_leave_no_trace(tmp_path, form, empty):
    chunks = [TABLE.slice(0, 1), TABLE.slice(1)]
    chunks.insert(empty, TABLE.slice(0, 0))
    for name, table in (("whole", TABLE), ("chunks", pa.concat_tables(chunks))):
        publish(staged(tmp_path / name, form).write(table, 7, 1).moves)
    (whole,), (chunked,) = ((tmp_path / name / "out").glob(f"*.{form}") for name in ("whole", "chunks"))
    assert whole.read_bytes() == chunked.read_bytes()


def test_no_rows_no_file(tmp_path):
    assert staged(tmp_path).write(TABLE.slice(0, 0), 7, 1) == Written()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_is_written_is_read_back(tmp_path, form):
    publish(staged(tmp_path, form).write(TABLE, 0, 0).moves)
    (path,) = (tmp_path / "out").glob(f"*.{form}")
    made = csv("x", SCHEMA) if form == "csv" else json_lines("x", SCHEMA)
    source = Source(name="s", where="here", format=made, schema=SCHEMA, timestamp="time")
    decoded = ByteRange(str(path), 0, 0, path.stat().st_size, 0).tuples(source)
    assert decoded.refused.num_rows == 0
    assert (
        decoded.tuples.select(["time", "k", "v"]).to_pylist() == TABLE.select(["time", "k", "v"]).to_pylist()
    )


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("INT", 7),
        ("DOUBLE", math.inf),
        ("BOOLEAN", False),
        ("DATE", date(2026, 1, 31)),
        ("TIMESTAMP", 1_500_000),
    ],
)
def test_a_lone_null_in_csv_is_a_row(tmp_path, type_, value):
    schema = Schema.parse(f"v {type_}")
    table = pa.Table.from_pylist([{"v": value}, {"v": None}], schema=arrow_schema(schema, hidden=False))
    sink = FilesSink(Csv(str(tmp_path / "out"), None, ()), Target("query", schema, "run"))
    publish(sink.write(table, 0, 0).moves)
    (path,) = (tmp_path / "out").glob("*.csv")
    source = Source(name="s", where="here", format=csv("x", schema), schema=schema)
    decoded = ByteRange(str(path), 0, 0, path.stat().st_size, 0).tuples(source)
    assert decoded.tuples.select(["v"]).to_pylist() == table.to_pylist()


def test_csv_header(tmp_path):
    publish(staged(tmp_path, "csv", header="true", sep=";").write(TABLE, 0, 0).moves)
    (path,) = (tmp_path / "out").glob("*.csv")
    assert path.read_text().splitlines()[0].replace('"', "") == "time;k;v"


def test_litter_is_removed_but_not_what_a_crash_kept_from_being_published(tmp_path):
    needed = list(staged(tmp_path).write(TABLE, 1, 0).moves)
    owner = staged(tmp_path).owner
    folder = tmp_path / "out" / STAGING / f"{owner}-00000001-of-spark"
    folder.mkdir()
    (folder / "part.parquet").write_bytes(b"x")
    needed.append([str(folder / "part.parquet"), str(tmp_path / "out" / "y.parquet")])
    (old,) = staged(tmp_path).write(TABLE, 0, 0).moves
    (new,) = staged(tmp_path).write(TABLE, 2, 0).moves
    long_ago = time.time() - 9999
    others = tmp_path / "out" / STAGING / "o-of-another-run-00000000-00000-x.csv"
    others.write_text("1\n")
    for path in (needed[0][0], folder, old[0], others):
        os.utime(path, (long_ago, long_ago))
    remove_litter(str(tmp_path / "out"), owner, needed)
    assert not Path(old[0]).exists()
    assert others.exists(), "a commit of another checkpoint may name it"
    assert Path(new[0]).exists()
    publish(needed)


def test_litter_may_be_published_at_the_same_moment(tmp_path, monkeypatch):
    """An owner that was followed moves its staged file between our listing and our look at it."""
    (move,) = staged(tmp_path).write(TABLE, 0, 0).moves
    monkeypatch.setattr(sink, "staged_by", lambda *_: publish([move]) or [Path(move[0])])
    remove_litter(str(tmp_path / "out"), staged(tmp_path).owner)
    assert Path(move[1]).exists()


def trains(tmp_path, *, checkpoint="checkpoint", append=False):
    """The trains of a sub-network with an output. One ticket is written, so train 0 may have begun."""
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, k STRING, v INT"), timestamp="time")
    options = {"append": True} if append else {}
    cars.output("one", to=ps.parquet(str(tmp_path / "out"), **options))
    (sub,) = split(net)
    begun = Trains(sub, None, tmp_path / checkpoint, TrainSettings(partitions=1))
    if begun.log.last() < 0:
        begun.log.write_ticket(Ticket(0, 0.0))
    return begun


def written(begun, train=0):
    publish(begun.outputs.task_sink("one").write(TABLE, train, 0).moves)


def files(tmp_path):
    return list((tmp_path / "out").glob("*.parquet"))


def test_a_new_checkpoint_adds_to_the_files_of_an_old_one_only_if_told(tmp_path):
    written(trains(tmp_path))
    written(trains(tmp_path))  # started again: train 0 is run once more
    assert len(files(tmp_path)) == 1
    with pytest.raises(StoreError) as caught:
        trains(tmp_path, checkpoint="new")
    assert "output 'one': " in str(caught.value)
    assert "holds the rows of another checkpoint or output" in str(caught.value)
    assert "append=True" in str(caught.value)
    written(trains(tmp_path, checkpoint="newer", append=True))
    assert len(files(tmp_path)) == 2
    trains(tmp_path)  # whoever has begun goes on, with the other's rows beside its own


def test_a_checkpoint_made_anew_is_another(tmp_path):
    first = trains(tmp_path)
    written(first)
    shutil.rmtree(first.directory)  # detached
    with pytest.raises(StoreError, match="another checkpoint"):
        trains(tmp_path)


def test_rows_that_the_checkpoint_does_not_know_are_refused(tmp_path):
    """Its last records are lost: to go on would give the rows of train 7 twice, or others in their place."""
    written(trains(tmp_path), train=7)
    with pytest.raises(MissingFileError, match=r"holds rows of train 7, but the last train .* is 0"):
        trains(tmp_path)


def test_files_of_others_are_none_of_ours(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000-c0ffee.snappy.parquet").touch()
    (tmp_path / "out" / "README").touch()
    trains(tmp_path)


@pytest.mark.parametrize("spelling", ["{0}/out", "{0}/out/", "{0}/x/../out", "{0}/./out"])
def test_two_outputs_to_one_directory_are_refused_however_it_is_spelt(tmp_path, spelling):
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, k STRING, v INT"), timestamp="time")
    cars.output("one", to=ps.csv(str(tmp_path / "out")))
    cars.select("k").output("other", to=ps.csv(spelling.format(tmp_path)))
    with pytest.raises(NetworkError, match="as output 'one' does"):
        check(net)
