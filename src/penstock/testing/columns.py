"""Feeds and column latches for tests: small, obvious, and in a module that Spark's workers can import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

T = TypeVar("T")
Columns = dict[str, Any]  # Arrow arrays, NumPy arrays or lists, as a user's logic may return them
SCHEMA = "second TIMESTAMP, road INT, car INT, spd INT"


def decode(chunk: bytes, at: int) -> tuple[Columns, list[int], list[str]]:
    """road,car,spd a line; anything else is refused."""
    rows, lines, reasons = [], [], []
    for number, line in enumerate(bytes(chunk).decode().splitlines()):
        try:
            road, car, spd = map(int, line.split(","))
            rows.append((at * 1_000_000, road, car, spd))
        except ValueError:
            lines.append(number)
            reasons.append("no row")
    names = ("second", "road", "car", "spd")
    columns: Columns = {name: np.array([row[i] for row in rows], np.int64) for i, name in enumerate(names)}
    columns["second"] = pa.array(columns["second"]).cast(pa.timestamp("us", tz="UTC"))
    return columns, lines, reasons


class ReportsPerRoad:
    """Reports of each value of a key so far."""

    key = "road"

    def __init__(self) -> None:
        self.count: dict[str | int, int] = {}
        self.moved = False

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> Columns:  # noqa: ARG002 - protocol
        keys = inputs[0][self.key].to_pylist()
        numbers = []
        for key in keys:
            self.count[key] = self.count.get(key, 0) + 1
            numbers.append(self.count[key])
        self.moved |= bool(keys)
        return {"second": inputs[0]["second"], self.key: keys, "n": numbers}

    def changes(self) -> Columns:
        moved, self.moved = self.moved, False
        return {"all": {"k": list(self.count), "n": list(self.count.values())}} if moved else {}

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        if "all" in parts:
            self.count = dict(zip(parts["all"]["k"].to_pylist(), parts["all"]["n"].to_pylist(), strict=True))


class ReportsPerCar(ReportsPerRoad):
    key = "car"


class TuplesPerKey:
    """Tuples of each key so far."""

    def __init__(self) -> None:
        self.count: dict[str | int, int] = {}
        self.moved = False

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> Columns:  # noqa: ARG002 - protocol
        rows = pa.concat_tables([table.select(["time", "k"]) for table in inputs])
        times = [t.timestamp() * 1e6 for t in rows["time"].to_pylist()]
        assert all(table["time"].to_pylist() == sorted(table["time"].to_pylist()) for table in inputs)
        assert all(t < until for t in times)
        numbers = []
        for key in rows["k"].to_pylist():
            self.count[key] = self.count.get(key, 0) + 1
            numbers.append(self.count[key])
        self.moved = bool(numbers)
        return {"time": rows["time"], "k": rows["k"], "n": numbers}

    def changes(self) -> Columns:
        return {"all": {"k": list(self.count), "n": list(self.count.values())}} if self.moved else {}

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        if "all" in parts:
            self.count = dict(zip(parts["all"]["k"].to_pylist(), parts["all"]["n"].to_pylist(), strict=True))


class TuplesWithoutTime(TuplesPerKey):
    """Leaves out the time of its rows."""

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> Columns:
        columns = super().process(inputs, until, final)
        return {**columns, "time": pa.nulls(len(columns["n"]), pa.timestamp("us", tz="UTC"))}


def same(rows: T) -> T:
    """A stamp that sets nothing."""
    return rows
