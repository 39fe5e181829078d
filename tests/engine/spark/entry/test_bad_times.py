"""Tuples of Parquet files without a time or late: the driver's way and Spark's way tell the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.files.parquet import ParquetFiles
from penstock.engine.spark.entry import admission, bad_times
from penstock.engine.spark.entry.admission import Guards, admit_files
from penstock.engine.spark.watch import Watch
from penstock.model.formats.files import parquet
from penstock.model.writing.network import Network

TIMES = [
    [5, None, 7, 2, 9, 9, 1, None, 12],
    [20, 21, 22, 23, 24, 25, 26, 27, 28],
    [None] * 9,
    [3, 4, 1, 2, 0, 1, 2, 3, 4],
]
HORIZON = 5


@pytest.fixture
def source(tmp_path: Path) -> Any:
    for number, times in enumerate(TIMES):
        column = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
        table = pa.table({"time": column, "v": pa.array(range(9), pa.int32()), "t": ['ä"b'] * 9})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=4)
    net = Network("n")
    net.source("s", parquet(str(tmp_path), "time TIMESTAMP, v INT, t STRING"), timestamp="time")
    return net.nodes["s"]


def taken(source: Any, tmp_path: Path) -> list[Any]:
    return ParquetFiles(source, tmp_path / "log").take(None, 1000).slices


def admitted(spark: Any, source: Any, slices: list[Any]) -> tuple[list[Any], list[Any], Any]:
    watch = Watch()
    frame = admit_files(spark, source, slices, HORIZON, Guards(), watch)
    rows = frame.select("v", "t", "_ts", "_seq").collect()
    letters = [
        (json.loads(raw)["v"], json.loads(raw)["t"], reason, offset, box)
        for raw, reason, offset, box, _ in zip(*watch.dead().to_pydict().values(), strict=True)
    ]
    counts = watch.counts("s")
    return sorted(map(tuple, rows), key=str), sorted(letters, key=str), (counts["rows"], counts["newest"])


def test_both_ways_tell_the_same(spark: Any, source: Any, tmp_path: Path, monkeypatch: Any) -> None:
    slices = taken(source, tmp_path)
    assert [s.nulls for s in slices] == [2, 0, 9, 0]
    by_driver = admitted(spark, source, slices)
    monkeypatch.setattr(bad_times, "FEW", 3)
    assert bad_times.bad_times(source, slices, HORIZON) is None
    assert by_driver == admitted(spark, source, slices)
    rows, letters, counts = by_driver
    assert len(letters) == 4 + 0 + 9 + 9
    assert len(rows) == 36 - 22
    assert counts == (36, 28)
    kept = [
        (v, 'ä"b', ts, (file << 40) + v)
        for file, times in enumerate(TIMES)
        for v, ts in enumerate(times)
        if ts is not None and ts >= HORIZON
    ]
    assert rows == sorted(kept, key=str)


def test_only_the_files_in_question_are_read(source: Any, tmp_path: Path, monkeypatch: Any) -> None:
    read: list[str] = []
    whole = bad_times._letters
    monkeypatch.setattr(
        bad_times,
        "_letters",
        lambda s, slice_, *rest: (read.append(slice_.path), whole(s, slice_, *rest))[1],
    )
    bad_times.bad_times(source, taken(source, tmp_path), HORIZON)
    assert [Path(path).name for path in read] == ["0.parquet", "2.parquet", "3.parquet"]


def test_where_all_are_late_nothing_is_the_newest(source: Any, tmp_path: Path) -> None:
    slices = taken(source, tmp_path)
    assert admission._newest(slices, HORIZON) == 28
    assert admission._newest(slices, 29) is None


def test_spark_itself_counts_what_comes(spark: Any, tmp_path: Path) -> None:
    """What the footer says is no count: the account would hold whatever Spark made of the file."""
    times = pa.array(range(1_000), pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"time": times}), tmp_path / "a.parquet")
    net, watch = Network("n"), Watch()
    net.source("s", parquet(str(tmp_path), "time TIMESTAMP"), timestamp="time")
    given = taken(net.nodes["s"], tmp_path)
    frame = admit_files(spark, net.nodes["s"], given, 0, Guards(), watch)  # type: ignore[arg-type]
    assert len(frame.limit(3).collect()) == 3
    assert watch.counts("s")["rows"] < 1_000
