"""`penstock lr history`: TollHistory and SegmentHistory for the vehicles and expressways of an input.

Idea: each expressway is an independent piece of work with its own random seed. So pieces run in parallel, and
the bytes depend on the seed alone. Each finished piece is a part file, and an interrupted run keeps its
parts. At the end the parts become the two files, and the manifest, written last, says that they are complete.
Expressways that are shifted copies of these need no rows of their own: the manifest gives the offsets. Arasu
et al., "Linear Road", VLDB 2004, section 3.1.3 (historical data).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Int32s
from penstock.linear_road.rows.copies import Span, stated_span
from penstock.linear_road.rows.csv_rows import DIR_FIELD, TYPE_FIELD, XWAY_FIELD
from penstock.linear_road.rows.fields import POSITION_REPORT, SEGMENTS
from penstock.linear_road.rows.inputs import MANIFEST, Format, Input, open_input
from penstock.linear_road.rows.partial_work import end_with_parent
from penstock.linear_road.rows.progress import Progress, silent
from penstock.linear_road.rows.read_blocks import seconds_of, size_of
from penstock.linear_road.traffic.segment_history import MINUTES, day_of_traffic, tolls
from penstock.linear_road.traffic.toll_history import Stretches, nowhere, spent, stretches
from penstock.process.cores import usable_cores
from penstock.store.durable import make_directory, whole_file, write_text

VERSION = 1
KIND = "linear-road-history"
MOST_DAYS = 69
TOLL_COLUMNS = ("VID", "Day", "XWay", "Tolls")
SEGMENT_COLUMNS = ("Day", "Min", "XWay", "Dir", "Seg", "Lav", "Cnt", "Toll")
TABLES: dict[str, tuple[str, ...]] = {"TollHistory": TOLL_COLUMNS, "SegmentHistory": SEGMENT_COLUMNS}
_PARTS = ".parts"
_VEHICLES_A_BLOCK = 20_000
"""Vehicles whose toll rows are written at once, to bound memory."""
Write = Callable[[Int32s], object]


class HistoryConfig(TypedDict):
    """What determines the bytes of a history."""

    kind: str
    version: int
    seed: int
    days: int
    format: str
    input: str
    input_files: list[list[str | int]]


class SharedCopies(TypedDict):
    """How shifted copies of an input share one history."""

    count: int
    vid: NotRequired[int]
    xway: NotRequired[int]
    shared: NotRequired[str]


class HistoryFacts(TypedDict):
    """What a finished history holds: figures by file name."""

    files: list[str]
    columns: dict[str, list[str]]
    rows: dict[str, int]
    bytes: dict[str, int]
    hash: dict[str, str]
    xways: list[int]
    expressways: float
    vehicles: int
    skipped_rows: int
    copies: SharedCopies | None


class HistoryManifest(HistoryConfig, HistoryFacts):
    """The manifest of a history."""


@dataclass(frozen=True)
class HistoryPlan:
    """What to make: the options of `penstock lr history`."""

    source: Path
    out: Path
    days: int = MOST_DAYS
    format: str = "parquet"
    seed: int = 1
    copies: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.days <= MOST_DAYS:
            raise InputError(f"--days {self.days} is out of range", expected=f"1..{MOST_DAYS}")
        if self.format not in {"csv", "parquet"}:
            raise InputError(f"--format {self.format} is not known", expected="csv or parquet")
        if self.seed < 0:
            raise InputError(f"--seed {self.seed} is below 0", expected="a whole number from 0 on")
        if self.copies < 1:
            raise InputError(f"--copies {self.copies} is too few", expected="1 or more")


@dataclass(frozen=True)
class Fleet:
    """What the input tells: vehicles and their stretches by expressway, directions, spans for copies."""

    vehicles: dict[int, Stretches]
    directions: dict[int, tuple[int, ...]]
    span: Span
    skipped: int


@dataclass(frozen=True)
class _Piece:
    """The history of one expressway, to be written as two part files."""

    xway: int
    vehicles: Stretches
    directions: tuple[int, ...]
    days: int
    seed: int
    format: str
    parts: Path

    def part(self, table: str) -> Path:
        return self.parts / f"{table}-x{self.xway:05d}.{self.format}"


def history(
    plan: HistoryPlan, *, workers: int | None = None, reading: Progress = silent, writing: Progress = silent
) -> HistoryManifest:
    """Write the history of an input and return its manifest.

    What an earlier, interrupted run finished is kept.
    """
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers} is too few", expected="1 or more")
    if plan.out.exists() and not plan.out.is_dir():
        raise InputError(f"--out {plan.out} is a file", expected="a directory to write to")
    source = open_input(plan.source)
    config = _config(plan, source)
    done = _finished(plan, config)
    if done is not None:
        return done
    fleet = read_fleet(source, reading)
    parts = _open_parts(plan.out, config)
    pieces = [
        _Piece(xway, vehicles, fleet.directions[xway], plan.days, plan.seed, plan.format, parts)
        for xway, vehicles in fleet.vehicles.items()
    ]
    _write_pieces(pieces, workers or usable_cores(), writing)
    for table in TABLES:
        _join(plan.out / f"{table}.{plan.format}", [piece.part(table) for piece in pieces])
    manifest: HistoryManifest = {**config, **_facts(plan, fleet)}
    write_text(plan.out / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    shutil.rmtree(parts)
    return manifest


def read_fleet(source: Input, progress: Progress = silent) -> Fleet:
    """Find the vehicles and expressways of an input; rows that break the format are skipped and counted."""
    roads: set[int] = set()
    skipped = 0
    largest = np.full(csv_rows.FIELDS, -1, np.int64)

    def blocks() -> Iterator[Int32s]:
        nonlocal skipped, largest
        total = size_of(source)
        for rows in seconds_of(source):
            values = rows.accepted()
            skipped += len(rows) - len(values)
            reports = values[values[:, TYPE_FIELD] == POSITION_REPORT].astype(np.int64)
            roads.update(np.unique(reports[:, XWAY_FIELD] * 2 + reports[:, DIR_FIELD]).tolist())
            largest = np.maximum(largest, values.max(axis=0, initial=-1))
            progress(rows.following, total)
            yield values

    # One pass serves all: `stretches` pulls the blocks, and the other figures are taken on the way.
    vehicles = stretches(blocks())
    if not vehicles:
        raise InputError(f"input {source.path} has no position report that keeps to the format")
    directions = {xway: tuple(d for d in (0, 1) if xway * 2 + d in roads) for xway in vehicles}
    vids, qids = int(largest[csv_rows.VID_FIELD]) + 1, int(largest[csv_rows.QID_FIELD]) + 1
    span = stated_span(source) or Span(vids, qids, max(vehicles) + 1, len(roads) / 2)
    return Fleet(vehicles, directions, span, skipped)


def _config(plan: HistoryPlan, source: Input) -> HistoryConfig:
    """What determines the bytes; two runs that agree in it may share parts."""
    return {
        "kind": KIND,
        "version": VERSION,
        "seed": plan.seed,
        "days": plan.days,
        "format": plan.format,
        "input": str(source.path.resolve()),
        "input_files": [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in source.files],
    }


def _finished(plan: HistoryPlan, config: HistoryConfig) -> HistoryManifest | None:
    file = plan.out / MANIFEST
    if not file.is_file():
        return None
    try:
        manifest: HistoryManifest | None = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        manifest = None
    whole = all((plan.out / f"{table}.{plan.format}").is_file() for table in TABLES)
    # Copies are compared apart: they change only the manifest, not the bytes that parts depend on.
    same = manifest is not None and {key: manifest.get(key) for key in config} == config
    if (
        manifest is not None
        and same
        and whole
        and (manifest["copies"] or {"count": 1})["count"] == plan.copies
    ):
        return manifest
    raise InputError(
        f"{plan.out} already holds something else (see its {MANIFEST})", hint="choose another --out"
    )


def _open_parts(out: Path, config: HistoryConfig) -> Path:
    """The directory of part files; parts of other settings are deleted."""
    parts = out / _PARTS
    note = parts / "config.json"
    if parts.exists() and not (note.is_file() and json.loads(note.read_text(encoding="utf-8")) == config):
        shutil.rmtree(parts)
    make_directory(parts)
    write_text(note, json.dumps(config))
    return parts


def _write_pieces(pieces: list[_Piece], workers: int, progress: Progress) -> None:
    todo = [piece for piece in pieces if not all(piece.part(table).is_file() for table in TABLES)]
    done, total = len(pieces) - len(todo), len(pieces)
    if len(todo) <= 1 or workers == 1:
        for number, piece in enumerate(todo):
            write_piece(piece, partial(_within, progress, done + number, total))
        return
    # Spawn instead of forking: Arrow's threads do not survive a fork.
    count, spawn = min(workers, len(todo)), get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=spawn, initializer=end_with_parent) as pool:
        futures: list[Future[None]] = [pool.submit(write_piece, piece) for piece in todo]
        for number, future in enumerate(as_completed(futures)):
            future.result()
            progress(done + number + 1, total)


def _within(progress: Progress, piece: int, pieces: int, day: int, days: int) -> None:
    progress(piece * days + day, pieces * days)


def write_piece(piece: _Piece, progress: Progress = silent) -> None:
    """Write both tables of one expressway, day by day."""
    # Segments first: what a vehicle pays on a day follows from that day's segments.
    paid = np.zeros((len(piece.vehicles.vid), piece.days), np.int32)
    with _table(piece, "SegmentHistory") as write:
        for day in range(1, piece.days + 1):
            lav, cnt, toll = _day(piece, day)
            write(_segment_rows(piece, day, lav, cnt, toll))
            paid[:, day - 1] = spent(piece.seed, piece.xway, piece.vehicles, day, lav, toll)
            progress(day, piece.days)
    with _table(piece, "TollHistory") as write:
        for begin in range(0, len(paid), _VEHICLES_A_BLOCK):
            write(_toll_rows(piece, begin, paid[begin : begin + _VEHICLES_A_BLOCK]))


def _day(piece: _Piece, day: int) -> tuple[Int32s, Int32s, Int32s]:
    """(lav, cnt, toll) by direction, minute and segment."""
    lav, toll = (np.stack([part, part]) for part in nowhere())
    cnt = np.zeros_like(lav)
    for direction in piece.directions:
        lav[direction], cnt[direction] = day_of_traffic(piece.seed, piece.xway, direction, day)
        toll[direction] = tolls(lav[direction], cnt[direction])
    return lav, cnt, toll


def _segment_rows(piece: _Piece, day: int, lav: Int32s, cnt: Int32s, toll: Int32s) -> Int32s:
    """The rows of a day in order of minute, direction and segment."""
    there = list(piece.directions)
    minute, direction, segment = np.meshgrid(
        np.arange(1, MINUTES + 1, dtype=np.int32),
        np.array(there, np.int32),
        np.arange(SEGMENTS, dtype=np.int32),
        indexing="ij",
    )
    same = np.full(minute.size, 0, np.int32)
    # Figures have the direction first, rows go by minute first.
    numbers = (np.moveaxis(figure[there], 0, 1).reshape(-1) for figure in (lav, cnt, toll))
    columns = [
        same + day,
        minute.reshape(-1),
        same + piece.xway,
        direction.reshape(-1),
        segment.reshape(-1),
        *numbers,
    ]
    return np.stack(columns)


def _toll_rows(piece: _Piece, begin: int, paid: Int32s) -> Int32s:
    vehicles, days = paid.shape
    vid = np.repeat(piece.vehicles.vid[begin : begin + vehicles], days)
    day = np.tile(np.arange(1, days + 1, dtype=np.int32), vehicles)
    return np.stack([vid, day, np.full(len(vid), piece.xway, np.int32), paid.reshape(-1)])


def _table(piece: _Piece, name: str) -> AbstractContextManager[Write]:
    if piece.format == "parquet":
        return _parquet_writer(piece.part(name), TABLES[name])
    return _csv_writer(piece.part(name))


def _schema(columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([(name, pa.int32()) for name in columns])


@contextmanager
def _parquet_writer(file: Path, columns: tuple[str, ...]) -> Iterator[Write]:
    schema = _schema(columns)
    with whole_file(file) as path, pq.ParquetWriter(path, schema, compression="zstd") as writer:
        yield lambda rows: writer.write_table(
            pa.Table.from_arrays([pa.array(column) for column in rows], schema=schema)
        )


@contextmanager
def _csv_writer(file: Path) -> Iterator[Write]:
    """Rows without a header."""
    with whole_file(file) as path, path.open("wb") as stream:
        yield lambda rows: stream.write(csv_rows.render(rows.T)[0].data)


def _join(final: Path, parts: list[Path]) -> None:
    """Join the parts into one file.

    A single part just gets its name (a hard link, so that a later step may still resume).
    """
    if len(parts) == 1:
        with whole_file(final) as path:
            path.unlink()  # it was created with its mode, and the link needs the name
            os.link(parts[0], path)
    elif final.suffix == ".csv":
        _join_csv(final, parts)
    else:
        _join_parquet(final, parts)


def _join_csv(final: Path, parts: list[Path]) -> None:
    with whole_file(final) as path, path.open("wb") as out:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, out, 1 << 22)


def _join_parquet(final: Path, parts: list[Path]) -> None:
    schema = pq.read_schema(parts[0])
    with whole_file(final) as path, pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in parts:
            source = pq.ParquetFile(part)
            for group in range(source.num_row_groups):
                writer.write_table(source.read_row_group(group))


def _facts(plan: HistoryPlan, fleet: Fleet) -> HistoryFacts:
    """The result: counts, sizes, hashes, and which copies share it."""
    names = {table: f"{table}.{plan.format}" for table in TABLES}
    pairs = sum(len(driven.vid) for driven in fleet.vehicles.values())
    roads = sum(map(len, fleet.directions.values()))
    rows = {"TollHistory": pairs * plan.days, "SegmentHistory": roads * SEGMENTS * MINUTES * plan.days}
    return {
        "files": list(names.values()),
        "columns": {names[table]: list(columns) for table, columns in TABLES.items()},
        "rows": {names[table]: count for table, count in rows.items()},
        "bytes": {name: (plan.out / name).stat().st_size for name in names.values()},
        "hash": {name: _hash(plan.out / name) for name in names.values()},
        "xways": sorted(fleet.vehicles),
        "expressways": roads / 2,
        "vehicles": pairs,
        "skipped_rows": fleet.skipped,
        "copies": _shared(plan.copies, fleet.span),
    }


def _shared(copies: int, span: Span) -> SharedCopies | None:
    """How shifted copies find their history: by reference to the rows of copy 0."""
    if copies == 1:
        return None
    return {
        "count": copies,
        "vid": span.vids,
        "xway": span.xways,
        "shared": "by reference: copy k of 0..count-1 has the rows of the files "
        "with k * vid added to VID and k * xway added to XWay",
    }


def _hash(file: Path) -> str:
    digest = xxhash.xxh64()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 22):
            digest.update(chunk)
    return f"xxh64:{digest.hexdigest()}"


__all__ = [
    "KIND",
    "SEGMENT_COLUMNS",
    "TABLES",
    "TOLL_COLUMNS",
    "Fleet",
    "Format",
    "HistoryPlan",
    "history",
    "read_fleet",
]
