"""The input of a run: files of tuples in phases of constant rate, the same for all contenders.

Each file holds what comes in a quarter of a second, and all its tuples have the time of the file on the
plan's own clock. So the time of a tuple tells its file, and the driver's log tells when that file came.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from benchmarks.qos.workload import SEGMENTS, SPEEDS, START, WINDOW

PERIOD = 0.25


@dataclass(frozen=True)
class Phase:
    """A stretch of constant rate, in tuples a second."""

    name: str
    seconds: float
    rate: float


@dataclass(frozen=True)
class TrafficPlan:
    """Phases, one after the other.

    >>> plan = TrafficPlan((Phase("calm", 0.5, 100), Phase("overload", 0.5, 400)))
    >>> plan.counts, plan.span("overload")
    ([25, 25, 100, 100], (0.5, 1.0))
    """

    phases: tuple[Phase, ...]

    @property
    def counts(self) -> list[int]:
        """Tuples in each file."""
        return [
            round(phase.rate * PERIOD) for phase in self.phases for _ in range(round(phase.seconds / PERIOD))
        ]

    @property
    def seconds(self) -> float:
        return sum(phase.seconds for phase in self.phases)

    def span(self, name: str) -> tuple[float, float]:
        """When a phase begins and ends, in seconds since the start."""
        ends = list(accumulate(phase.seconds for phase in self.phases))
        at = next(i for i, phase in enumerate(self.phases) if phase.name == name)
        return ends[at] - self.phases[at].seconds, ends[at]

    def plain(self) -> list[dict[str, object]]:
        return [asdict(phase) for phase in self.phases]


def steady(name: str, seconds: float, rate: float) -> TrafficPlan:
    return TrafficPlan((Phase(name, seconds, rate),))


def file_name(number: int) -> str:
    return f"{number:06d}.csv"


def write_files(plan: TrafficPlan, folder: Path, seed: int) -> Path:
    """All files of a plan; the driver only links them, so that it uses next to no CPU."""
    folder.mkdir(parents=True)
    dice, first = np.random.default_rng(seed), 0
    for number, count in enumerate(plan.counts):
        at = START + timedelta(seconds=number * PERIOD)
        table = pa.table(
            {
                "time": pa.array([at.replace(tzinfo=None)] * count, pa.timestamp("ms")),
                "id": pa.array(np.arange(first, first + count)),
                "seg": pa.array(dice.integers(0, SEGMENTS, count, dtype=np.int32)),
                "spd": pa.array(dice.integers(0, SPEEDS, count, dtype=np.int32)),
            }
        )
        pacsv.write_csv(table, folder / file_name(number), pacsv.WriteOptions(include_header=False))
        first += count
    (folder / "_plan.json").write_text(json.dumps(plan.plain()))
    return folder


def closing_file(window: int, files: int) -> int | None:
    """The number of the first file whose time closes a window; None if no file does.

    >>> closing_file(0, files=50), closing_file(0, files=40)
    (40, None)
    """
    number = round((window + 1) * WINDOW / PERIOD)
    return number if number < files else None


def arrivals_in(log: Path) -> list[float]:
    """When each file came, by its number, as the driver stamped it."""
    return [float(line.split()[1]) for line in log.read_text().splitlines()]


def worst_lag(arrivals: Sequence[float], period: float = PERIOD) -> float:
    """By how much the driver was late at most: figures of a driver that lags mean nothing."""
    if not arrivals:
        return 0.0
    planned = [arrivals[0] + number * period for number in range(len(arrivals))]
    return max(came - due for came, due in zip(arrivals, planned, strict=True))
