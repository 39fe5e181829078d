"""Lists as source and sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from penstock.engine.local.rows import value_order
from penstock.model.expressions.values import micros
from penstock.model.formats.memory import Memory
from penstock.model.formats.rows import GivenRow, Rows
from penstock.model.types import Schema


def rows_source(schema: str | Schema, rows: Iterable[GivenRow] = ()) -> Rows:
    """A list of dicts or tuples as a source; leave the rows out when trains are handed in by `run_network`.

    >>> rows_source("time TIMESTAMP, vid INT").schema.names
    ('time', 'vid')
    """
    return Rows(list(rows), Schema.parse(schema) if isinstance(schema, str) else schema)


def collect() -> Memory:
    """A sink that keeps what it gets in its `rows`, for `net.output(name, stream, to=...)`."""
    return Memory()


def values(rows: Iterable[Mapping[str, object]], *columns: str) -> list[tuple[Any, ...]]:
    """The rows as sorted tuples of these columns (default: all), with times in seconds since 1970.

    >>> values([{"n": 2, "k": "b"}, {"n": 1, "k": None}], "k", "n")
    [(None, 1), ('b', 2)]
    """
    shown = [tuple(_short(row[name]) for name in columns or row) for row in rows]
    return sorted(shown, key=lambda row: [value_order(value) for value in row])


def _short(value: object) -> object:
    return micros(value) / 1_000_000 if isinstance(value, datetime) else value
