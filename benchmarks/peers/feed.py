"""What the peers share: rows in whole seconds, and answers with their Emit.

Reading and refusing rows is the kit's own (`penstock.linear_road.rows.read_blocks`), so that the peers differ
only in how they answer. Batches never hold rows of two half minutes: no toll of minute m is asked for before
all reports of minute m - 1 are there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pa_csv

from penstock.linear_road.drive.clock import Clock
from penstock.linear_road.drive.drive_report import STATE_FILE
from penstock.linear_road.errors import ClockError
from penstock.linear_road.rows.fields import COLUMNS
from penstock.linear_road.rows.inputs import Input, open_input
from penstock.linear_road.rows.read_blocks import seconds_of

TIME = 1
NAMES = tuple(name.lower() for name in COLUMNS)

FIELDS = {
    0: ("vid", "time", "lav", "toll"),
    1: ("time", "vid", "seg"),
    2: ("time", "result", "qid", "bal"),
    3: ("time", "qid", "bal"),
    4: ("time", "qid", "travel", "toll"),
}
"""The fields of an answer after its type, without Emit."""


@dataclass
class Feed:
    """Rows as they come; `every` is how often a directory is looked at."""

    source: Path
    follow: bool
    every: float = 1.0
    rows: int = 0
    first_wall: float = 0.0
    first_cpu: float = 0.0
    _last: int = -1
    _seen: set[str] = field(default_factory=set)

    def batches(self) -> Iterator[np.ndarray]:
        """Accepted rows [row, field] of some whole seconds of one half minute, in order of time.

        A vehicle's previous report is therefore always in an earlier batch.
        """
        for rows in self._directory() if self.follow else self._input():
            if not self.first_wall:
                self.first_wall, self.first_cpu = time.perf_counter(), cpu_of_tree()
            for start, end in _runs(rows[:, TIME] // 30):
                self.rows += end - start
                yield rows[start:end]

    def _input(self) -> Iterator[np.ndarray]:
        """An input at maximum speed, a second at a time, as a driver would bring it."""
        for block in seconds_of(open_input(self.source)):
            rows = block.accepted()
            for start, end in _runs(rows[:, TIME]):
                yield rows[start:end]

    def _directory(self) -> Iterator[np.ndarray]:
        over = False
        while not over:
            begun = time.perf_counter()
            over = self._is_over()
            new = sorted(f for f in self.source.glob("t*.csv") if f.name not in self._seen)
            if new:
                self._seen.update(file.name for file in new)
                yield self._read(new)
            if not over:
                time.sleep(max(0.0, self.every - (time.perf_counter() - begun)))

    def _read(self, files: list[Path]) -> np.ndarray:
        source = Input(self.source, tuple(files), "csv")
        blocks = [block.accepted() for block in seconds_of(source, last=self._last)]
        for file in files:
            file.unlink()
        rows = np.concatenate(blocks)
        self._last = int(rows[-1, TIME]) if len(rows) else self._last
        return rows

    def _is_over(self) -> bool:
        try:
            return json.loads((self.source / STATE_FILE).read_text(encoding="utf-8"))["report"] is not None
        except (OSError, ValueError, KeyError):
            return False


def _runs(keys: np.ndarray) -> Iterator[tuple[int, int]]:
    """The stretches of equal keys."""
    cuts = np.flatnonzero(np.diff(keys)) + 1
    yield from ((a, b) for a, b in pairwise([0, *cuts.tolist(), len(keys)]) if a < b)


@dataclass
class Answers:
    """The flat file of answers. Emit is the driver's clock before a block is written.

    Without a driver, Time.
    """

    file: Any
    feed: Feed
    rows: int = 0
    _clock: Clock | None = None

    def write(self, kind: int, table: pa.Table) -> None:
        """Answers of one type: its fields after the type in the page's order, without Emit."""
        if not len(table):
            return
        at = {0: 2}.get(kind, 1)
        stamped = table.add_column(at, "emit", self._emit(table))
        whole = stamped.add_column(0, "type", pa.array(np.full(len(table), kind, np.int8)))
        pa_csv.write_csv(whole, self.file, pa_csv.WriteOptions(include_header=False, quoting_style="none"))
        self.rows += len(table)

    def flush(self) -> None:
        self.file.flush()

    def _emit(self, table: pa.Table) -> pa.Array:
        if not self.feed.follow:
            return table["time"]
        # Emit is rounded up, so that it never flatters.
        now = self._now()
        return pa.array([f"{now:.3f}"] * len(table))

    def _now(self) -> float:
        while self._clock is None:
            try:
                self._clock = Clock.load(self.feed.source)
            except ClockError:
                time.sleep(0.01)
        return self._clock.now() + 0.0005


def table(names: tuple[str, ...], rows: Sequence[tuple[int, ...]]) -> pa.Table:
    """Answers as columns."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return pa.table({name: pa.array(values, pa.int64()) for name, values in zip(names, columns, strict=True)})


def cpu_of_tree() -> float:
    """Processor seconds of this process and of all below it, also of those that ended and were waited for."""
    root, seconds = psutil.Process(), 0.0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            used = process.cpu_times()
            seconds += used.user + used.system + used.children_user + used.children_system
    return seconds


def options(text: str | None) -> argparse.Namespace:
    """The command line that all peers share."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, help="an input, at maximum speed")
    parser.add_argument("--follow", type=Path, help="the directory that `penstock lr drive` fills (csv)")
    parser.add_argument("--history", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the flat file of answers")
    parser.add_argument("--json", type=Path, help="what it cost")
    parser.add_argument("--ready", type=Path, help="written when the peer is warm and waits for rows")
    parser.add_argument(
        "--database", type=Path, help="system_x: the file it persists in, with a checkpoint after every poll"
    )
    chosen = parser.parse_args()
    if (chosen.input is None) == (chosen.follow is None):
        parser.error("give --input or --follow")
    return chosen


def feed_of(chosen: argparse.Namespace) -> Feed:
    return Feed(chosen.input or chosen.follow, follow=chosen.follow is not None)


def report(chosen: argparse.Namespace, feed: Feed, answers: int, answering: float | None = None) -> None:
    """Say what it cost: all processor seconds, and those after the first row or as the peer measured them."""
    wall, cpu = time.perf_counter() - feed.first_wall, cpu_of_tree()
    cost = {
        "tuples": feed.rows,
        "answers": answers,
        "cpu_s": round(cpu, 2),
        "cpu_s_after_start": round(cpu - feed.first_cpu if answering is None else answering, 3),
        "wall_s": round(wall, 2),
    }
    print(json.dumps(cost), file=sys.stderr)
    if chosen.json:
        chosen.json.write_text(json.dumps(cost) + "\n", encoding="utf-8")
