"""What the tests of connection points share: one schema, trains from rows, a hand-cranked clock."""

from __future__ import annotations

import pyarrow as pa

from penstock.model.types import Schema, arrow_schema
from penstock.store.points.point import PointWriter

SCHEMA = Schema.parse("seg INT, name STRING")


def train(rows: list[tuple[int | None, str, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[], [], [], []]
    return pa.table(
        [pa.array(list(c), f.type) for c, f in zip(columns, arrow_schema(SCHEMA), strict=True)],
        schema=arrow_schema(SCHEMA),
    )


def put(
    writer: PointWriter, entry: int, rows: list[tuple[int | None, str, int, int]], horizon: int = 0, **more
) -> None:
    writer.commit(entry, writer.stage(entry, [train(rows)]), horizon, **more)


def seqs(table: pa.Table) -> list[int]:
    return table["_seq"].to_pylist()


class HandClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
