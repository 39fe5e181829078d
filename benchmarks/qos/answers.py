"""Reads output files: which answers go back to which input file, and how much of what was due they are.

Tuples of an output with a value graph count by what they are worth, all others alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.qos.judge import Answers
from benchmarks.qos.traffic import PERIOD, closing_file
from benchmarks.qos.workload import OUTPUTS, START, VALUED, WINDOW, worth_of

WINDOWED = "means"
_Key = tuple[int, int]  # window, segment
_START = round(START.timestamp() * 1e6)


@dataclass(frozen=True)
class Due:
    """What the exact network gives: by output and file, and of windows how many tuples each key has."""

    by_output: Mapping[str, Mapping[int, float]]
    windows: Mapping[_Key, int] = field(default_factory=dict)

    @property
    def totals(self) -> dict[str, float]:
        return {name: sum(amounts.values()) for name, amounts in self.by_output.items()}


@dataclass(frozen=True)
class Delivered:
    """What was seen of each output; `wrong`: windows with other counts than the exact ones."""

    by_output: Mapping[str, list[Answers]]
    wrong: int = 0


def due_in(out: Path, files: int) -> Due:
    """All answers of an exact run over so many input files."""
    by_output = {name: _all_tuples(out, name) for name in OUTPUTS if name != WINDOWED}
    windows: dict[_Key, int] = {}
    for path in sorted((out / WINDOWED).glob("*.parquet")):
        windows.update(_windows(path))
    by_output[WINDOWED] = {}
    for window, _ in windows:
        closing = closing_file(window, files)
        if closing is not None:  # otherwise only the end of the input closes it, and a run has no end
            by_output[WINDOWED][closing] = by_output[WINDOWED].get(closing, 0.0) + 1
    return Due(by_output, windows)


def _all_tuples(out: Path, output: str) -> dict[int, float]:
    total: dict[int, float] = {}
    for path in (out / output).glob("*.parquet"):
        for file, amount in amounts_by_file(path, valued=output == VALUED).items():
            total[file] = total.get(file, 0.0) + amount
    return total


def delivered_in(out: Path, seen: Iterable[tuple[str, str, float]], due: Due, files: int) -> Delivered:
    """What the watcher has seen, by the files it names."""
    by_output: dict[str, list[Answers]] = {name: [] for name in OUTPUTS}
    wrong = 0
    for output, name, at in seen:
        path = out / output / name
        if output != WINDOWED:
            amounts = amounts_by_file(path, valued=output == VALUED)
            by_output[output] += [Answers(file, amount, at) for file, amount in amounts.items()]
            continue
        for (window, segment), count in _windows(path).items():
            exact, closing = due.windows.get((window, segment), 0), closing_file(window, files)
            wrong += count != exact
            if closing is not None and exact:
                by_output[output].append(Answers(closing, min(1.0, count / exact), at))
    return Delivered(by_output, wrong)


def _numbers(times: pa.ChunkedArray, seconds: float) -> pa.ChunkedArray:
    micros = pc.cast(pc.cast(times, pa.timestamp("us", "UTC")), pa.int64())
    return pc.divide(pc.subtract(micros, _START), round(seconds * 1e6))


def amounts_by_file(path: Path, *, valued: bool = False) -> dict[int, float]:
    """How many answers there are, or what they are worth, by the input file of their tuple."""
    table = pq.ParquetFile(path).read(columns=["time", "spd"] if valued else ["time"])
    files = _numbers(table["time"], PERIOD).to_numpy()
    worth = worth_of(table["spd"].to_numpy()) if valued else np.ones(len(files))
    numbers, at = np.unique(files, return_inverse=True)
    return dict(zip(numbers.tolist(), np.bincount(at, worth).tolist(), strict=True))


def _windows(path: Path) -> dict[_Key, int]:
    """Tuples that were counted, by window and segment."""
    table = pq.ParquetFile(path).read(columns=["since", "seg", "n"])
    windows = _numbers(table["since"], WINDOW).to_pylist()
    rows = zip(windows, table["seg"].to_pylist(), table["n"].to_pylist(), strict=True)
    return {(window, segment): count for window, segment, count in rows}
