"""A feed: a directory whose writer lists its deliveries; tuples travel packed up to the task that works on them.

The list makes three things cheap: nobody scans a directory, nobody counts lines, and a delivery is seen as a whole or not at all,
so a train always ends where a delivery ends. See `model.formats.Feed` for the form of the list.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.functions import table_from
from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.contract.ticket import Position, Slice
from penstock.engine.spark.entry.inputs import Taken
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.formats.feed import GROUP_BITS, LISTING, TIME_BITS, Feed
from penstock.model.types import SEQ, STAMP

_SECOND = 1_000_000


class FeedInput:
    """Whole deliveries, as they are listed."""

    def __init__(self, feed: Feed) -> None:
        self._path = Path(feed.path)
        self._listing = self._path / LISTING
        self._lines: list[
            tuple[int, dict[str, Any]]
        ] = []  # (byte after the line, delivery), read and not taken
        self._read = -1  # how far the list was read; -1: not yet

    def take(self, position: Position, limit: int) -> Taken:
        byte, last = position.get("byte", 0), position.get("at", -1)
        self._look(byte)
        slices: list[Slice] = []
        rows, newest = 0, None
        while self._lines and (not rows or rows < limit):
            end, delivery = self._lines[0]
            if rows and rows + _rows(delivery) > limit:
                break
            byte = end
            self._lines.pop(0)
            at = int(delivery["at"])
            if at <= last:
                continue  # a writer that was stopped has delivered this one again
            slices += [self._slice(at, *file) for file in delivery["files"]]
            rows, last, newest = rows + _rows(delivery), at, at * _SECOND
        arrived = _written(slices[0]["path"]) if slices else None
        newest, more = newest if slices else None, bool(self._lines)
        return Taken(slices, {"byte": byte, "at": last}, rows, newest, more=more, arrived=arrived)

    def _slice(self, at: int, name: str, group: int, size: int, rows: int) -> Slice:
        path = str(self._path / name)
        return {
            "kind": "feed", "path": path, "at": at, "group": group, "start": 0, "end": size,
            "rows": rows,
        }  # fmt: skip

    def _look(self, byte: int) -> None:
        """Read what was added to the list; a line without its end is still being written."""
        if self._read < byte:
            self._lines, self._read = [], byte
        try:
            with self._listing.open("rb") as file:
                file.seek(self._read)
                added = file.read()
        except FileNotFoundError:
            return
        for line in added.splitlines(keepends=True):
            if line.endswith(b"\n"):
                self._read += len(line)
                self._lines.append((self._read, self._delivery(line)))

    def _delivery(self, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
            int(found["at"]), [(str(n), int(g), int(b), int(r)) for n, g, b, r in found["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise PenstockError(
                f"{self._listing}: a line is no delivery: {line[:80]!r} ({error!r})\n"
                '  expected: {"at": 75, "files": [["name", group, bytes, rows], ...]}'
            ) from None
        delivery: dict[str, Any] = found
        return delivery


def _written(path: str) -> float | None:
    """When the file of a delivery was written; deliveries come in order, so the first one tells."""
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return None


def _rows(delivery: dict[str, Any]) -> int:
    return sum(int(file[3]) for file in delivery["files"])


def unpack_feed(source: Source, slice_: Slice, chunk: bytes) -> tuple[Any, Any]:
    """The tuples of one file of a delivery, and its refused rows as dead letters."""
    feed = source.format
    assert isinstance(feed, Feed)
    try:
        columns, lines, reasons = feed.decode.call(chunk, slice_["at"])
    except PenstockError:
        raise
    except Exception as error:
        raise PenstockError(
            f"{source.where}: source '{source.name}': decoding {slice_['path']} with {feed.decode.name} failed: "
            f"{type(error).__name__}: {error}"
        ) from error
    table = table_from(source, columns, source.schema)
    first = (slice_["at"] << TIME_BITS) + (slice_["group"] << GROUP_BITS)
    stamp = _stamps(source, table, slice_["at"])
    table = table.append_column(STAMP, stamp)
    table = table.append_column(SEQ, pa.array(np.arange(first, first + table.num_rows)))
    return table, _dead(source, chunk, lines, reasons, first)


def _stamps(source: Source, table: Any, at: int) -> Any:
    if source.timestamp is None:
        return pa.nulls(table.num_rows, pa.int64())
    column = table.column(source.timestamp).cast(pa.int64())
    if table.num_rows and (column.null_count or not _all_are(column, at * _SECOND)):
        raise PenstockError(
            f"{source.where}: source '{source.name}': {source.format.decode.name} gave tuples of another time than their "  # type: ignore[attr-defined]
            f"delivery's\n  expected: '{source.timestamp}' is {at} s in all of them"
        )
    return column


def _all_are(column: Any, value: int) -> bool:
    return all(bool((chunk.to_numpy() == value).all()) for chunk in column.chunks)


def _dead(source: Source, chunk: bytes, lines: Any, reasons: Any, first: int) -> Any:
    if not len(lines):
        return DEAD_SCHEMA.empty_table()
    text = bytes(chunk).split(b"\n")
    raw = [text[line].decode("utf-8", "replace").rstrip("\r") for line in lines]
    offsets = np.asarray(lines, np.int64) + first
    columns = [raw, list(reasons), offsets, [source.name] * len(raw)]
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, DEAD_SCHEMA, strict=True)], schema=DEAD_SCHEMA
    )
