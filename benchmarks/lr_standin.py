"""Shared by the Linear Road benchmarks: a stand-in input of the right size, and what every result file says about its run.

The stand-in is no traffic simulation: vehicles start ever more often and drive at a steady speed. It has the number of rows,
vehicles and bytes of a real expressway, which is what the cost of the history and of the driver depends on.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.linear_road.rows.csv_rows import Array
from penstock.linear_road.rows.fields import FEET_PER_SEGMENT, PARQUET_SCHEMA

RESULTS = Path(__file__).parent / "results"


def expressway(vehicles: int, seconds: int, seed: int) -> Array:
    """Rows of one expressway, the rate rising in a straight line, ordered by time; 1 report in 100 carries a request."""
    chance = np.random.default_rng(seed)
    start = np.floor(seconds * np.sqrt(chance.random(vehicles))).astype(np.int64)
    return _rows(chance, start, seconds)


def steady(rate: int, seconds: int, seed: int) -> Array:
    """Rows of one expressway at a constant rate: every vehicle is there from the start and reports every 30 s."""
    chance = np.random.default_rng(seed)
    start = np.repeat(np.arange(30), rate)
    return _rows(chance, start, seconds)


def _rows(chance: np.random.Generator, start: Array, seconds: int) -> Array:
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


def _requests(reports: Array) -> Array:
    """A balance request with each of the chosen reports."""
    rows = np.full_like(reports, -1)
    rows[:, 0], rows[:, 1], rows[:, 2] = 2, reports[:, 1], reports[:, 2]
    rows[:, 9] = np.arange(len(rows))
    return rows


def in_own_process(make: Callable[..., None], *arguments: Any) -> None:
    """Make data in another process: what this one once held would count as memory of the processes it measures."""
    worker = get_context("spawn").Process(target=make, args=arguments)
    worker.start()
    worker.join()
    if worker.exitcode:
        raise SystemExit(f"making the stand-in input failed with exit code {worker.exitcode}")


def make_expressway(file: Path, vehicles: int, seconds: int, seed: int) -> None:
    write_parquet(expressway(vehicles, seconds, seed), file)


def make_steady(file: Path, rate: int, seconds: int, seed: int) -> None:
    write_parquet(steady(rate, seconds, seed), file)


def write_parquet(rows: Array, file: Path) -> None:
    columns = [pa.array(np.ascontiguousarray(rows[:, j])) for j in range(rows.shape[1])]
    pq.write_table(pa.Table.from_arrays(columns, schema=PARQUET_SCHEMA), file)


def write_result(name: str, config: dict[str, Any], figures: list[dict[str, Any]]) -> Path:
    """A dated result file that is never overwritten."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now().astimezone()
    file = RESULTS / f"{name}-{now:%Y%m%d-%H%M%S}.json"
    result = {
        "benchmark": name,
        "date": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
    }
    with file.open("x", encoding="utf-8") as stream:
        json.dump({**result, "config": config, "figures": figures}, stream, indent=2)
    return file


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "processor": _processor(),
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("penstock", "numpy", "numba", "pyarrow")},
    }
