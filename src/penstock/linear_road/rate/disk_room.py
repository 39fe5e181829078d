"""Whether the disk has room for a trial: answers and state of a large L take tens of gigabytes.

A run that finds the disk full looks like one that L was too much for, so the rating would be too low. It is
better to stop before it. Idea: what earlier trials have left, for each tuple that they were given.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from penstock.linear_road.errors import RateError
from penstock.linear_road.rate.plan import Window
from penstock.linear_road.rows.arrays import Int64s
from penstock.linear_road.run.rating_record import Trial

_GB = 1e9


def bytes_under(folder: Path) -> int:
    """What the files of a folder take, by their lengths."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def bytes_needed(trials: Sequence[Trial], rates: Int64s, window: Window, expressways: float) -> float:
    """What a trial will leave on the disk, by the most greedy one so far; 0 if none tells.

    `rates`: tuples by second, from the first second of the traffic on.
    """
    tuples = expressways * rates[window.begin : window.end].sum()
    return max((tuples * _by_tuple(trial, rates) for trial in trials), default=0.0)


def _by_tuple(trial: Trial, rates: Int64s) -> float:
    begin, end = trial["seconds"]
    return (trial.get("disk_bytes") or 0) / max(1.0, trial["L"] * float(rates[begin:end].sum()))


def refuse_without_room(folder: Path, needed: float, expressways: float) -> None:
    """Raise, if what a trial needs is not free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise RateError(
            f"the answers of L = {expressways:g} need about {needed / _GB:.0f} GB in {folder}, and "
            f"{free / _GB:.0f} GB are free",
            hint="make room, and the same command goes on; or rate with fewer --minutes in another --out",
        )
