"""A Python iterable: its rows are written to files as they are read, so that a train can be read again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock.connectors.contract import (
    Decoded,
    Input,
    Location,
    Position,
    Slice,
    Stays,
    Taken,
    Thinned,
    Waiting,
)
from penstock.connectors.line_blocks import thin_lines
from penstock.connectors.lines import decode_lines, json_row_reader
from penstock.connectors.paths import is_resource_shortage
from penstock.connectors.values import as_json
from penstock.model.boxes import Source
from penstock.model.formats.rows import GivenRow, Rows
from penstock.store.durable import make_directory, write_bytes
from penstock.store.file_names import numbered, numbers_in

_END = object()
_SUFFIX = "jsonl"


@dataclass(frozen=True)
class RowsPosition(Position):
    """The number of rows taken."""

    row: int = 0


@dataclass(frozen=True)
class SpoolFile(Slice):
    """Rows in a file of JSON lines; the first has the number `row`."""

    path: str
    row: int
    rows: int

    def read(self) -> bytes:
        return Path(self.path).read_bytes()

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        return self._decode(source, bytes(data), self.row)

    @staticmethod
    def _decode(source: Source, rows: bytes, first: int) -> Decoded:
        lines = rows.removesuffix(b"\n").split(b"\n")
        return decode_lines(source.schema, lines, first, json_row_reader(source.schema))

    def thinned(self, source: Source, data: bytes | memoryview, stays: Stays) -> Thinned:
        return thin_lines(bytes(data), self.row, stays, partial(self._decode, source))

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        del source, data
        return self.rows

    def location(self, seq: int) -> Location | None:
        # The spool is nobody's file: only the number of the row says something.
        return Location("", seq + 1) if self.row <= seq < self.row + self.rows else None

    def weight(self) -> int:
        return self.rows * 20


class RowsInput(Input[RowsPosition]):
    """Reads the iterable when rows are asked for.

    A spool file is named after the number of its last row. `patience`: seconds to wait for a slow iterable
    before a shorter train is sent.
    """

    patience = 0.2

    def __init__(self, source: Source, directory: Path) -> None:
        assert isinstance(source.format, Rows)
        self._name, self._rows, self._directory = source.name, source.format, directory
        make_directory(directory)
        self._iterator: Iterator[GivenRow] | None = None
        self._spooled = max(numbers_in(directory, _SUFFIX), default=0)
        self._lines: list[str] = []  # rows of the iterable that are in no file yet

    def take(self, position: RowsPosition | None, limit: int) -> Taken:
        start = (position or RowsPosition()).row
        end = self._end_of(start) if start < self._spooled else self._pull(limit)
        if end == start:
            return Taken((), RowsPosition(start), 0)
        path = numbered(self._directory, end, _SUFFIX)
        spooled = SpoolFile(str(path), start, end - start)
        return Taken(
            [spooled],
            RowsPosition(end),
            end - start,
            more=end < self._spooled,
            arrived=path.stat().st_mtime,
        )

    def waiting(self, position: RowsPosition | None) -> Waiting:
        """Rows that are in files. What the iterable still holds has not come yet."""
        return Waiting(max(0, self._spooled - (position or RowsPosition()).row))

    def _end_of(self, start: int) -> int:
        return min(end for end in numbers_in(self._directory, _SUFFIX) if end > start)

    def _pull(self, limit: int) -> int:
        """Read more from the iterable.

        After a restart it begins anew, so rows already in the spool are skipped.
        """
        if self._iterator is None:
            rows = self._rows.begin()
            for _ in range(self._spooled):
                self._next(rows)
            self._iterator = rows
        self._read(self._iterator, limit)
        if lines := self._lines[:limit]:
            end, text = self._spooled + len(lines), "\n".join(lines) + "\n"
            write_bytes(numbered(self._directory, end, _SUFFIX), text.encode(), sync=False)
            self._spooled, self._lines = end, self._lines[len(lines) :]
        return self._spooled

    def _read(self, rows: Iterator[GivenRow], limit: int) -> None:
        until = time.monotonic() + self.patience
        while len(self._lines) < limit and time.monotonic() < until:
            row = self._next(rows)
            if row is _END:
                break
            self._lines.append(json.dumps(row, default=as_json))

    def _next(self, rows: Iterator[GivenRow]) -> object:
        try:
            return next(rows, _END)
        except OSError as error:
            if not is_resource_shortage(error):
                raise
            # It must not be waited out: a generator that has raised looks as if it had ended.
            raise RuntimeError(f"the rows of source '{self._name}' failed: {error}") from error
