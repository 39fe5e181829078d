"""The past as memory-mapped columns: loaded once, offline; then every answer takes a few reads.

Meaning: docs/linear-road-semantics.md, "Daily", "Travel". Idea: TollHistory is dense (each vehicle has a row
for each day), so an expressway is its sorted vehicles and a grid vehicle x day. SegmentHistory becomes the
sums over the days of each day of week, in a grid of direction, segment, day of week and minute. A mean is a
sum over a count, so nothing is rounded. Grids have the narrowest type that holds them. Shifted copies share
one history: the manifest's `copies` tells which rows a request shares.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numba import njit

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.arrays import Int32s, Int64s, Ints
from penstock.linear_road.rows.inputs import MANIFEST, history_file
from penstock.store.durable import locked, make_directory, write_text

DAYS, WEEK, MINUTES, SEGMENTS = 69, 7, 1440, 100
TOLLS, SEGMENTS_FILE = "TollHistory", "SegmentHistory"
_TOLL_COLUMNS = ("VID", "Day", "XWay", "Tolls")
_SEGMENT_COLUMNS = ("Day", "Min", "XWay", "Dir", "Seg", "Lav", "Cnt", "Toll")
_NOTE = "columns.json"
_OURS = "_columns"
"""How the columns within a history of ours are called."""
_VERSION = 2
_BATCH_ROWS = 1 << 20
_SLOW, _CROWDED, _FREE_SPEED = 40, 50, 60.0
"""A toll is due below this speed with more cars than this; without history a road is free at this speed."""
_ROUNDING = 1e-9
"""Sums of fractions may come out a hair below the whole number that they are."""


class Offsets(TypedDict):
    """How many copies share a history, and what each adds to VID and XWay."""

    count: int
    vid: int
    xway: int


FileFacts = list[list[str | int]]
"""Path, size and time of change of each file of a table."""


class ColumnFacts(TypedDict):
    """What the columns were made from."""

    version: int
    copies: Offsets
    files: list[FileFacts | None]


ALONE: Offsets = {"count": 1, "vid": 0, "xway": 1}
Grid = npt.NDArray[np.integer]


def load_history(history: Path) -> Path:
    """Make the columns of a history and return their directory; existing columns are not made again.

    They go into `history` itself if it is one of ours (it has a manifest) and is writable. Other people's
    directories stay as they are, and the columns go to the user's cache. The directory is named after all
    that the columns were made from, so whoever has its path never finds those of another history there.
    """
    if not history.is_dir():
        raise InputError(
            f"history {history} is not a directory", expected="one with TollHistory and SegmentHistory files"
        )
    files = {name: history_file(history, name) for name in (TOLLS, SEGMENTS_FILE)}
    facts: ColumnFacts = {
        "version": _VERSION,
        "copies": _copies(history),
        "files": [_fact(file) for file in files.values()],
    }
    columns = _columns_folder(history, facts)
    if _note(columns) != facts:
        # Of several runs that load one history, one makes the columns and the others wait for them.
        with locked(columns.with_name(f".{columns.name}.lock")):
            if _note(columns) != facts:
                _make(columns, facts, files)
    return columns


def _make(columns: Path, facts: ColumnFacts, files: Mapping[str, Path | None]) -> None:
    # Make them aside, so that they appear whole. A killed run may have left some.
    aside = columns.with_name(f".{columns.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    make_directory(aside)
    _load_tolls(files[TOLLS], aside)
    _load_segments(files[SEGMENTS_FILE], aside)
    # The note comes last: columns without it are not whole.
    write_text(aside / _NOTE, json.dumps(facts))
    shutil.rmtree(columns, ignore_errors=True)
    aside.rename(columns)
    for outdated in columns.parent.glob(f"{_OURS}*"):
        if outdated != columns:
            # The note goes first: who still reads these columns must not take a missing file for no history.
            (outdated / _NOTE).unlink(missing_ok=True)
            shutil.rmtree(outdated, ignore_errors=True)


def _note(columns: Path) -> ColumnFacts | None:
    try:
        facts: ColumnFacts = json.loads((columns / _NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts


def _fact(file: Path | None) -> FileFacts | None:
    if file is None:
        return None
    parts = sorted(file.rglob("*.parquet")) if file.is_dir() else [file]
    return [[str(part.resolve()), part.stat().st_size, part.stat().st_mtime_ns] for part in parts]


def _columns_folder(history: Path, facts: ColumnFacts) -> Path:
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    if (history / MANIFEST).is_file() and os.access(history, os.W_OK):
        return history / f"{_OURS}-{name}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "penstock" / f"history-{name}"


def _copies(directory: Path) -> Offsets:
    file = directory / MANIFEST
    if not file.is_file():
        return ALONE
    try:
        given = json.loads(file.read_text(encoding="utf-8")).get("copies") or ALONE
        return {"count": int(given["count"]), "vid": int(given["vid"]), "xway": int(given["xway"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the manifest {file} of the history cannot be read: {error!r}") from error


def _batches(file: Path, columns: tuple[str, ...]) -> Iterator[list[Int32s]]:
    """The columns of a table, about a million rows at a time."""
    try:
        if file.suffix == ".csv" and not file.stat().st_size:
            return
        if file.suffix == ".csv":
            options = pacsv.ReadOptions(column_names=list(columns), block_size=16 << 20)
            types = pacsv.ConvertOptions(column_types={name: pa.int32() for name in columns})
            for batch in pacsv.open_csv(file, options, convert_options=types):
                yield [c.to_numpy(zero_copy_only=False) for c in batch.columns]
            return
        for part in sorted(file.rglob("*.parquet")) if file.is_dir() else [file]:
            for batch in pq.ParquetFile(part).iter_batches(_BATCH_ROWS, columns=list(columns)):
                yield [batch.column(name).to_numpy(zero_copy_only=False) for name in columns]
    except (pa.ArrowInvalid, pa.ArrowKeyError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"history {file} cannot be read with the columns {', '.join(columns)}: {reason}"
        ) from error


# -- tolls


def _load_tolls(file: Path | None, out: Path) -> None:
    # Two passes: a grid needs all vehicles of its expressway before the first toll goes in.
    vids: dict[int, list[Int32s]] = {}
    for vid, _, xway, _ in _batches(file, _TOLL_COLUMNS) if file else ():
        for road in np.unique(xway).tolist():
            vids.setdefault(road, []).append(np.unique(vid[xway == road]))
    known = {road: np.unique(np.concatenate(parts)) for road, parts in vids.items()}
    grids = {road: np.zeros((len(vid), DAYS), np.int32) for road, vid in known.items()}
    for vid, day, xway, tolls in _batches(file, _TOLL_COLUMNS) if file else ():
        good = (day >= 1) & (day <= DAYS)
        for road in np.unique(xway[good]).tolist():
            rows = good & (xway == road)
            # `grid[...] += tolls` would count a day only once if the history repeats it.
            np.add.at(grids[road], (np.searchsorted(known[road], vid[rows]), day[rows] - 1), tolls[rows])
    for road, grid in grids.items():
        np.save(out / f"vids-{road}.npy", known[road].astype(np.int32))
        np.save(out / f"tolls-{road}.npy", _narrow(grid))


def _narrow(grid: Int32s) -> Grid:
    """The same numbers in the narrowest type."""
    low, high = int(grid.min(initial=0)), int(grid.max(initial=0))
    for type_ in (np.uint8, np.uint16, np.int32):
        if np.iinfo(type_).min <= low and high <= np.iinfo(type_).max:
            return grid.astype(type_)
    return grid


# -- segments


def _load_segments(file: Path | None, out: Path) -> None:
    shape = (2, SEGMENTS, WEEK, MINUTES)
    grids: dict[int, tuple[Int32s, Int32s, npt.NDArray[np.uint8]]] = {}
    for day, minute, xway, way, seg, lav, cnt, _ in _batches(file, _SEGMENT_COLUMNS) if file else ():
        for road in np.unique(xway).tolist():
            if road not in grids:
                grids[road] = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.uint8)
            rows = np.flatnonzero(xway == road)
            _add(rows, (day, minute, way, seg, lav, cnt), grids[road])
    for road, (lavs, cnts, days) in grids.items():
        # Use one type for both sums, so that few variants of the kernel are compiled.
        largest = max(int(lavs.max(initial=0)), int(cnts.max(initial=0)))
        small = largest <= np.iinfo(np.uint16).max and min(lavs.min(), cnts.min()) >= 0
        for name, grid in (("lav", lavs), ("cnt", cnts)):
            np.save(out / f"{name}-{road}.npy", grid.astype(np.uint16) if small else grid)
        np.save(out / f"days-{road}.npy", days)


@njit(cache=True, nogil=True)
def _add(
    rows: Int64s,
    table: tuple[Int32s, Int32s, Int32s, Int32s, Int32s, Int32s],
    grids: tuple[Int32s, Int32s, npt.NDArray[np.uint8]],
) -> None:
    """Add rows of SegmentHistory to the sums of an expressway, and count the days of each sum."""
    day, minute, way, seg, lav, cnt = table
    lavs, cnts, days = grids
    for i in rows:
        # Rows of no segment or minute are left out: other people's history may hold anything.
        if 0 <= way[i] < 2 and 0 <= seg[i] < SEGMENTS and 1 <= minute[i] <= MINUTES:
            at = (way[i], seg[i], (day[i] - 1) % WEEK, minute[i] - 1)
            lavs[at] += lav[i]
            cnts[at] += cnt[i]
            days[at] += 1


# -- answers


@dataclass(frozen=True)
class Past:
    """The mapped columns of a history, if there is one; expressways are opened on demand."""

    columns: Path | None
    copies: Offsets
    _open: dict[tuple[str, int], Grid | None] = field(default_factory=dict)

    def _grid(self, name: str, road: int) -> Grid | None:
        if (name, road) not in self._open:
            self._open[name, road] = None if self.columns is None else _mapped(self.columns, name, road)
        return self._open[name, road]

    def home(self, vid: Ints, xway: Ints) -> tuple[Ints, Ints]:
        """The vehicle and expressway whose history a request of a shifted copy shares."""
        copy = xway // self.copies["xway"]
        # Beyond the last copy an expressway stands for itself, as in the validator.
        copy = np.where(copy < self.copies["count"], copy, 0).astype(np.int64)
        return vid - copy * self.copies["vid"], xway - copy * self.copies["xway"]

    def spent(self, vid: Ints, xway: Ints, day: Ints) -> Int64s:
        """What each vehicle has spent on an expressway on a day."""
        vid, xway = self.home(vid, xway)
        tolls = np.zeros(len(vid), np.int64)
        for road in np.unique(xway).tolist():
            known, grid = self._grid("vids", road), self._grid("tolls", road)
            if known is None or grid is None or not len(known):
                continue
            rows = np.flatnonzero(xway == road)
            # A vehicle above all known ones must not point behind the end; the comparison below refuses it.
            at = np.minimum(np.searchsorted(known, vid[rows]), len(known) - 1)
            tolls[rows] = np.where(known[at] == vid[rows], grid[at, day[rows] - 1], 0)
        return tolls

    def journeys(self, xway: Ints, sinit: Ints, send: Ints, dow: Ints, tod: Ints) -> tuple[Int64s, Int64s]:
        """(seconds, toll) of each journey."""
        _, xway = self.home(np.zeros(len(xway), np.int64), xway)
        seconds, toll = np.zeros(len(xway), np.int64), np.zeros(len(xway), np.int64)
        for road in np.unique(xway).tolist():
            rows = np.flatnonzero(xway == road)
            _journeys(self._means(road), rows, (sinit, send, dow, tod), seconds, toll)
        return seconds, toll

    def _means(self, road: int) -> tuple[Grid, Grid, Grid]:
        """Sums of velocities, sums of cars, and the days of each sum; empty if there is no history."""
        lavs, cnts, days = (self._grid(name, road) for name in ("lav", "cnt", "days"))
        return (
            _NO_GRID if lavs is None else np.asarray(lavs),
            _NO_GRID if cnts is None else np.asarray(cnts),
            _NO_DAYS if days is None else np.asarray(days),
        )


def _mapped(columns: Path, name: str, road: int) -> Grid | None:
    """A grid; None if the history knows nothing of this expressway."""
    try:
        grid: Grid = np.load(columns / f"{name}-{road}.npy", mmap_mode="r")
    except FileNotFoundError:
        # Columns that somebody removes lose their note first. No answer is better than a wrong one.
        if _note(columns) is None:
            raise InputError(
                f"the columns {columns} of a history were removed while they were in use", hint="start again"
            ) from None
        return None
    return grid


# Read-only, as mapped grids are: numba would compile the kernel again for writable arrays.
_NO_GRID = np.zeros((2, SEGMENTS, WEEK, 0), np.uint16)
_NO_GRID.setflags(write=False)
_NO_DAYS = _NO_GRID.astype(np.uint8)
_NO_DAYS.setflags(write=False)


@njit(cache=True, nogil=True)
def _journeys(
    grids: tuple[Grid, Grid, Grid],
    rows: Int64s,
    asked: tuple[Ints, Ints, Ints, Ints],
    seconds: Int64s,
    toll: Int64s,
) -> None:
    """Follow each journey segment by segment: `y` is the clock in minutes of the first day."""
    lavs, cnts, days = grids
    sinit, send, dow, tod = asked
    known = days.shape[3] > 0
    for i in rows:
        way = 0 if sinit[i] <= send[i] else 1
        y, cost = float(tod[i]), 0.0
        seg = sinit[i]
        while seg != send[i]:
            k = int(np.floor(y + _ROUNDING)) - 1
            # A journey that passes midnight continues on the next day of the week.
            week_day, minute = (dow[i] - 1 + k // MINUTES) % WEEK, k % MINUTES
            count = int(days[way, seg, week_day, minute]) if known else 0
            lav, cnt = _FREE_SPEED, 0.0
            if count > 0:
                lav, cnt = lavs[way, seg, week_day, minute] / count, cnts[way, seg, week_day, minute] / count
            y += 60 / max(lav, 1.0)
            if lav < _SLOW and cnt > _CROWDED:
                cost += 2 * (cnt - _CROWDED) ** 2
            seg += 1 - 2 * way
        seconds[i] = int(np.floor((y - tod[i]) * 60 + 0.5 + _ROUNDING))
        toll[i] = int(np.floor(cost + 0.5 + _ROUNDING))


@lru_cache(maxsize=4)
def open_past(columns: Path) -> Past:
    """The mapped columns, once for each worker."""
    facts = _note(columns)
    if facts is None:
        raise InputError(f"{columns} holds no columns of a history", expected="what `load_history` makes")
    return Past(columns, facts["copies"])


@dataclass(frozen=True)
class DailyExpenditure:
    """Answers requests of type 3: a batch with VID, XWay and Day in, `Bal` out."""

    columns: str | None
    """The directory that `load_history` returns; None: there is no history."""

    def __call__(self, batch: pa.RecordBatch) -> dict[str, Int64s]:
        vid, xway, day = (batch.column(name).to_numpy() for name in ("VID", "XWay", "Day"))
        if self.columns is None:
            return {"Bal": np.zeros(len(vid), np.int64)}
        return {"Bal": open_past(Path(self.columns)).spent(vid, xway, day)}


@dataclass(frozen=True)
class TravelTime:
    """Answers requests of type 4: XWay, Sinit, Send, DOW and TOD in, `TravelTime` and `Toll` out."""

    columns: str | None
    """The directory that `load_history` returns; None: there is no history."""

    def __call__(self, batch: pa.RecordBatch) -> dict[str, Int64s]:
        names = ("XWay", "Sinit", "Send", "DOW", "TOD")
        past = Past(None, ALONE) if self.columns is None else open_past(Path(self.columns))
        seconds, toll = past.journeys(*(batch.column(name).to_numpy() for name in names))
        return {"TravelTime": seconds, "Toll": toll}
