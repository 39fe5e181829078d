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
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numba import njit

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import MANIFEST
from penstock.store.durable import write_text

DAYS, WEEK, MINUTES, SEGMENTS = 69, 7, 1440, 100
TOLLS, SEGMENTS_FILE = "TollHistory", "SegmentHistory"
_TOLL_COLUMNS = ("VID", "Day", "XWay", "Tolls")
_SEGMENT_COLUMNS = ("Day", "Min", "XWay", "Dir", "Seg", "Lav", "Cnt", "Toll")
_NOTE = "columns.json"
_VERSION = 2
Array = np.ndarray[Any, np.dtype[Any]]


def load_history(history: Path, out: Path | None = None) -> Path:
    """Make the columns of a history and return their directory; existing columns are not made again.

    They go into `history` itself if it is one of ours (it has a manifest) and is writable. Other people's
    directories stay as they are, and the columns go to the user's cache. `out` names another place.
    """
    if not history.is_dir():
        raise InputError(f"History {history} is not a directory with TollHistory and SegmentHistory files.")
    files = {name: _file(history, name) for name in (TOLLS, SEGMENTS_FILE)}
    facts = {
        "version": _VERSION,
        "copies": _copies(history),
        "files": [_fact(file) for file in files.values()],
    }
    place = out or _place(history, facts)
    if _note(place) == facts:
        return place
    aside = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    _load_tolls(files[TOLLS], aside)
    _load_segments(files[SEGMENTS_FILE], aside)
    write_text(aside / _NOTE, json.dumps(facts))
    shutil.rmtree(place, ignore_errors=True)
    aside.rename(place)
    return place


def _note(place: Path) -> Any:
    try:
        return json.loads((place / _NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _fact(file: Path | None) -> Any:
    if file is None:
        return None
    parts = sorted(file.rglob("*.parquet")) if file.is_dir() else [file]
    return [[str(part.resolve()), part.stat().st_size, part.stat().st_mtime_ns] for part in parts]


def _place(history: Path, facts: Any) -> Path:
    if (history / MANIFEST).is_file() and os.access(history, os.W_OK):
        return history / "_columns"
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "penstock" / f"history-{name}"


def _file(directory: Path, name: str) -> Path | None:
    files = [file for suffix in (".parquet", ".csv") if (file := directory / f"{name}{suffix}").exists()]
    if len(files) > 1:
        raise InputError(f"History {directory} holds both {files[0].name} and {files[1].name}; expected one.")
    return files[0] if files else None


def _copies(directory: Path) -> dict[str, int]:
    alone = {"count": 1, "vid": 0, "xway": 1}
    file = directory / MANIFEST
    if not file.is_file():
        return alone
    try:
        given = json.loads(file.read_text(encoding="utf-8")).get("copies") or alone
        return {name: int(given[name]) for name in alone}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"The manifest {file} of the history cannot be read: {error!r}.") from error


def _batches(file: Path, columns: tuple[str, ...]) -> Iterator[list[Array]]:
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
            for batch in pq.ParquetFile(part).iter_batches(1 << 20, columns=list(columns)):
                yield [batch.column(name).to_numpy(zero_copy_only=False) for name in columns]
    except (pa.ArrowInvalid, pa.ArrowKeyError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"History {file} cannot be read with the columns {', '.join(columns)}: {reason}"
        ) from error


# -- tolls


def _load_tolls(file: Path | None, out: Path) -> None:
    vids: dict[int, list[Array]] = {}
    for vid, _, xway, _ in _batches(file, _TOLL_COLUMNS) if file else ():
        for road in np.unique(xway).tolist():
            vids.setdefault(road, []).append(np.unique(vid[xway == road]))
    known = {road: np.unique(np.concatenate(parts)) for road, parts in vids.items()}
    grids = {road: np.zeros((len(vid), DAYS), np.int32) for road, vid in known.items()}
    for vid, day, xway, tolls in _batches(file, _TOLL_COLUMNS) if file else ():
        good = (day >= 1) & (day <= DAYS)
        for road in np.unique(xway[good]).tolist():
            rows = good & (xway == road)
            np.add.at(grids[road], (np.searchsorted(known[road], vid[rows]), day[rows] - 1), tolls[rows])
    for road, grid in grids.items():
        np.save(out / f"vids-{road}.npy", known[road].astype(np.int32))
        np.save(out / f"tolls-{road}.npy", _narrow(grid))


def _narrow(grid: Array) -> Array:
    """The same numbers in the narrowest type."""
    low, high = int(grid.min(initial=0)), int(grid.max(initial=0))
    for type_ in (np.uint8, np.uint16, np.int32):
        if np.iinfo(type_).min <= low and high <= np.iinfo(type_).max:
            return grid.astype(type_)
    return grid


# -- segments


def _load_segments(file: Path | None, out: Path) -> None:
    shape = (2, SEGMENTS, WEEK, MINUTES)
    grids: dict[int, tuple[Array, Array, Array]] = {}
    for day, minute, xway, way, seg, lav, cnt, _ in _batches(file, _SEGMENT_COLUMNS) if file else ():
        for road in np.unique(xway).tolist():
            if road not in grids:
                grids[road] = tuple(np.zeros(shape, type_) for type_ in (np.int32, np.int32, np.uint8))  # type: ignore[assignment]
            rows = np.flatnonzero(xway == road)
            _add(rows, day, minute, way, seg, lav, cnt, *grids[road])
    for road, (lav, cnt, days) in grids.items():
        # Use one type for both sums, so that few variants of the kernel are compiled.
        small = (
            max(int(lav.max(initial=0)), int(cnt.max(initial=0))) < 1 << 16 and min(lav.min(), cnt.min()) >= 0
        )
        for name, grid in (("lav", lav), ("cnt", cnt)):
            np.save(out / f"{name}-{road}.npy", grid.astype(np.uint16) if small else grid)
        np.save(out / f"days-{road}.npy", days)


@njit(cache=True, nogil=True)
def _add(
    rows: Array,
    day: Array,
    minute: Array,
    way: Array,
    seg: Array,
    lav: Array,
    cnt: Array,
    lavs: Array,
    cnts: Array,
    days: Array,
) -> None:
    for i in rows:
        if 0 <= way[i] < 2 and 0 <= seg[i] < 100 and 1 <= minute[i] <= 1440:
            at = (way[i], seg[i], (day[i] - 1) % 7, minute[i] - 1)
            lavs[at] += lav[i]
            cnts[at] += cnt[i]
            days[at] += 1


# -- answers


@dataclass(frozen=True)
class Past:
    """The mapped columns of a history; expressways are opened on demand."""

    place: Path
    copies: dict[str, int]
    _open: dict[tuple[str, int], Array | None] = field(default_factory=dict)

    def _grid(self, name: str, road: int) -> Array | None:
        if (name, road) not in self._open:
            file = self.place / f"{name}-{road}.npy"
            self._open[name, road] = np.load(file, mmap_mode="r") if file.is_file() else None
        return self._open[name, road]

    def home(self, vid: Array, xway: Array) -> tuple[Array, Array]:
        """The vehicle and expressway whose history a request of a shifted copy shares."""
        copy = xway // self.copies["xway"]
        copy = np.where(copy < self.copies["count"], copy, 0).astype(np.int64)
        return vid - copy * self.copies["vid"], xway - copy * self.copies["xway"]

    def spent(self, vid: Array, xway: Array, day: Array) -> Array:
        """What each vehicle has spent on an expressway on a day."""
        vid, xway = self.home(vid, xway)
        tolls = np.zeros(len(vid), np.int64)
        for road in np.unique(xway).tolist():
            known, grid = self._grid("vids", road), self._grid("tolls", road)
            if known is None or grid is None or not len(known):
                continue
            rows = np.flatnonzero(xway == road)
            at = np.minimum(np.searchsorted(known, vid[rows]), len(known) - 1)
            tolls[rows] = np.where(known[at] == vid[rows], grid[at, day[rows] - 1], 0)
        return tolls

    def journeys(self, xway: Array, sinit: Array, send: Array, dow: Array, tod: Array) -> tuple[Array, Array]:
        """(seconds, toll) of each journey."""
        _, xway = self.home(np.zeros(len(xway), np.int64), xway)
        seconds, toll = np.zeros(len(xway), np.int64), np.zeros(len(xway), np.int64)
        for road in np.unique(xway).tolist():
            rows = np.flatnonzero(xway == road)
            grids = [self._grid(name, road) for name in ("lav", "cnt", "days")]
            empty = (_NO_GRID, _NO_GRID, _NO_DAYS)
            wide: list[Any] = [e if g is None else np.asarray(g) for g, e in zip(grids, empty, strict=True)]
            _journeys(wide[0], wide[1], wide[2], rows, sinit, send, dow, tod, seconds, toll)
        return seconds, toll


_NO_GRID = np.zeros((2, SEGMENTS, WEEK, 0), np.uint16)
_NO_GRID.setflags(write=False)
_NO_DAYS = _NO_GRID.astype(np.uint8)
_NO_DAYS.setflags(write=False)


@njit(cache=True, nogil=True)
def _journeys(
    lavs: Array,
    cnts: Array,
    days: Array,
    rows: Array,
    sinit: Array,
    send: Array,
    dow: Array,
    tod: Array,
    seconds: Array,
    toll: Array,
) -> None:
    """Follow each journey segment by segment: `y` is the clock in minutes of the first day."""
    known = days.shape[3] > 0
    for i in rows:
        way = 0 if sinit[i] <= send[i] else 1
        y, cost = float(tod[i]), 0.0
        seg = sinit[i]
        while seg != send[i]:
            k = int(np.floor(y + 1e-9)) - 1
            week_day = (dow[i] - 1 + k // 1440) % 7
            count = int(days[way, seg, week_day, k % 1440]) if known else 0
            lav, cnt = 60.0, 0.0
            if count > 0:
                lav, cnt = (
                    lavs[way, seg, week_day, k % 1440] / count,
                    cnts[way, seg, week_day, k % 1440] / count,
                )
            y += 60 / max(lav, 1.0)
            if lav < 40 and cnt > 50:
                cost += 2 * (cnt - 50) ** 2
            seg += 1 - 2 * way
        seconds[i] = int(np.floor((y - tod[i]) * 60 + 0.5 + 1e-9))
        toll[i] = int(np.floor(cost + 0.5 + 1e-9))


@lru_cache(maxsize=4)
def open_past(place: Path) -> Past:
    """The mapped columns, once for each worker."""
    facts = _note(place)
    if facts is None:
        raise InputError(f"{place} holds no columns of a history; expected what `load_history` makes.")
    return Past(place, facts["copies"])


@dataclass(frozen=True)
class DailyExpenditure:
    """Answers requests of type 3: a batch with VID, XWay and Day in, `Bal` out."""

    place: str | None

    def __call__(self, batch: Any) -> dict[str, Any]:
        vid, xway, day = (batch.column(name).to_numpy() for name in ("VID", "XWay", "Day"))
        if self.place is None:
            return {"Bal": np.zeros(len(vid), np.int64)}
        return {"Bal": open_past(Path(self.place)).spent(vid, xway, day)}


@dataclass(frozen=True)
class TravelTime:
    """Answers requests of type 4: XWay, Sinit, Send, DOW and TOD in, `TravelTime` and `Toll` out."""

    place: str | None

    def __call__(self, batch: Any) -> dict[str, Any]:
        names = ("XWay", "Sinit", "Send", "DOW", "TOD")
        past = (
            Past(Path(), {"count": 1, "vid": 0, "xway": 1})
            if self.place is None
            else open_past(Path(self.place))
        )
        seconds, toll = past.journeys(*(batch.column(name).to_numpy() for name in names))
        return {"TravelTime": seconds, "Toll": toll}
