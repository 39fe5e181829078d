"""Finished directions on disk, between simulation and merge.

Idea: each direction is simulated once into a part under `DIR/.parts`. A resumed run finds the complete parts
and makes the rest. A part is two files. The reports are written last, so their presence shows that it is
complete.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penstock.linear_road.rows.arrays import Int64s, Records
from penstock.linear_road.rows.fields import TYPES
from penstock.linear_road.traffic.direction import Accident, Direction, Requests, Traffic, simulate
from penstock.linear_road.traffic.vehicles import TripTimes
from penstock.store.durable import whole_file

PARTS = ".parts"


@dataclass(frozen=True)
class Part:
    """One simulated direction; the reports stay on disk and are mapped into memory."""

    reports: Records
    requests: Requests
    times: TripTimes
    accidents: tuple[Accident, ...]
    counts: Int64s
    """[second, type]: rows by second, in the order of `TYPES`."""

    @cached_property
    def requests_before(self) -> Int64s:
        """How many requests come before each second."""
        return np.concatenate([[0], np.cumsum(self.counts[:, 1:].sum(axis=1))])

    @cached_property
    def reports_before(self) -> Int64s:
        """How many reports come before each second."""
        return np.concatenate([[0], np.cumsum(self.counts[:, 0])])


def part_paths(out: Path, direction: Direction) -> tuple[Path, Path]:
    """The two files of a part: trips and requests, and reports."""
    stem = f"x{direction.xway:04d}-d{direction.dir}"
    return out / PARTS / f"{stem}.npz", out / PARTS / f"{stem}.npy"


def is_whole(out: Path, direction: Direction) -> bool:
    """Whether the part of this direction is complete."""
    return all(path.is_file() for path in part_paths(out, direction))


def make_part(
    out: Path, direction: Direction, seconds: int, seed: int, progress: Callable[[], None] = lambda: None
) -> None:
    """Simulate a direction and write its part."""
    traffic = simulate(direction, seconds=seconds, seed=seed, progress=progress)
    small, reports = part_paths(out, direction)
    with whole_file(small) as path, path.open("wb") as file:
        np.savez(file, allow_pickle=False, **_small(traffic, seconds))
    with whole_file(reports) as path, path.open("wb") as file:
        np.save(file, traffic.reports)


def open_part(out: Path, direction: Direction) -> Part:
    """Open a finished part."""
    small, reports = part_paths(out, direction)
    with np.load(small) as saved:
        return Part(
            reports=np.load(reports, mmap_mode="r"),
            requests=Requests(**{field.name: saved[field.name] for field in fields(Requests)}),
            times=TripTimes(saved["entry_time"], saved["exit_time"]),
            accidents=tuple(Accident(**row) for row in json.loads(str(saved["accidents"]))),
            counts=saved["counts"],
        )


def _small(traffic: Traffic, seconds: int) -> dict[str, npt.NDArray[np.generic]]:
    accidents = json.dumps([asdict(accident) for accident in traffic.accidents])
    return {
        **{field.name: getattr(traffic.requests, field.name) for field in fields(Requests)},
        "entry_time": traffic.entry_time,
        "exit_time": traffic.exit_time,
        "accidents": np.array(accidents),
        "counts": _counts(traffic.reports, seconds),
    }


def _counts(reports: Records, seconds: int) -> Int64s:
    by_type = [np.bincount(reports["time"], minlength=seconds)]
    by_type += [
        np.bincount(reports["time"][reports["request"] == kind], minlength=seconds) for kind in TYPES[1:]
    ]
    return np.stack(by_type, axis=1)
