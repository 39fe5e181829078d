"""Where tuples come from and go to, as descriptions; the engines know how. Kafka will be one more of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from penstock.model.errors import ExpressionError, shown
from penstock.model.formats.file_options import spelled
from penstock.model.types import Schema, parse_schema
from penstock.model.user_functions import Function, function_of

LISTING = "_delivered.jsonl"
TIME_BITS, GROUP_BITS = 40, 28  # the place of a feed's tuple: time of its delivery, group, line


@dataclass(frozen=True)
class Files:
    """Files of one format, or a directory that grows: a source, or a sink that adds files. Options: Spark's names."""

    format: str  # csv, json, parquet
    path: str
    schema: Schema | None = None
    options: tuple[tuple[str, str], ...] = ()
    # sinks only: called in the writing task with the rows right before they become visible, gives the rows to write
    stamp: Function | None = None
    # sinks only: a task shows its file when it is written, not when the train is committed; a file that is there stays
    at_once: bool = False


@dataclass(frozen=True)
class Feed:
    """A directory whose writer keeps a list, `_delivered.jsonl`: each line tells of one delivery, and deliveries are never split.

    A line is `{"at": 75, "files": [["t75-g0.csv", 0, bytes, rows], ...]}`: the time in whole seconds, above that of the line
    before, and the files with their groups. All tuples of a key (`keys`) are always in files of one group, so that a
    group has a partition of its own and nothing is shuffled. `decode(chunk, at)` makes columns of a file's bytes in the
    task that needs them: it returns `(columns, lines, reasons)`, where row `lines[i]` (from 0) was refused for
    `reasons[i]`.
    """

    path: str
    schema: Schema
    decode: Function
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """A Python iterable of dicts or tuples (or a function that returns one). Read once, kept for replay."""

    rows: Iterable[Any] | Callable[[], Iterable[Any]]
    schema: Schema


@dataclass(frozen=True)
class Rate:
    """A made-up stream, `value` counting up from 0 at so many rows a second, for trials and benchmarks."""

    rows_per_second: int = 10
    schema: Schema = field(default=Schema.of([("timestamp", "TIMESTAMP"), ("value", "BIGINT")]))


@dataclass(frozen=True, eq=False)
class Memory:
    """Keeps what it gets in a list in this process: for tests and notebooks."""

    rows: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Callback:
    """Calls a Python function with each train's rows as an Arrow table; after a crash a train may come again."""

    function: Callable[[Any], None]


@dataclass(frozen=True)
class Console:
    """Prints tuples as they come, at most `limit` of a train."""

    limit: int = 20


SourceFormat = Files | Rows | Rate | Feed
Sink = Files | Memory | Callback | Console


def _whole(what: str, given: int, least: int = 1) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ExpressionError(f"{what}: no such number", found=shown(given), expected=f"a whole number, {least} or more")  # fmt: skip
    return given


def _files(format_: str, path: str, schema: str | Schema | None, options: Mapping[str, Any]) -> Files:
    if not isinstance(path, str | PathLike):
        raise ExpressionError("no path", found=shown(path), expected="a text", hint=f"{format_}('in/')")
    parsed = None if schema is None else parse_schema(schema)
    return Files(format_, str(path), parsed, spelled(format_, options.items()))


def csv(path: str, schema: str | Schema | None = None, **options: Any) -> Files:
    """CSV files: `header`, `sep`; sources also `quote`, `comment`, `nullValue`, `timestampFormat`, as in Spark."""
    return _files("csv", path, schema, options)


def feed(
    path: str, schema: str | Schema, *, decode: Callable[..., Any] | str, keys: str | Iterable[str] = ()
) -> Feed:
    """A directory with a list of deliveries, partitioned by its writer, decoded by a function: see `Feed`."""
    parsed = parse_schema(schema)
    chosen = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in chosen:
        parsed.type_of(key)
    return Feed(str(path), parsed, function_of(decode), chosen)


def place_of(offset: int) -> tuple[int, int, int]:
    """(time of the delivery, group, line from 0) of a dead letter's offset.

    >>> place_of((7 << 40) + (2 << 28) + 5)
    (7, 2, 5)
    """
    group, line = divmod(offset & ((1 << TIME_BITS) - 1), 1 << GROUP_BITS)
    return offset >> TIME_BITS, group, line


def stamped(files: Files, stamp: Callable[..., Any] | str) -> Files:
    """The same sink, written at once: each task calls `stamp(rows)` and shows what it gives right away.

    Rows are seen before their train is committed. After a crash the train runs again, and a file that is complete
    is kept as it is: so the network must give the same rows again, only what `stamp` sets may differ.
    """
    return replace(files, stamp=function_of(stamp), at_once=True)


def json(path: str, schema: str | Schema | None = None, **options: Any) -> Files:
    """JSON lines; sources: `timestampFormat` as in Spark."""
    return _files("json", path, schema, options)


def parquet(path: str, schema: str | Schema | None = None, **options: Any) -> Files:
    """Parquet files; sinks: `compression`."""
    return _files("parquet", path, schema, options)


def rows(data: Iterable[Any] | Callable[[], Iterable[Any]], schema: str | Schema) -> Rows:
    """A Python iterable as a source."""
    if not callable(data) and (isinstance(data, str) or not isinstance(data, Iterable)):
        raise ExpressionError("no rows", found=shown(data), expected="an iterable of dicts or tuples, or a function that returns one")  # fmt: skip
    return Rows(data, parse_schema(schema))


def rate(rows_per_second: int = 10) -> Rate:
    """A made-up stream (timestamp, value)."""
    return Rate(_whole("rows a second", rows_per_second))


def memory() -> Memory:
    """A list in this process."""
    return Memory()


def callback(function: Callable[[Any], None]) -> Callback:
    """A function that is called with each train's rows."""
    if not callable(function):
        raise ExpressionError("no function", found=shown(function), expected="a function of one Arrow table")
    return Callback(function)


def console(limit: int = 20) -> Console:
    """The terminal."""
    return Console(_whole("the limit", limit, least=0))
