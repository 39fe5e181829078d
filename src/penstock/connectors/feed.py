"""A feed: a directory whose writer lists its deliveries. See `model.formats.feed` for the list's format.

The list saves work: nobody scans a directory or counts lines. A delivery is seen as a whole or not at all, so
a train always ends where a delivery ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from penstock.connectors.contract import (
    Arrival,
    Decoded,
    Input,
    Location,
    Position,
    Slice,
    SliceChangedError,
    SliceGoneError,
    Taken,
    Unread,
    Waiting,
)
from penstock.connectors.paths import is_plain
from penstock.connectors.tables import NOTHING_REFUSED, counted_from, refused_rows
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.formats.feed import GROUP_BITS, LISTING, TIME_BITS, Feed, place_of
from penstock.model.types import Schema, arrow_schema

_SECOND = 1_000_000
_DecodedFile = tuple[object, Sequence[int], Sequence[str], Sequence[str] | None]
"""Columns, refused lines, their reasons, and their texts if the file is no text."""


@dataclass(frozen=True)
class FeedPosition(Position):
    """The byte after the last line taken from the list, and the time of the last delivery."""

    byte: int = 0
    at: int = -1


@dataclass(frozen=True)
class FeedFile(Slice):
    """One file of a delivery: the tuples of one group of keys at one time."""

    path: str
    at: int
    group: int
    size: int
    rows: int

    def read(self) -> bytes:
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123 - the path may be any file system's
                data = file.read(self.size)
        except FileNotFoundError:
            raise SliceGoneError(self.path, tuples=self.rows) from None
        if len(data) != self.size:
            reason = f"the file has {len(data):,} bytes, the list of deliveries says {self.size:,}"
            raise SliceChangedError(self.path, reason, tuples=self.rows)
        return data

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        columns, lines, reasons, raw = self._call(source, data)
        first = (self.at << TIME_BITS) + (self.group << GROUP_BITS)
        table = _checked(source, columns)
        self._check_times(source, table)
        refused = NOTHING_REFUSED
        if len(lines):
            places = [int(line) + first for line in lines]
            texts = _lines(data, lines) if raw is None else raw
            refused = refused_rows(zip(texts, reasons, places, strict=True))
        return Decoded(counted_from(table, first).tuples, refused)

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        del source, data  # the writer has told
        return self.rows

    def unread(self) -> Unread:
        return Unread((self.at << TIME_BITS) + (self.group << GROUP_BITS), self.rows, self.at * _SECOND)

    def location(self, seq: int) -> Location | None:
        at, group, line = place_of(seq)
        return Location(self.path, line + 1) if (at, group) == (self.at, self.group) else None

    def _call(self, source: Source, data: bytes | memoryview) -> _DecodedFile:
        feed = _feed_of(source)
        try:
            columns, lines, reasons, *raw = feed.decode.call(data, self.at)
        except PenstockError:
            raise
        except Exception as error:
            raise PenstockError(
                f"{source.where}: source '{source.name}': decoding {self.path} with {feed.decode.name} "
                f"failed: {type(error).__name__}: {error}"
            ) from error
        return columns, lines, reasons, raw[0] if raw else None

    def _check_times(self, source: Source, table: pa.Table) -> None:
        if source.timestamp is None or not table.num_rows:
            return
        times, at = table.column(source.timestamp).cast(pa.int64()), self.at * _SECOND
        if times.null_count or not all(bool((chunk.to_numpy() == at).all()) for chunk in times.chunks):
            raise PenstockError(
                f"{source.where}: source '{source.name}': {_feed_of(source).decode.name} gave tuples of "
                "another time than their delivery's\n"
                f"  expected: '{source.timestamp}' is {self.at} s in all of them"
            )

    def weight(self) -> int:
        return self.size

    def key_group(self) -> int:
        return self.group

    def whole_file(self) -> str | None:
        return self.path if is_plain(self.path) else None


def _feed_of(source: Source) -> Feed:
    assert isinstance(source.format, Feed)
    return source.format


def _checked(source: Source, columns: object) -> pa.Table:
    """The decoder's table, with exactly the source's columns."""
    table = pa.table(columns) if isinstance(columns, dict) else columns
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise _no_columns(source, type(columns).__name__)
    missing = [name for name in source.schema.names if name not in table.column_names]
    if missing:
        raise _no_columns(source, f"columns {', '.join(table.column_names)}")
    return _cast(source, table.select(list(source.schema.names)), source.schema)


def _cast(source: Source, table: pa.Table, schema: Schema) -> pa.Table:
    wanted = arrow_schema(schema, hidden=False)
    try:
        return table if table.schema.equals(wanted) else table.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _no_columns(source, f"columns that do not fit: {error}") from error


def _no_columns(source: Source, found: str) -> PenstockError:
    return PenstockError(
        f"{source.where}: source '{source.name}': {_feed_of(source).decode.name} gave something else "
        "than declared",
        found=found,
        expected=source.schema.ddl(),
    )


def _lines(data: bytes | memoryview, lines: Sequence[int]) -> list[str]:
    texts = bytes(data).split(b"\n")
    return [texts[line].decode("utf-8", "replace").rstrip("\r") for line in lines]


@dataclass(frozen=True)
class _Delivery:
    """A line of the list that was read; `end` is the byte after it."""

    end: int
    at: int
    files: tuple[tuple[str, int, int, int], ...]  # name, group, bytes, rows

    @property
    def rows(self) -> int:
        return sum(rows for _, _, _, rows in self.files)

    @property
    def size(self) -> int:
        return sum(size for _, _, size, _ in self.files)

    def fits(self, rows: int, size: int) -> bool:
        """Whether a train that has room for so many tuples and bytes can take it too."""
        return 0 < rows >= self.rows and self.size <= size


class FeedInput(Input[FeedPosition]):
    """Gives whole deliveries, in the order of the list."""

    def __init__(self, source: Source, directory: Path) -> None:
        del directory  # the list remembers everything
        self._path = Path(_feed_of(source).path)
        self._listing = self._path / LISTING
        self._waiting: list[_Delivery] = []
        self._read = -1  # how far the list was read; -1: not yet

    def take(self, position: FeedPosition | None, limit: int) -> Taken:
        at = position or FeedPosition()
        self._look(at.byte)
        while self._waiting and self._waiting[0].end <= at.byte:
            self._waiting.pop(0)  # only now: before, the same could have been asked for again
        slices: list[FeedFile] = []
        rows, size, newest = 0, 0, None
        for delivery in self._waiting:
            if rows and not delivery.fits(limit - rows, self.max_bytes - size):
                break
            if delivery.at <= at.at:
                # A writer that was stopped has delivered this one again.
                at = FeedPosition(delivery.end, at.at)
                continue
            at = FeedPosition(delivery.end, delivery.at)
            slices += [FeedFile(str(self._path / name), at.at, *rest) for name, *rest in delivery.files]
            rows, size, newest = rows + delivery.rows, size + delivery.size, at.at * _SECOND
        arrivals = self._arrivals(slices)
        return Taken(
            slices,
            at,
            rows,
            newest if slices else None,
            more=bool(self._waiting) and self._waiting[-1].end > at.byte,
            arrived=arrivals[0][0] if arrivals else None,
            arrivals=arrivals,
        )

    @staticmethod
    def _arrivals(slices: Sequence[FeedFile]) -> list[Arrival]:
        """When each delivery was written, by its first file."""
        arrivals: list[Arrival] = []
        for _, files in groupby(slices, key=lambda file: file.at):
            delivery = list(files)
            written = _written(delivery[0].path)
            if written is not None:
                arrivals.append((written, sum(file.rows for file in delivery)))
        return arrivals

    def waiting(self, position: FeedPosition | None) -> Waiting:
        at = position or FeedPosition()
        self._look(at.byte)
        fresh = [delivery for delivery in self._waiting if delivery.at > at.at]
        if not fresh:
            return Waiting(0, 0)
        arrived = _written(str(self._path / fresh[0].files[0][0])) if fresh[0].files else None
        return Waiting(sum(d.rows for d in fresh), sum(d.size for d in fresh), arrived)

    def _look(self, byte: int) -> None:
        """Read what was added to the list; a line without its end is still being written."""
        if self._read < byte:
            self._waiting, self._read = [], byte
        try:
            with self._listing.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._read:
                    raise self._shorter(file.tell())
                file.seek(self._read)
                added = file.read()
        except FileNotFoundError:
            return
        for line in added.splitlines(keepends=True):
            if line.endswith(b"\n"):
                self._read += len(line)
                self._waiting.append(self._delivery(line))

    def _shorter(self, size: int) -> PenstockError:
        return PenstockError(
            f"{self._listing}: the list of deliveries is shorter than what was read of it",
            found=f"{size} bytes",
            expected=f"at least {self._read}",
            hint="a writer adds to its list and never cuts it; restore it, or start with a new checkpoint",
        )

    def _delivery(self, line: bytes) -> _Delivery:
        try:
            listed = json.loads(line)
            files = tuple((str(n), int(g), int(b), int(r)) for n, g, b, r in listed["files"])
            return _Delivery(self._read, int(listed["at"]), files)
        except (ValueError, KeyError, TypeError) as error:
            raise PenstockError(
                f"{self._listing}: a line is no delivery: {line[:80]!r} ({error!r})\n"
                '  expected: {"at": 75, "files": [["name", group, bytes, rows], ...]}'
            ) from None


def _written(path: str) -> float | None:
    """When a delivery's file was written; deliveries come in order, so the first one is enough."""
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return None
