"""Folders that fill while a network runs, and what the reference engine makes of the same rows."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as ps
from penstock.engine.local.engine import LocalEngine, LocalResult
from penstock.model.formats.description import SinkFormat
from penstock.model.types import Schema
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream

SCHEMA = "time TIMESTAMP, k INT, v INT"


def put(folder: Path, name: str, rows: list[tuple[Any, ...]]) -> None:
    """A CSV file appears in the folder as a whole; files are taken in the order they were put."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{name}"
    aside.write_text("".join(",".join("" if v is None else str(v) for v in row) + "\n" for row in rows))
    now = time.time_ns()
    os.utime(aside, ns=(now, now))
    aside.rename(folder / f"{name}.csv")


def rows_of(first: int, count: int, seed: int = 0) -> list[tuple[int, int, int]]:
    """One row a second from `first` on."""
    dice = random.Random(f"{seed} {first}")
    return [(second, dice.randrange(5), dice.randrange(100)) for second in range(first, first + count)]


def local(net: Network, **rows: list[tuple[Any, ...]]) -> LocalResult:
    """The reference engine's answer, all in one train."""
    return LocalEngine(net).run([rows])


def parquet_rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of the Parquet files in a folder; what begins with '_' or '.' is not looked at."""
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def csv_rows(folder: Path, schema: str) -> list[dict[str, str]]:
    """All rows of the CSV files in a folder, as texts."""
    names = Schema.parse(schema).names
    lines = [line for path in sorted(folder.glob("*.csv")) for line in path.read_text().splitlines()]
    return [dict(zip(names, line.split(","), strict=True)) for line in lines]


def source(net: Network, folder: Path, name: str = "cars", **options: Any) -> Stream:
    return net.source(name, ps.csv(str(folder / name), SCHEMA, wait=True), timestamp="time", **options)


def minutes(
    net: Network, folder: Path, to: SinkFormat, *, size: str = "10 seconds", predicate: str = "v >= 0"
) -> Network:
    """cars -> filter -> windows -> point -> filter -> output: two sub-networks."""
    cars = source(net, folder, lateness="3 seconds").filter("v < 90", name="valid")
    windows = cars.group_by("k").tumble(size, n="count(*)", total="sum(v)", name="windows")
    point = windows.connection_point("kept", key="k")
    point.filter(predicate.replace("v", "total"), name="chosen").output("out", to=to)
    return net


def until(running: ps.Runtime, condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        running.check()
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
