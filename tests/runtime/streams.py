"""Folders that fill while a network runs, and what the reference engine makes of the same rows."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from penstock.engine.local.engine import LocalEngine, LocalResult
from penstock.model.network import Network
from penstock.model.types import Schema

SCHEMA = "time TIMESTAMP, k INT, v INT"


def put(folder: Path, name: str, rows: list[tuple[Any, ...]]) -> None:
    """A CSV file appears in the folder as a whole; files are taken in the order they were put."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{name}"
    aside.write_text("".join(",".join("" if v is None else str(v) for v in row) + "\n" for row in rows))
    aside.rename(folder / f"{name}.csv")
    now = time.time_ns()
    os.utime(folder / f"{name}.csv", ns=(now, now))


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
