"""Lists as source and sink."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.model.formats import Memory, Rows
from penstock.model.types import Schema


def rows_source(schema: str | Schema, rows: Iterable[Any] = ()) -> Rows:
    """A list of dicts or tuples as a source; leave the rows out when trains are handed in by `run_network`.

    >>> rows_source("time TIMESTAMP, vid INT").schema.names
    ('time', 'vid')
    """
    return Rows(list(rows), Schema.parse(schema) if isinstance(schema, str) else schema)


def collect() -> Memory:
    """A sink that keeps what it gets: `sink = collect(); net.output("x", stream, to=sink)`, then `sink.rows`."""
    return Memory()
