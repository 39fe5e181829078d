"""What an input has to offer: cutting files, iterables and rates into slices of so many tuples (A76).

The conductor asks each input for at most so many tuples beyond a position; the answer goes into the ticket. A slice
names bytes, rows or numbers that never change, so the train can be read again. `_seq` of a tuple is its file's place in
order of discovery and its line or row in the file, however the stream is cut into trains.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engine.contract.ticket import Position, Slice
from penstock.engine.spark.entry.file_log import FileLog
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.formats.feed import Feed
from penstock.model.formats.files import Files, Parquet
from penstock.model.formats.rate import Rate
from penstock.model.formats.rows import Rows
from penstock.model.types import Schema, arrow_schema
from penstock.store.file_names import numbered, numbers_in

SEQ_BITS = 40  # a file may have 2**40 lines
_BLOCK = 4 << 20
_END = object()
MAX_SLICE_BYTES = 4 << 20  # small enough that a large train is read by all cores
_PATIENCE = 0.2  # seconds to wait for a slow iterable before a shorter train is sent


@dataclass(frozen=True)
class Taken:
    """What an input gives to a train; `newest`: its largest `_ts` if that is known without reading.

    `arrived`: when the oldest of its tuples came to the network (wall time in seconds), if that is known.
    """

    slices: list[Slice]
    position: Position
    rows: int
    newest: int | None = None
    refused: list[dict[str, Any]] = field(default_factory=list)
    more: bool = False
    arrived: float | None = None


class Input(Protocol):
    """One input of a sub-network, seen from the driver."""

    def take(self, position: Position, limit: int) -> Taken:
        """Up to `limit` tuples beyond the position ({}: the beginning)."""


def input_for(source: Source, place: Path) -> Input:
    """The input of a source; `place` is where it keeps what it must remember."""
    match source.format:
        case Parquet():
            return ParquetFiles(FileLog(source.format.path, place), source)
        case Files():
            return TextFiles(source.format, FileLog(source.format.path, place))
        case Feed():
            from penstock.engine.spark.entry.feeds import FeedInput

            return FeedInput(source.format)
        case Rows():
            return Spool(source.format, source.schema, place)
        case Rate():
            return RateInput(source.format)
    raise TypeError(f"no input for {source.format}")


class TextFiles:
    """CSV and JSON lines: slices are byte ranges that end at line ends."""

    def __init__(self, files: Files, log: FileLog) -> None:
        self._log = log
        options = dict(files.options)
        self._header = files.name == "csv" and options.get("header", "false") == "true"
        self._comment = options.get("comment", "").encode() if files.name == "csv" else b""

    def take(self, position: Position, limit: int) -> Taken:
        ordinal, byte, line = position.get("file", 0), position.get("byte", 0), position.get("line", 0)
        slices: list[Slice] = []
        left = limit
        if ordinal >= len(self._log.known):
            self._log.discover()
        while left > 0 and ordinal < len(self._log.known):
            name, size = self._log.known[ordinal]
            head = self._head(Path(name)) if self._header and byte == 0 else 0
            end, lines = cut_lines(Path(name), byte, size, max(left, head))
            if end > byte:
                slices.append(
                    {
                        "kind": "bytes",
                        "path": name,
                        "file": ordinal,
                        "start": byte,
                        "end": end,
                        "line": line,
                        "header": head,
                    }
                )
                left -= lines
            byte, line = end, line + lines
            if byte >= size:
                ordinal, byte, line = ordinal + 1, 0, 0
        more = ordinal < len(self._log.known)
        position = {"file": ordinal, "byte": byte, "line": line}
        return Taken(slices, position, limit - left, more=more, arrived=self._log.arrived(slices))

    def _head(self, path: Path) -> int:
        """How many lines the header takes, with the comments in front of it."""
        if not self._comment:
            return 1
        with path.open("rb") as file:
            comments = takewhile(lambda line: line.startswith(self._comment), file)
            return sum(1 for _ in comments) + 1


def cut_lines(path: Path, start: int, size: int, limit: int) -> tuple[int, int]:
    """Where the byte range of at most `limit` lines from `start` ends, and how many lines it has."""
    at, lines = start, 0
    with path.open("rb") as file:
        file.seek(start)
        while at < size and at - start < MAX_SLICE_BYTES:
            block = file.read(min(_BLOCK, size - at))
            if not block:
                break
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            if lines + len(ends) >= limit:
                return at + int(ends[limit - lines - 1]) + 1, limit
            lines, at = lines + len(ends), at + len(block)
            last = int(ends[-1]) + 1 if len(ends) else 0
    if at >= size:
        # the last line may lack its end
        return size, lines + (0 if _ends_with_newline(path, size) else 1)
    # stop at the last line end seen; a single line longer than a slice is taken whole by the next block
    return (at - len(block) + last, lines) if lines else _one_long_line(path, start, size)


def _ends_with_newline(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, size - 1))
        return size == 0 or file.read(1) == b"\n"


def _one_long_line(path: Path, start: int, size: int) -> tuple[int, int]:
    with path.open("rb") as file:
        file.seek(start)
        return min(size, start + len(file.readline())), 1


class ParquetFiles:
    """Parquet: whole files where they fit into the train (read natively), else runs of row groups (read packed)."""

    def __init__(self, log: FileLog, source: Source) -> None:
        self._log, self._source = log, source

    def take(self, position: Position, limit: int) -> Taken:
        ordinal, group, row = position.get("file", 0), position.get("group", 0), position.get("row", 0)
        slices: list[Slice] = []
        refused: list[dict[str, Any]] = []
        left, newest = limit, None
        if ordinal >= len(self._log.known):
            self._log.discover()
        while left > 0 and ordinal < len(self._log.known):
            name, _ = self._log.known[ordinal]
            try:
                meta = _footer(name, self._source.schema)
            except PenstockError as error:
                refused.append({"raw": name, "reason": str(error), "offset": ordinal << SEQ_BITS})
                ordinal, group, row = ordinal + 1, 0, 0
                continue
            rows = meta.num_rows - row
            if (
                group == 0
                and rows <= left
                and not any(s["kind"] == "groups" or _same_name(s["path"], name) for s in slices)
            ):
                extent = _extent(meta, self._source.timestamp)
                slices.append({"kind": "file", "path": name, "file": ordinal, "rows": rows, **extent})
                left -= rows
                ordinal, group, row = ordinal + 1, 0, 0
                continue
            if slices and (group or rows <= limit or slices[-1]["kind"] == "file"):
                break  # it fits whole into the next train, or must not be mixed with whole files
            last, count = _groups_within(meta, group, left)
            slices.append(
                {
                    "kind": "groups",
                    "path": name,
                    "file": ordinal,
                    "first": group,
                    "last": last,
                    "row": row,
                    "rows": count,
                }
            )
            left -= count
            group, row = last, row + count
            if group >= meta.num_row_groups:
                ordinal, group, row = ordinal + 1, 0, 0
        position = {"file": ordinal, "group": group, "row": row}
        return Taken(
            slices,
            position,
            sum(s["rows"] for s in slices),
            newest,
            refused,
            more=ordinal < len(self._log.known),
            arrived=self._log.arrived(slices),
        )


def _footer(name: str, schema: Schema) -> Any:
    try:
        with pq.ParquetFile(name) as file:
            found, meta = file.schema_arrow, file.metadata
    except (pa.ArrowInvalid, OSError) as error:
        raise PenstockError(f"not a readable Parquet file: {str(error).splitlines()[0]}") from None
    missing = [c.name for c in schema if c.name not in found.names]
    if missing:
        raise PenstockError(f"the file lacks the column '{missing[0]}'; it has: {', '.join(found.names)}")
    for field_ in arrow_schema(schema, hidden=False):
        have = found.field(field_.name).type
        if have != field_.type and not _reads_as(have, field_.type):
            raise PenstockError(f"column '{field_.name}' is {have}, expected {field_.type}")
    return meta


def _extent(meta: Any, column: str | None) -> dict[str, int | None]:
    """The smallest and largest time in a file, in microseconds, and how many rows have none; `nulls` None: its footer does not tell."""
    least, latest, nulls = [], [], 0
    for i in range(meta.num_row_groups if column else 0):
        group = meta.row_group(i)
        chunks = [
            group.column(j) for j in range(group.num_columns) if group.column(j).path_in_schema == column
        ]
        stats = chunks[0].statistics if chunks else None
        if stats is None or stats.null_count is None:
            return {"least": None, "latest": None, "nulls": None}
        nulls += stats.null_count
        if stats.null_count == group.num_rows:
            continue
        if not stats.has_min_max:
            return {"least": None, "latest": None, "nulls": None}
        least.append(_micros(stats.min))
        latest.append(_micros(stats.max))
    return {"least": min(least, default=None), "latest": max(latest, default=None), "nulls": nulls}


def _micros(time: Any) -> int:
    if not isinstance(time, datetime):
        return int(time)
    in_utc = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (in_utc - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _same_name(one: str, other: str) -> bool:
    return one.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]


def _reads_as(have: Any, want: Any) -> bool:
    """What Spark's reader takes for a column without loss."""
    widths = {pa.int8(): 1, pa.int16(): 2, pa.int32(): 3, pa.int64(): 4}
    if have in widths and want in widths:
        return widths[have] <= widths[want]
    return bool(pa.types.is_timestamp(have) and pa.types.is_timestamp(want))


def _groups_within(meta: Any, first: int, limit: int) -> tuple[int, int]:
    """Row groups from `first` that hold at most `limit` rows, but one at least."""
    group, count = first, 0
    while group < meta.num_row_groups:
        rows = meta.row_group(group).num_rows
        if count and count + rows > limit:
            break
        group, count = group + 1, count + rows
    return group, count


class Spool:
    """A Python iterable, kept on disk as it is read so that a train can be read again."""

    def __init__(self, rows: Rows, schema: Schema, place: Path) -> None:
        self._place, self._schema = place, schema
        place.mkdir(parents=True, exist_ok=True)
        self._rows = rows
        self._iterator: Iterator[Any] | None = None
        self._spooled = max(numbers_in(place, "jsonl"), default=0)

    def take(self, position: Position, limit: int) -> Taken:
        start = position.get("row", 0)
        end = self._end_of(start) if start < self._spooled else self._pull(limit)
        if end == start:
            return Taken([], position or {"row": start}, 0)
        path = numbered(self._place, end, "jsonl")
        slice_ = {"kind": "spool", "path": str(path), "row": start, "rows": end - start}
        arrived = path.stat().st_mtime
        return Taken([slice_], {"row": end}, end - start, more=end < self._spooled, arrived=arrived)

    def _end_of(self, start: int) -> int:
        return min(end for end in numbers_in(self._place, "jsonl") if end > start)

    def _pull(self, limit: int) -> int:
        """Read on in the iterable; after a restart it begins anew, so what is spooled already is passed over."""
        if self._iterator is None:
            data = self._rows.rows() if callable(self._rows.rows) else self._rows.rows
            self._iterator = iter(data)
            for _ in range(self._spooled):
                next(self._iterator, None)
        lines: list[str] = []
        until = time.monotonic() + _PATIENCE
        while len(lines) < limit and time.monotonic() < until:
            row = next(self._iterator, _END)
            if row is _END:
                break
            lines.append(json.dumps(row, default=as_json))
        if lines:
            self._spooled += len(lines)
            final = numbered(self._place, self._spooled, "jsonl")
            aside = final.with_name("." + final.name)
            aside.write_text("\n".join(lines) + "\n")
            aside.rename(final)
        return self._spooled


def as_json(value: Any) -> Any:
    """Bytes as base64; times as ISO text; what else there may be (Row, dataclass) as its text, to be refused later."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


class RateInput:
    """Counts up at so many rows a second since the first train."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate.rows_per_second

    def take(self, position: Position, limit: int) -> Taken:
        start, first = position.get("start", int(time.time() * 1e6)), position.get("row", 0)
        ready = int((time.time() * 1e6 - start) * self._rate / 1e6)
        count = max(0, min(limit, ready - first))
        slices = (
            [{"kind": "rate", "row": first, "rows": count, "start": start, "rate": self._rate}]
            if count
            else []
        )
        newest = start + (first + count - 1) * 1_000_000 // self._rate if count else None
        due = start / 1e6 + (first + 1) / self._rate
        return Taken(slices, {"start": start, "row": first + count}, count, newest, arrived=due)
