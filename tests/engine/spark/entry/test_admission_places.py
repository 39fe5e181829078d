"""What comes out of a source carries its place, whatever was looked at on the way in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.parquet import WholeParquet
from penstock.engine.spark.entry.admission import Guards, admit_files
from penstock.engine.spark.watch import Watch
from penstock.model.formats.files import parquet
from penstock.model.writing.network import Network


def test_files_proven_in_time_have_stamp_and_place(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    times = pa.array([1_000_000, 2_000_000]).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"time": times, "v": pa.array([1, 2], pa.int32())}), path)
    net = Network("n")
    net.source("s", parquet(str(tmp_path), "time TIMESTAMP, v INT"), timestamp="time")
    slices = [WholeParquet(str(path), 3, rows=2, least=1_000_000, latest=2_000_000, nulls=0)]
    found = admit_files(spark, net.nodes["s"], slices, 0, Guards(), Watch())  # type: ignore[arg-type]
    assert [(r["v"], r["_ts"], r["_seq"]) for r in found.collect()] == [
        (1, 1_000_000, 3 << 40),
        (2, 2_000_000, (3 << 40) + 1),
    ]
