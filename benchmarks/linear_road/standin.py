"""A stand-in for generated traffic, of the right size.

It simulates nothing: vehicles start ever more often and drive at a steady speed. It has the number of rows,
vehicles and bytes of a real expressway, and the cost of the history and of the driver depends on those.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.linear_road.rows.arrays import Int32s, Ints
from penstock.linear_road.rows.fields import FEET_PER_SEGMENT, PARQUET_SCHEMA


def expressway(vehicles: int, seconds: int, seed: int) -> Int32s:
    """Rows of one expressway in order of time; the rate rises in a straight line."""
    chance = np.random.default_rng(seed)
    start = np.floor(seconds * np.sqrt(chance.random(vehicles))).astype(np.int64)
    return _rows(chance, start, seconds)


def steady(rate: int, seconds: int, seed: int) -> Int32s:
    """Rows of one expressway at a constant rate: all vehicles are there from the start."""
    chance = np.random.default_rng(seed)
    start = np.repeat(np.arange(30), rate)
    return _rows(chance, start, seconds)


def _rows(chance: np.random.Generator, start: Ints, seconds: int) -> Int32s:
    vehicles = len(start)
    speed = chance.integers(30, 70, vehicles)
    direction = chance.integers(0, 2, vehicles)
    entry = chance.integers(0, 50, vehicles) * FEET_PER_SEGMENT
    count = np.minimum((seconds - start + 29) // 30, 85)
    vid = np.repeat(np.arange(vehicles), count)
    k = np.arange(len(vid)) - np.repeat(np.cumsum(count) - count, count)
    way = np.minimum(entry[vid] + speed[vid] * 44 * k, 527_999)
    rows = np.full((len(vid), 15), -1, np.int32)
    rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = 0, start[vid] + 30 * k, vid, speed[vid]
    rows[:, 4], rows[:, 5], rows[:, 6] = 0, np.where(k == 0, 0, 2), direction[vid]
    rows[:, 8] = np.where(direction[vid] == 0, way, 527_999 - way)
    rows[:, 7] = rows[:, 8] // FEET_PER_SEGMENT
    rows = np.concatenate([rows, _requests(rows[chance.random(len(rows)) < 0.01])])
    return rows[np.argsort(rows[:, 1], kind="stable")]


def _requests(reports: Int32s) -> Int32s:
    """A balance request with each of the chosen reports."""
    rows = np.full_like(reports, -1)
    rows[:, 0], rows[:, 1], rows[:, 2] = 2, reports[:, 1], reports[:, 2]
    rows[:, 9] = np.arange(len(rows))
    return rows


def in_own_process(make: Callable[..., None], *arguments: Any) -> None:
    """Make data in another process: a child starts with the memory of its parent, and we measure children."""
    worker = get_context("spawn").Process(target=make, args=arguments)
    worker.start()
    worker.join()
    if worker.exitcode:
        raise RuntimeError(f"making the stand-in input failed with exit code {worker.exitcode}")


def make_expressway(file: Path, vehicles: int, seconds: int, seed: int) -> None:
    write_parquet(expressway(vehicles, seconds, seed), file)


def make_steady(file: Path, rate: int, seconds: int, seed: int) -> None:
    write_parquet(steady(rate, seconds, seed), file)


def write_parquet(rows: Int32s, file: Path) -> None:
    columns = [pa.array(np.ascontiguousarray(rows[:, j])) for j in range(rows.shape[1])]
    pq.write_table(pa.Table.from_arrays(columns, schema=PARQUET_SCHEMA), file)
